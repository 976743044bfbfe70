//! One history: all replicas decide equal entries at equal indices, and are in equal states at
//! equal points of their work.
//!
//! A point is the number of pieces of work that a machine has done since it was empty, so states are
//! compared far more often than entries are applied, in the middle of steps too.
//! Invariant: what was seen once is never taken back; a replica that restarts is compared again from
//! the first entry on that it has, and from the state of its snapshot on.

use std::collections::BTreeMap;

use gesmas_machine::{Ballot, Command, LogEntry, SessionId, Statistics};

use crate::{
    trace::hash,
    verdict::{Checked, Counts, demand},
};

/// Everything that was decided, and every state.
#[derive(Debug)]
pub(crate) struct History {
    /// Whether anything is compared.
    compares: bool,
    entries: Vec<u64>,
    states: Vec<u64>,
    /// Pieces of work that were done when all entries below an index were applied.
    pieces: BTreeMap<u64, usize>,
    /// Under which ballot requests were ordered last.
    ordered: BTreeMap<(SessionId, u64), Ballot>,
    /// Statistics of the machine that did the newest piece of work, when it began the entry.
    entry_began: Option<Statistics>,
    counts: Counts,
}

impl History {
    /// Nothing was decided yet. It compares, or only counts.
    pub(crate) fn new(compares: bool) -> Self {
        Self {
            compares,
            entries: Vec::new(),
            states: Vec::new(),
            pieces: BTreeMap::new(),
            ordered: BTreeMap::new(),
            entry_began: None,
            counts: Counts::default(),
        }
    }

    /// A replica has this entry as decided.
    pub(crate) fn decided(&mut self, replica: u64, index: u64, entry: &[u8]) -> Checked {
        let hash = hash(entry);
        let at = usize::try_from(index).expect("it is in memory");
        match self.entries.get(at) {
            Some(known) => demand(*known == hash || !self.compares, "one log", || {
                format!("replica {replica} has another entry {index} than was decided before")
            }),
            None => {
                let length = self.entries.len();
                demand(length == at || !self.compares, "one log", || {
                    format!("replica {replica} decides entry {index} before entry {length}")
                })?;
                self.entries.push(hash);
                self.note_entry(entry);
                Ok(())
            }
        }
    }

    /// Counts what a new entry holds.
    fn note_entry(&mut self, entry: &[u8]) {
        let Ok(LogEntry::Batch(batch)) = LogEntry::decode(entry) else { return };
        self.counts.commands += batch.commands.len() as u64;
        for command in &batch.commands {
            let Command::Request(request) = command else { continue };
            let key = (request.place.session, request.place.number);
            if let Some(earlier) = self.ordered.insert(key, batch.ballot) {
                self.counts.ordered_again += 1;
                self.counts.ordered_by_two_leaders += u64::from(earlier != batch.ballot);
            }
        }
    }

    /// A replica is in this state after so many pieces of work. True when it is the first there.
    pub(crate) fn state(&mut self, replica: u64, pieces: usize, state: u64) -> Checked<bool> {
        match self.states.get(pieces) {
            Some(known) => {
                demand(*known == state || !self.compares, "one state", || {
                    format!("replica {replica} differs from others after {pieces} pieces of work")
                })?;
                Ok(false)
            }
            None => {
                let follows = pieces == self.states.len() || !self.compares;
                assert!(follows, "work is counted piece by piece");
                self.states.push(state);
                Ok(true)
            }
        }
    }

    /// Counts what a machine has done in a piece of work: of what all do once, what is new.
    pub(crate) fn note_work(
        &mut self,
        is_new: bool,
        (before, after): (Statistics, Statistics),
        ends_entry: bool,
    ) {
        self.counts.rebuilt += after.rebuilt - before.rebuilt;
        self.counts.parked += after.parked - before.parked;
        if !is_new {
            self.entry_began = None;
            return;
        }
        self.counts.blocked += after.blocked_invocations - before.blocked_invocations;
        self.counts.undone_segments += after.undone_segments - before.undone_segments;
        self.counts.void_batches += after.void_batches - before.void_batches;
        let began = *self.entry_began.get_or_insert(before);
        if ends_entry {
            let cancelled = after.cancellations > began.cancellations;
            let granted = after.resumptions > began.resumptions;
            self.counts.cancels_beside_grants += u64::from(cancelled && granted);
            self.entry_began = None;
        }
    }

    /// A replica has applied everything below an index after so many pieces of work.
    pub(crate) fn applied(&mut self, replica: u64, index: u64, pieces: usize) -> Checked {
        let known = *self.pieces.entry(index).or_insert(pieces);
        demand(known == pieces || !self.compares, "one state", || {
            format!(
                "replica {replica} did {pieces} pieces of work for the entries below {index}, \
                 others did {known}"
            )
        })
    }

    /// Pieces of work that make the state of a snapshot at an index.
    pub(crate) fn pieces(&self, index: u64) -> usize {
        self.pieces.range(..=index).next_back().map_or(0, |(_, pieces)| *pieces)
    }

    /// Entries decided.
    pub(crate) fn length(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Commands that were ordered, and invocations that blocked.
    pub(crate) fn work(&self) -> (u64, u64) {
        (self.counts.commands, self.counts.blocked)
    }

    /// Adds what it has seen.
    pub(crate) fn count(&self, counts: &mut Counts) {
        counts.add(&self.counts);
        counts.entries = self.entries.len() as u64;
        counts.compared_states = self.states.len() as u64;
    }
}
