//! Commands of this replica's own clients that are not in the log yet, as far as it knows.
//!
//! They are forwarded to the leader, again when the leader changes, when a batch was void, and
//! after a while; a command leaves when it is seen in a batch that counts. The machine makes
//! repetitions harmless.
//! Invariants: bounded in number; forwarded in the order in which they came, so that requests of a
//! session stay in order.
//! Not here: replies. A command that is in the log is the machine's affair.

use std::collections::{BTreeMap, btree_map::Entry};

use gesmas_machine::{CodeHash, Command, SessionId, Step};

/// What tells two commands apart for the purpose of sending again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Open(u128),
    End(SessionId),
    Request(SessionId, u64),
    Cancel(SessionId, u64),
    Acknowledge(SessionId),
    Compiled(u64, CodeHash),
    Vote(u64, Step),
    /// Hash of the object's name.
    Migrate(CodeHash),
}

/// What a command is known by.
pub(super) fn key(command: &Command) -> Key {
    match command {
        Command::OpenSession { nonce, .. } => Key::Open(*nonce),
        Command::CloseSession { session } | Command::ExpireSession { session } => {
            Key::End(*session)
        }
        Command::Request(request) => Key::Request(request.place.session, request.place.number),
        Command::Cancel { place, .. } => Key::Cancel(place.session, place.number),
        Command::Acknowledge { session, .. } => Key::Acknowledge(*session),
        Command::Compiled { replica, code, .. } => Key::Compiled(*replica, *code),
        Command::Vote { replica, step, .. } => Key::Vote(*replica, *step),
        Command::Migrate { object } => Key::Migrate(CodeHash::of(object.to_string().as_bytes())),
    }
}

/// Votes that wait at most.
const VOTES: usize = 8;

#[derive(Debug)]
struct Waiting {
    command: Command,
    /// Monotonic time at which it was sent last, if it was.
    sent: Option<u64>,
}

/// The commands, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    next: u64,
    by_order: BTreeMap<u64, Waiting>,
    by_key: BTreeMap<Key, u64>,
    /// All that came before this one were sent.
    unsent: u64,
    /// How many of them are votes.
    votes: usize,
}

impl Outstanding {
    /// How many of clients there are: this replica's own votes turn nobody away.
    pub(super) fn len(&self) -> usize {
        self.by_key.len() - self.votes
    }

    /// Adds a command; one that is there already stays as it is, except that a newer
    /// acknowledgement takes the older one's place.
    pub(super) fn add(&mut self, command: Command) {
        let (key, order) = (key(&command), self.next);
        match self.by_key.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(order);
            }
            Entry::Occupied(mut there) => {
                if !matches!(key, Key::Acknowledge(_)) {
                    return;
                }
                self.by_order.remove(&there.insert(order));
            }
        }
        self.next += 1;
        self.by_order.insert(order, Waiting { command, sent: None });
        if matches!(key, Key::Vote(..)) {
            self.votes += 1;
            self.bound_votes();
        }
    }

    /// Whoever catches up passes many checkpoints, of which the newest matter.
    fn bound_votes(&mut self) {
        if self.votes > VOTES {
            let all = Key::Vote(0, Step(0))..=Key::Vote(u64::MAX, Step(u64::MAX));
            let (oldest, _) = self.by_key.range(all).next().expect("there are too many");
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, key: Key) {
        if let Some(order) = self.by_key.remove(&key) {
            self.by_order.remove(&order);
            self.votes -= usize::from(matches!(key, Key::Vote(..)));
        }
    }

    /// Removes what a batch that counts has in it.
    pub(super) fn applied(&mut self, commands: &[Command]) {
        if self.by_key.is_empty() {
            return;
        }
        for command in commands {
            self.remove(key(command));
        }
    }

    /// All are to be sent again.
    pub(super) fn resend_all(&mut self) {
        self.by_order.values_mut().for_each(|waiting| waiting.sent = None);
        self.unsent = 0;
    }

    /// All that were sent before a time are to be sent again.
    pub(super) fn resend_older(&mut self, than: u64) {
        let late = |waiting: &Waiting| waiting.sent.is_some_and(|sent| sent < than);
        if self.by_order.values().any(late) {
            self.resend_all();
        }
    }

    /// Takes copies of those to be sent, at most about `bytes` in all. Those that were sent are not
    /// even looked at: of many that wait for their turn to be over few are new.
    pub(super) fn take_unsent(&mut self, now: u64, bytes: usize) -> Vec<Command> {
        let mut taken = Vec::new();
        let mut size = 0;
        for (order, waiting) in self.by_order.range_mut(self.unsent..) {
            if size > bytes {
                break;
            }
            self.unsent = order + 1;
            size += command_bytes(&waiting.command);
            waiting.sent = Some(now);
            taken.push(waiting.command.clone());
        }
        taken
    }
}

/// About how many bytes a command takes.
pub(super) fn command_bytes(command: &Command) -> usize {
    use gesmas_machine::RequestBody;
    const FIXED: usize = 128;
    let variable = match command {
        Command::Request(request) => match &request.body {
            RequestBody::Call { arguments, .. } | RequestBody::CreateObject { arguments, .. } => {
                arguments.len()
            }
            RequestBody::PutClass { module, .. } => module.len(),
            RequestBody::RemoveObject { .. }
            | RequestBody::Kill { .. }
            | RequestBody::KillSession { .. }
            | RequestBody::RemoveClass { .. }
            | RequestBody::SetLimit { .. }
            | RequestBody::EndFault { .. } => 0,
        },
        Command::OpenSession { principal, .. } => principal.len(),
        Command::Compiled { failure, .. } => failure.as_ref().map_or(0, String::len),
        Command::CloseSession { .. }
        | Command::ExpireSession { .. }
        | Command::Cancel { .. }
        | Command::Acknowledge { .. }
        | Command::Migrate { .. }
        | Command::Vote { .. } => 0,
    };
    FIXED + variable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(nonce: u128) -> Command {
        Command::OpenSession { nonce, principal: "p".into(), timeout: 1 }
    }

    #[test]
    fn a_command_is_sent_once_until_there_is_a_reason() {
        let mut outstanding = Outstanding::default();
        outstanding.add(open(1));
        outstanding.add(open(1));
        outstanding.add(open(2));
        assert_eq!(outstanding.take_unsent(10, 1 << 20), [open(1), open(2)]);
        assert!(outstanding.take_unsent(11, 1 << 20).is_empty());
        outstanding.applied(&[open(1)]);
        outstanding.resend_older(10);
        assert!(outstanding.take_unsent(12, 1 << 20).is_empty());
        outstanding.resend_older(11);
        assert_eq!(outstanding.take_unsent(12, 1 << 20), [open(2)]);
        outstanding.applied(&[open(2)]);
        assert_eq!(outstanding.len(), 0);
    }

    #[test]
    fn votes_turn_nobody_away_and_the_newest_count() {
        let vote = |step| Command::Vote { replica: 2, step: Step(step), hash: Default::default() };
        let mut outstanding = Outstanding::default();
        outstanding.add(open(1));
        (0..20).for_each(|step| outstanding.add(vote(step)));
        assert_eq!(outstanding.len(), 1);
        let sent = outstanding.take_unsent(0, 1 << 20);
        let expected: Vec<_> = [open(1)].into_iter().chain((12..20).map(vote)).collect();
        assert_eq!(sent, expected);
        outstanding.applied(&[vote(12), vote(3)]);
        outstanding.add(vote(20));
        assert_eq!(outstanding.take_unsent(1, 1 << 20), [vote(20)]);
    }

    #[test]
    fn what_does_not_fit_goes_with_the_next() {
        let mut outstanding = Outstanding::default();
        (0..5).for_each(|nonce| outstanding.add(open(nonce)));
        let first = outstanding.take_unsent(0, 200);
        let rest = outstanding.take_unsent(0, 1 << 20);
        assert_eq!(first.len() + rest.len(), 5);
        assert!(!first.is_empty() && !rest.is_empty());
    }
}
