//! Checkpoints: steps after which the replicas compare their states by votes in the log.
//!
//! Invariant: a judgement stands. Whoever votes otherwise than an agreed majority, before or after, has
//! diverged; where nobody could agree, votes of a later life of a replica change nothing.
//! Source: design of gesmas, section 4, point 13.

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::{names::Step, state::State, sum::Sum};

/// Checkpoints that are remembered; votes on older ones change nothing.
const KEPT: usize = 64;

/// Ordered time of one reign for which replicas that contradict each other wait for one that decides,
/// nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// What the replicas said of their states after one step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The newest vote of each replica.
    pub(crate) votes: OrdMap<u64, Sum>,
    /// What a majority has.
    pub(crate) agreed: Option<Sum>,
    /// Whether it was found that no majority has the same.
    pub(crate) hopeless: bool,
}

/// How the votes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody contradicts, and there are too few.
    Open,
    /// A majority has this.
    Agreed(Sum),
    /// Votes differ, and those that are missing can still make a majority.
    Disputed,
    /// No majority is possible.
    Hopeless,
}

impl Checkpoint {
    /// How the votes of a group of so many stand.
    pub(crate) fn standing(&self, members: usize) -> Standing {
        let majority = members / 2 + 1;
        let of = |sum: &Sum| self.votes.values().filter(|vote| *vote == sum).count();
        let Some((most, sum)) = self.votes.values().map(|sum| (of(sum), *sum)).max() else {
            return Standing::Open;
        };
        let missing = members.saturating_sub(self.votes.len());
        match () {
            () if most >= majority => Standing::Agreed(sum),
            () if most + missing < majority => Standing::Hopeless,
            () if most < self.votes.len() => Standing::Disputed,
            () => Standing::Open,
        }
    }
}

impl State {
    /// Whether states are compared after a step.
    pub(crate) fn is_checkpoint(&self, step: Step) -> bool {
        let genesis = self.genesis.as_ref();
        genesis.is_some_and(|genesis| {
            step.0 > 0 && step.0.is_multiple_of(genesis.limits.checkpoint_steps.max(1))
        })
    }

    /// Whether a step was compared so long ago that nothing is known of it any more.
    pub(crate) fn is_long_compared(&self, step: Step) -> bool {
        let oldest = self.checkpoints.get_min().map(|(oldest, _)| *oldest);
        self.checkpoints.len() >= KEPT && oldest.is_some_and(|oldest| step < oldest)
    }

    /// Remembers how the votes on a step stand, in place of the oldest if there are too many.
    pub(crate) fn keep_checkpoint(&mut self, step: Step, checkpoint: Checkpoint) {
        self.checkpoints.insert(step, checkpoint);
        while self.checkpoints.len() > KEPT {
            let (oldest, _) = self.checkpoints.get_min().cloned().expect("there are too many");
            self.checkpoints.remove(&oldest);
        }
    }

    /// Votes on a step contradict each other; an older dispute goes first.
    pub(crate) fn begin_dispute(&mut self, step: Step) {
        let until = self.now.after(PATIENCE);
        self.dispute.get_or_insert((step, until));
    }

    /// The votes on a step are judged, and with it what was before: a majority that agrees later does
    /// not differ any more, and a replica that does is found then.
    pub(crate) fn end_dispute(&mut self, step: Step) {
        self.dispute.take_if(|(disputed, _)| *disputed <= step);
    }

    /// A reign begins: nobody could vote in the time since the last, which may have been hours.
    pub(crate) fn prolong_dispute(&mut self) {
        let end = self.now.after(PATIENCE);
        if let Some((_, until)) = &mut self.dispute {
            *until = end;
        }
    }

    /// Gives up the step on which votes have contradicted each other for too long.
    pub(crate) fn give_up_old_dispute(&mut self) -> Option<Step> {
        let now = self.now;
        let (step, _) = self.dispute.take_if(|(_, until)| *until <= now)?;
        self.checkpoints.get_mut(&step)?.hopeless = true;
        Some(step)
    }
}
