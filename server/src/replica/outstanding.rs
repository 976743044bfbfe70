//! Commands of this replica's own clients that are not in the log yet, as far as it knows.
//!
//! They are forwarded to the leader, all of them again when the leader changes or a batch was void;
//! one that is late is sent again alone, after ever longer times. A command leaves when it is seen in
//! a batch that counts. The machine makes repetitions harmless.
//! Invariants: bounded in number and bytes (by the caller, who asks before it adds); at most
//! [`WINDOW_BYTES`] and one command are on their way at once, so that a burst does not come to a slow
//! leader again and again; forwarded in the order in which they came, those that are late apart.
//! Not here: replies. A command that is in the log is the machine's affair.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use gesmas_machine::{CodeHash, Command, SessionId, Step};

/// Bytes of commands that are on their way to the leader, about: more would wait there.
const WINDOW_BYTES: usize = 16 << 20;

/// A late command waits at most this many times its first patience, as a power of two. A leader whose
/// queue is full drops what comes, and a command that came again much more rarely than others would
/// find no place there for as long as they come.
const PATIENCE_DOUBLINGS: u32 = 3;

/// A command and the bytes of its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Weighed {
    pub(super) command: Command,
    pub(super) bytes: usize,
}

impl From<Command> for Weighed {
    fn from(command: Command) -> Self {
        Self { bytes: command.encoded_bytes(), command }
    }
}

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

/// Votes of one replica that wait at most, here and at the leader.
pub(super) const VOTES: usize = 8;

#[derive(Debug)]
struct Waiting {
    weighed: Weighed,
    /// When it is late, monotonic, if it is on its way.
    due: Option<u64>,
    /// How often it was late since it was last new to the leader.
    late: u32,
}

/// The commands, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    next: u64,
    by_order: BTreeMap<u64, Waiting>,
    by_key: BTreeMap<Key, u64>,
    /// Those that are not on their way.
    unsent: BTreeSet<u64>,
    /// Those that are, by the time at which they are late.
    due: BTreeSet<(u64, u64)>,
    /// Bytes of all, and of those on their way.
    bytes: usize,
    bytes_sent: usize,
    /// How many of them are votes.
    votes: usize,
}

impl Outstanding {
    /// How many of clients there are: this replica's own votes turn nobody away.
    pub(super) fn len(&self) -> usize {
        self.by_key.len() - self.votes
    }

    /// Bytes of all of them.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a command; one that is there already stays as it is, except that a newer
    /// acknowledgement takes the older one's place.
    pub(super) fn add(&mut self, weighed: Weighed) {
        let (key, order) = (key(&weighed.command), self.next);
        match self.by_key.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(order);
            }
            Entry::Occupied(mut there) => {
                if !matches!(key, Key::Acknowledge(_)) {
                    return;
                }
                let older = there.insert(order);
                self.take_out(older);
            }
        }
        self.next += 1;
        self.bytes += weighed.bytes;
        self.unsent.insert(order);
        self.by_order.insert(order, Waiting { weighed, due: None, late: 0 });
        if matches!(key, Key::Vote(..)) {
            self.votes += 1;
            self.bound_votes();
        }
    }

    /// A replica that catches up passes many checkpoints, of which the newest matter.
    fn bound_votes(&mut self) {
        if self.votes > VOTES {
            let all = Key::Vote(0, Step(0))..=Key::Vote(u64::MAX, Step(u64::MAX));
            let (oldest, _) = self.by_key.range(all).next().expect("there are too many");
            self.remove(*oldest);
        }
    }

    fn remove(&mut self, key: Key) {
        if let Some(order) = self.by_key.remove(&key) {
            self.take_out(order);
            self.votes -= usize::from(matches!(key, Key::Vote(..)));
        }
    }

    fn take_out(&mut self, order: u64) {
        let waiting = self.by_order.remove(&order).expect("a key names a command that waits");
        self.bytes -= waiting.weighed.bytes;
        match waiting.due {
            Some(due) => {
                self.bytes_sent -= waiting.weighed.bytes;
                self.due.remove(&(due, order));
            }
            None => {
                self.unsent.remove(&order);
            }
        }
    }

    /// Removes what a batch that counts has in it.
    pub(super) fn applied(&mut self, commands: &[Command]) {
        if self.by_key.is_empty() {
            return;
        }
        for command in commands {
            let key = key(command);
            // What a client has received since an older acknowledgement still waits to be ordered.
            let newer = matches!(key, Key::Acknowledge(_))
                && self
                    .by_key
                    .get(&key)
                    .is_some_and(|at| self.by_order[at].weighed.command != *command);
            if !newer {
                self.remove(key);
            }
        }
    }

    /// All are to be sent again: the leader is another one, or may have lost them.
    pub(super) fn resend_all(&mut self) {
        for (_, order) in std::mem::take(&mut self.due) {
            let waiting = self.by_order.get_mut(&order).expect("what is due waits");
            (waiting.due, waiting.late) = (None, 0);
            self.unsent.insert(order);
        }
        self.bytes_sent = 0;
    }

    /// Those that are late are to be sent again.
    pub(super) fn resend_late(&mut self, now: u64) {
        while let Some((due, order)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            let waiting = self.by_order.get_mut(&order).expect("what is due waits");
            waiting.due = None;
            waiting.late += 1;
            self.bytes_sent -= waiting.weighed.bytes;
            self.unsent.insert(order);
        }
    }

    /// Takes copies of those to be sent, as many as there is room for and about `bytes` of them. Each
    /// is late after `patience`, and after twice as long each time that it was.
    pub(super) fn take_unsent(
        &mut self,
        now: u64,
        patience: u64,
        (most, bytes): (usize, usize),
    ) -> Vec<Weighed> {
        let mut taken = Vec::new();
        let mut size = 0;
        while taken.len() < most && size < bytes && self.bytes_sent < WINDOW_BYTES {
            let Some(order) = self.unsent.pop_first() else { break };
            let waiting = self.by_order.get_mut(&order).expect("what is unsent waits");
            let due = now.saturating_add(patience << waiting.late.min(PATIENCE_DOUBLINGS));
            waiting.due = Some(due);
            self.due.insert((due, order));
            self.bytes_sent += waiting.weighed.bytes;
            size += waiting.weighed.bytes;
            taken.push(waiting.weighed.clone());
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use gesmas_machine::Acknowledged;

    use super::*;

    /// More than there is.
    const ALL: (usize, usize) = (1_000, 1 << 20);

    fn open(nonce: u128) -> Weighed {
        Command::OpenSession { nonce, principal: "p".into(), timeout: 1 }.into()
    }

    #[test]
    fn a_command_is_sent_once_until_there_is_a_reason() {
        let mut outstanding = Outstanding::default();
        outstanding.add(open(1));
        outstanding.add(open(1));
        outstanding.add(open(2));
        assert_eq!(outstanding.take_unsent(10, 5, ALL), [open(1), open(2)]);
        assert!(outstanding.take_unsent(11, 5, ALL).is_empty());
        outstanding.applied(&[open(1).command]);
        outstanding.resend_all();
        assert_eq!(outstanding.take_unsent(12, 5, ALL), [open(2)]);
        outstanding.applied(&[open(2).command]);
        assert_eq!((outstanding.len(), outstanding.bytes()), (0, 0));
    }

    #[test]
    fn a_late_command_is_sent_again_alone_and_ever_more_rarely() {
        let mut outstanding = Outstanding::default();
        outstanding.add(open(1));
        assert_eq!(outstanding.take_unsent(0, 10, ALL), [open(1)]);
        outstanding.add(open(2));
        assert_eq!(outstanding.take_unsent(9, 10, ALL), [open(2)]);
        outstanding.resend_late(9);
        assert!(outstanding.take_unsent(9, 10, ALL).is_empty());
        outstanding.resend_late(10);
        assert_eq!(outstanding.take_unsent(10, 10, ALL), [open(1)]);
        outstanding.applied(&[open(2).command]);
        let mut sent = Vec::new();
        for now in 11..500 {
            outstanding.resend_late(now);
            sent.extend(outstanding.take_unsent(now, 10, ALL).iter().map(|_| now));
        }
        assert_eq!(sent, [30, 70, 150, 230, 310, 390, 470]);
        outstanding.resend_all();
        assert_eq!(outstanding.take_unsent(500, 10, ALL), [open(1)]);
        outstanding.resend_late(510);
        assert_eq!(outstanding.take_unsent(510, 10, ALL), [open(1)], "patience begins anew");
    }

    #[test]
    fn votes_turn_nobody_away_and_the_newest_count() {
        let vote = |step| Command::Vote { replica: 2, step: Step(step), hash: Default::default() };
        let mut outstanding = Outstanding::default();
        outstanding.add(open(1));
        (0..20).for_each(|step| outstanding.add(vote(step).into()));
        assert_eq!(outstanding.len(), 1);
        let sent = outstanding.take_unsent(0, 1, ALL);
        let newest = (12..20).map(|step| Weighed::from(vote(step)));
        let expected: Vec<_> = [open(1)].into_iter().chain(newest).collect();
        assert_eq!(sent, expected);
        outstanding.applied(&[vote(12), vote(3)]);
        outstanding.add(vote(20).into());
        assert_eq!(outstanding.take_unsent(0, 1, ALL), [vote(20).into()]);
    }

    #[test]
    fn an_older_acknowledgement_that_is_applied_leaves_the_newer_one() {
        let acknowledge = |events| Command::Acknowledge {
            session: SessionId(1),
            acknowledged: Acknowledged { events, ..Acknowledged::default() },
        };
        let mut outstanding = Outstanding::default();
        outstanding.add(acknowledge(1).into());
        assert_eq!(outstanding.take_unsent(0, 1, ALL), [acknowledge(1).into()]);
        outstanding.add(acknowledge(2).into());
        outstanding.applied(&[acknowledge(1)]);
        assert_eq!(outstanding.take_unsent(1, 1, ALL), [acknowledge(2).into()]);
        outstanding.applied(&[acknowledge(2)]);
        assert_eq!(outstanding.len(), 0);
    }

    #[test]
    fn what_does_not_fit_goes_with_the_next() {
        let mut outstanding = Outstanding::default();
        (0..5).for_each(|nonce| outstanding.add(open(nonce)));
        let bytes = open(0).bytes;
        assert_eq!(outstanding.take_unsent(0, 1, (9, bytes + 1)).len(), 2);
        assert_eq!(outstanding.take_unsent(0, 1, (1, 1 << 20)).len(), 1);
        assert_eq!(outstanding.take_unsent(0, 1, ALL).len(), 2);
    }

    #[test]
    fn a_burst_is_on_its_way_in_part_and_its_bytes_are_counted() {
        let large = |nonce| Weighed { bytes: WINDOW_BYTES / 4, ..open(nonce) };
        let mut outstanding = Outstanding::default();
        (0..10).for_each(|nonce| outstanding.add(large(nonce)));
        let all = (1_000, usize::MAX);
        assert_eq!(outstanding.take_unsent(0, 10, all).len(), 4);
        assert!(outstanding.take_unsent(5, 10, all).is_empty(), "the window is full");
        outstanding.applied(&[large(0).command, large(9).command]);
        assert_eq!(outstanding.take_unsent(6, 10, all), [large(4)]);
        outstanding.resend_late(10);
        assert_eq!(outstanding.take_unsent(10, 10, all), [large(1), large(2), large(3)]);
        assert_eq!(outstanding.bytes(), 8 * (WINDOW_BYTES / 4));
        (1..9).for_each(|nonce| outstanding.applied(&[large(nonce).command]));
        assert_eq!((outstanding.bytes(), outstanding.bytes_sent), (0, 0));
        assert!(outstanding.due.is_empty() && outstanding.unsent.is_empty());
    }
}
