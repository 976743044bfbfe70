//! What a leader orders next: commands of its own clients and those that followers forward.
//!
//! A replica forwards a command again while it waits, so the same one may come many times. It waits
//! once here, and is not taken again while it is in the log and not applied. Otherwise, whenever the
//! queue takes longer than a follower's patience, copies come faster than they leave, and the log
//! fills with them while new work starves.
//! Invariants: at most one command of a key; a command keeps its place when it comes again, so that
//! everything gets its turn; of one replica's votes the newest [`VOTES`] wait, so that clients never
//! wait behind all the checkpoints that a busy group has passed; bounded in number and bytes, ends of
//! sessions apart, of which there are no more than sessions.
//! Not here: copies of what an earlier leader ordered, which the machine makes harmless.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gesmas_machine::{Command, Step};

use super::outstanding::{Key, VOTES, Weighed, key};

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Queue {
    commands: VecDeque<Weighed>,
    bytes: usize,
    /// Number of the first command, counted from the first ever.
    first: u64,
    /// Numbers of the commands that wait.
    numbers: BTreeMap<Key, u64>,
    /// Commands that were ordered from here and are not applied.
    ordered: BTreeSet<Key>,
}

/// How much a queue holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Most {
    pub(super) commands: usize,
    pub(super) bytes: usize,
}

impl Queue {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// How many more fit, and how many bytes; none when either is used up. The last may be larger
    /// than its room.
    pub(super) fn room(&self, most: Most) -> Option<Most> {
        let commands = most.commands.saturating_sub(self.commands.len());
        let bytes = most.bytes.saturating_sub(self.bytes);
        (commands > 0 && bytes > 0).then_some(Most { commands, bytes })
    }

    /// Adds commands. One that waits already stays where it is, and a newer acknowledgement takes
    /// the older one's place.
    pub(super) fn extend(&mut self, commands: impl IntoIterator<Item = Weighed>) {
        self.extend_within(commands, Most { commands: usize::MAX, bytes: usize::MAX });
    }

    /// The same, as far as there is room; the rest is dropped and will come again.
    pub(super) fn extend_within(
        &mut self,
        commands: impl IntoIterator<Item = Weighed>,
        most: Most,
    ) {
        for weighed in commands {
            let room = self.room(most);
            let key = key(&weighed.command);
            if self.ordered.contains(&key) {
                continue;
            }
            match (self.numbers.get(&key), key) {
                (Some(&number), Key::Acknowledge(_)) => self.put_at(number, weighed),
                (Some(_), _) => {}
                (None, Key::Vote(replica, _)) if self.votes_of(replica).count() >= VOTES => {
                    self.keep_newest_votes(replica, weighed);
                }
                (None, _) if room.is_some() => {
                    self.numbers.insert(key, self.first + self.commands.len() as u64);
                    self.bytes += weighed.bytes;
                    self.commands.push_back(weighed);
                }
                (None, _) => {}
            }
        }
    }

    /// Puts a command in the place of another, which was taken out of `numbers` or has its key.
    fn put_at(&mut self, number: u64, weighed: Weighed) {
        let at = usize::try_from(number - self.first).expect("it is in memory");
        self.bytes = self.bytes - self.commands[at].bytes + weighed.bytes;
        self.commands[at] = weighed;
    }

    /// The votes of a replica that wait, by their steps, with their numbers.
    fn votes_of(&self, replica: u64) -> impl Iterator<Item = (Key, u64)> + use<'_> {
        let all = Key::Vote(replica, Step(0))..=Key::Vote(replica, Step(u64::MAX));
        self.numbers.range(all).map(|(key, number)| (*key, *number))
    }

    /// A vote more than may wait: the oldest is dropped, and the others take the places of all in the
    /// order of their steps.
    fn keep_newest_votes(&mut self, replica: u64, vote: Weighed) {
        let waiting: Vec<_> = self.votes_of(replica).collect();
        let mut votes = BTreeMap::from([(key(&vote.command), vote)]);
        let mut places = Vec::with_capacity(waiting.len());
        for (key, number) in waiting {
            let at = usize::try_from(number - self.first).expect("it is in memory");
            votes.insert(key, self.commands[at].clone());
            self.numbers.remove(&key);
            places.push(number);
        }
        votes.pop_first();
        places.sort_unstable();
        for (number, (key, vote)) in places.into_iter().zip(votes) {
            self.put_at(number, vote);
            self.numbers.insert(key, number);
        }
    }

    /// Bytes of the next command.
    pub(super) fn next_bytes(&self) -> Option<usize> {
        self.commands.front().map(|weighed| weighed.bytes)
    }

    /// Takes the next command.
    pub(super) fn pop(&mut self) -> Option<Weighed> {
        let weighed = self.commands.pop_front()?;
        self.first += 1;
        self.bytes -= weighed.bytes;
        let number = self.numbers.remove(&key(&weighed.command));
        assert_eq!(number, Some(self.first - 1), "a command is known by its number");
        Some(weighed)
    }

    /// Commands that were taken are in the log now. An acknowledgement may be followed by a newer one
    /// under the same key.
    pub(super) fn note_ordered(&mut self, commands: &[Command]) {
        let keys = commands.iter().map(key).filter(|key| !matches!(key, Key::Acknowledge(_)));
        self.ordered.extend(keys);
    }

    /// Commands of a batch that counts are being applied.
    pub(super) fn applied(&mut self, commands: &[Command]) {
        if self.ordered.is_empty() {
            return;
        }
        for command in commands {
            self.ordered.remove(&key(command));
        }
    }

    /// Drops everything: another one leads.
    pub(super) fn clear(&mut self) {
        self.first += self.commands.len() as u64;
        self.bytes = 0;
        self.commands.clear();
        self.numbers.clear();
        self.ordered.clear();
    }
}

#[cfg(test)]
mod tests {
    use gesmas_machine::{Acknowledged, SessionId};

    use super::*;

    fn open(nonce: u128) -> Weighed {
        Command::OpenSession { nonce, principal: "p".into(), timeout: 1 }.into()
    }

    fn acknowledge(events: u64) -> Weighed {
        let acknowledged = Acknowledged { events, ..Acknowledged::default() };
        Command::Acknowledge { session: SessionId(1), acknowledged }.into()
    }

    fn take_all(queue: &mut Queue) -> Vec<Weighed> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn a_command_that_comes_again_waits_once_and_keeps_its_place() {
        let mut queue = Queue::default();
        queue.extend([open(1), open(2)]);
        assert_eq!(queue.pop(), Some(open(1)));
        queue.extend([open(3), open(2), open(3), open(1)]);
        assert_eq!(take_all(&mut queue), [open(2), open(3), open(1)]);
        queue.extend([open(2)]);
        queue.clear();
        queue.extend([open(2)]);
        assert_eq!(queue.pop(), Some(open(2)));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_drops_what_is_new_and_only_that() {
        let mut queue = Queue::default();
        let two = Most { commands: 2, bytes: usize::MAX };
        queue.extend_within([open(1), acknowledge(1), open(2)], two);
        queue.extend_within([open(3), acknowledge(7)], two);
        assert_eq!(take_all(&mut queue), [open(1), acknowledge(7)]);
        let bytes = Most { commands: 9, bytes: open(1).bytes + 1 };
        queue.extend_within([open(1), open(2), open(3)], bytes);
        assert_eq!(take_all(&mut queue), [open(1), open(2)], "one may be larger than the room");
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn the_newest_votes_of_a_replica_wait_in_the_places_of_older_ones() {
        let vote = |replica, step| -> Weighed {
            Command::Vote { replica, step: Step(step), hash: Default::default() }.into()
        };
        let (mut queue, count) = (Queue::default(), VOTES as u64);
        queue.extend([vote(1, 20), open(1), vote(2, 20)]);
        queue.extend((2..=count).map(|step| vote(1, 20 * step)));
        queue.extend([open(2)]);
        let full = Most { commands: VOTES + 3, bytes: usize::MAX };
        for step in [1, count + 2, 2, count + 1, count] {
            queue.extend_within([vote(1, 20 * step)], full);
        }
        assert_eq!(queue.bytes, queue.commands.iter().map(|weighed| weighed.bytes).sum::<usize>());
        let mut expected = vec![vote(1, 60), open(1), vote(2, 20)];
        expected.extend((4..=count + 2).map(|step| vote(1, 20 * step)));
        expected.push(open(2));
        assert_eq!(take_all(&mut queue), expected);
        assert_eq!((queue.bytes, queue.numbers.len()), (0, 0));
    }

    #[test]
    fn what_is_in_the_log_is_not_taken_again_until_it_is_applied() {
        let mut queue = Queue::default();
        let commands = [open(1).command, acknowledge(3).command];
        queue.note_ordered(&commands);
        queue.extend([open(1), acknowledge(4), open(2)]);
        assert_eq!(take_all(&mut queue), [acknowledge(4), open(2)]);
        queue.applied(&commands);
        queue.extend([open(1)]);
        assert_eq!(take_all(&mut queue), [open(1)]);
        queue.note_ordered(&commands);
        queue.clear();
        queue.extend([open(1)]);
        assert_eq!(take_all(&mut queue), [open(1)], "in another reign it may have been lost");
    }
}
