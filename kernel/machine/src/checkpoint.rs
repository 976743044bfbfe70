//! What a replica remembers of its own checkpoints: the hashes it voted for, and the newest states.
//!
//! A state costs what is changed after it, since it shares all else with the machine's. Whoever
//! finds that it has diverged compares its state of that step, record by record, with that of
//! somebody who has not.
//! Invariants: nothing here is replicated or decides anything in the machine; which states are kept
//! follows from the log, so that replicas which have run for long have those of the same steps.

use std::collections::VecDeque;

use crate::{image::Snapshot, machine::Machine, names::Step, sum::Sum};

/// Hashes that are remembered.
const HASHES: usize = 64;
/// States that are remembered: the oldest that are not judged yet, since their turn comes first, and
/// the one that was agreed on last.
const STATES: usize = 4;

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct OwnCheckpoints {
    hashes: VecDeque<(Step, Sum)>,
    states: VecDeque<(Step, Snapshot)>,
}

impl OwnCheckpoints {
    pub(crate) fn add(&mut self, step: Step, hash: Sum, state: Snapshot) {
        self.hashes.push_back((step, hash));
        if self.hashes.len() > HASHES {
            self.hashes.pop_front();
        }
        if self.states.len() < STATES {
            self.states.push_back((step, state));
        }
    }

    /// A majority has agreed on a step: what was before it is settled.
    pub(crate) fn agreed(&mut self, step: Step) {
        while self.states.get(1).is_some_and(|(next, _)| *next <= step) {
            self.states.pop_front();
        }
    }
}

impl<E> Machine<E> {
    /// Hash of this machine's state after a step, if it was a checkpoint and is not long ago.
    #[must_use]
    pub fn hash_after(&self, step: Step) -> Option<Sum> {
        self.checkpoints.hashes.iter().find(|(at, _)| *at == step).map(|(_, hash)| *hash)
    }

    /// This machine's state after a step, if it is remembered.
    #[must_use]
    pub fn state_after(&self, step: Step) -> Option<&Snapshot> {
        self.checkpoints.states.iter().find(|(at, _)| *at == step).map(|(_, state)| state)
    }

    /// Replicas that voted on a step, and for which hash.
    pub fn votes(&self, step: Step) -> impl Iterator<Item = (u64, Sum)> + '_ {
        let checkpoint = self.world.state.checkpoints.get(&step);
        checkpoint.into_iter().flat_map(|found| found.votes.iter().map(|(id, sum)| (*id, *sum)))
    }

    /// The newest step after which a majority had one state; none before the first.
    #[must_use]
    pub fn agreed_step(&self) -> Option<Step> {
        let mut newest = self.world.state.checkpoints.iter().rev();
        newest.find(|(_, checkpoint)| checkpoint.agreed.is_some()).map(|(step, _)| *step)
    }

    /// The newest step after which a replica, by its own vote, had the majority's state.
    #[must_use]
    pub fn agreed_with(&self, replica: u64) -> Option<Step> {
        let mut newest = self.world.state.checkpoints.iter().rev();
        let agrees = newest.find(|(_, checkpoint)| {
            checkpoint.agreed.is_some()
                && checkpoint.votes.get(&replica) == checkpoint.agreed.as_ref()
        });
        agrees.map(|(step, _)| *step)
    }
}
