//! One history: all replicas decide equal entries at equal indices, and are in equal states at
//! equal points of their work.
//!
//! A point is the number of pieces of work that a machine has done since it was empty, so states are
//! compared far more often than entries are applied, in the middle of steps too.
//! Invariant: what was seen once is never taken back; a replica that restarts is compared again from
//! the first entry on that it has, and from the state of its snapshot on.

use std::collections::BTreeMap;

use crate::{
    trace::hash,
    verdict::{Checked, Counts, demand},
};

/// Everything that was decided, and every state.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Vec<u64>,
    states: Vec<u64>,
    /// Pieces of work that were done when all entries below an index were applied.
    pieces: BTreeMap<u64, usize>,
}

impl History {
    /// A replica has this entry as decided.
    pub(crate) fn decided(&mut self, replica: u64, index: u64, entry: &[u8]) -> Checked {
        let hash = hash(entry);
        let at = usize::try_from(index).expect("it is in memory");
        match self.entries.get(at) {
            Some(known) => demand(*known == hash, "one log", || {
                format!("replica {replica} has another entry {index} than was decided before")
            }),
            None => {
                let length = self.entries.len();
                demand(length == at, "one log", || {
                    format!("replica {replica} decides entry {index} before entry {length}")
                })?;
                self.entries.push(hash);
                Ok(())
            }
        }
    }

    /// A replica is in this state after so many pieces of work.
    pub(crate) fn state(&mut self, replica: u64, pieces: usize, state: u64) -> Checked {
        match self.states.get(pieces) {
            Some(known) => demand(*known == state, "one state", || {
                format!("replica {replica} differs from others after {pieces} pieces of work")
            }),
            None => {
                assert_eq!(pieces, self.states.len(), "work is counted piece by piece");
                self.states.push(state);
                Ok(())
            }
        }
    }

    /// A replica has applied everything below an index after so many pieces of work.
    pub(crate) fn applied(&mut self, replica: u64, index: u64, pieces: usize) -> Checked {
        let known = *self.pieces.entry(index).or_insert(pieces);
        demand(known == pieces, "one state", || {
            format!(
                "replica {replica} did {pieces} pieces of work for the entries below {index}, \
                 others did {known}"
            )
        })
    }

    /// Pieces of work that make the state of a snapshot at an index.
    pub(crate) fn pieces(&self, index: u64) -> usize {
        if index == 0 { 0 } else { self.pieces[&index] }
    }

    /// Entries decided.
    pub(crate) fn length(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Adds what it has seen.
    pub(crate) fn count(&self, counts: &mut Counts) {
        counts.entries = self.entries.len() as u64;
        counts.compared_states = self.states.len() as u64;
    }
}
