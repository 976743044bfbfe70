//! What a leader orders next: commands of its own clients and those that followers forward.
//!
//! Whoever has a command forwards it again while it waits, so the same one may come many times. It
//! waits once here. Otherwise, whenever the queue takes longer than a follower's patience, copies
//! come faster than they leave, and the log fills with them while new work starves.
//! Invariants: at most one command of a key; a command keeps its place when it comes again, so that
//! everything gets its turn.
//! Not here: copies that come while the first is on its way to be decided, which the machine makes
//! harmless.

use std::collections::{BTreeMap, VecDeque, btree_map::Entry};

use gesmas_machine::Command;

use super::outstanding::{Key, key};

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Queue {
    commands: VecDeque<Command>,
    /// Number of the first command, counted from the first ever.
    first: u64,
    /// Numbers of the commands that wait.
    numbers: BTreeMap<Key, u64>,
}

impl Queue {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// How many more fit when there may be so many.
    pub(super) fn room(&self, most: usize) -> usize {
        most.saturating_sub(self.commands.len())
    }

    /// Adds commands. One that waits already stays where it is, and a newer acknowledgement takes
    /// the older one's place.
    pub(super) fn extend(&mut self, commands: impl IntoIterator<Item = Command>) {
        self.extend_within(commands, usize::MAX);
    }

    /// The same, as far as there may be so many; the rest is dropped and will come again.
    pub(super) fn extend_within(
        &mut self,
        commands: impl IntoIterator<Item = Command>,
        most: usize,
    ) {
        for command in commands {
            let room = self.room(most);
            match self.numbers.entry(key(&command)) {
                Entry::Occupied(there) => {
                    if matches!(command, Command::Acknowledge { .. }) {
                        let number = there.get() - self.first;
                        let at = usize::try_from(number).expect("it is in memory");
                        self.commands[at] = command;
                    }
                }
                Entry::Vacant(place) if room > 0 => {
                    place.insert(self.first + self.commands.len() as u64);
                    self.commands.push_back(command);
                }
                Entry::Vacant(_) => {}
            }
        }
    }

    /// Takes the next command.
    pub(super) fn pop(&mut self) -> Option<Command> {
        let command = self.commands.pop_front()?;
        self.first += 1;
        let number = self.numbers.remove(&key(&command));
        assert_eq!(number, Some(self.first - 1), "a command is known by its number");
        Some(command)
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.first += self.commands.len() as u64;
        self.commands.clear();
        self.numbers.clear();
    }
}

#[cfg(test)]
mod tests {
    use gesmas_machine::{Acknowledged, SessionId};

    use super::*;

    fn open(nonce: u128) -> Command {
        Command::OpenSession { nonce, principal: "p".into(), timeout: 1 }
    }

    fn acknowledge(events: u64) -> Command {
        let acknowledged = Acknowledged { events, ..Acknowledged::default() };
        Command::Acknowledge { session: SessionId(1), acknowledged }
    }

    #[test]
    fn a_command_that_comes_again_waits_once_and_keeps_its_place() {
        let mut queue = Queue::default();
        queue.extend([open(1), open(2)]);
        assert_eq!(queue.pop(), Some(open(1)));
        queue.extend([open(3), open(2), open(3), open(1)]);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, [open(2), open(3), open(1)]);
        queue.extend([open(2)]);
        queue.clear();
        queue.extend([open(2)]);
        assert_eq!(queue.pop(), Some(open(2)));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_drops_what_is_new_and_only_that() {
        let mut queue = Queue::default();
        queue.extend_within([open(1), acknowledge(1), open(2)], 2);
        queue.extend_within([open(3), acknowledge(7)], 2);
        let all: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(all, [open(1), acknowledge(7)]);
    }
}
