//! Votes: replicas compare their states through the log.
//!
//! After every so many steps each replica hashes its whole state and says the hash by a command. The
//! step of the vote that makes a majority tells all replicas what is right; one whose own state has
//! another hash has diverged, and finds itself at the same place of the log as everybody finds it.
//! Invariants: the votes on a step are judged once, when they agree or no longer can; a late,
//! repeated or foreign vote changes nothing; what is kept is bounded.
//! Not here: what a replica does that has diverged (the server).
//! Source: design of gesmas, section 4, point 13.

use crate::{
    effect::Effect,
    engine::Engine,
    machine::Machine,
    names::Step,
    state::{Checkpoint, Standing},
    sum::Sum,
};

impl<E: Engine> Machine<E> {
    pub(super) fn vote(&mut self, replica: u64, step: Step, hash: Sum) {
        let state = &mut self.world.state;
        let known = state.genesis().replicas.contains(&replica);
        let past = step < state.step && state.is_checkpoint(step);
        if !known || !past || state.is_long_compared(step) {
            return;
        }
        let mut checkpoint = state.checkpoints.get(&step).cloned().unwrap_or_default();
        if checkpoint.votes.insert(replica, hash) == Some(hash) {
            return;
        }
        match checkpoint.agreed {
            None if checkpoint.hopeless => {}
            None => self.judge(step, &mut checkpoint),
            Some(agreed) if agreed == hash => {}
            Some(_) => self.world.staged.push(Effect::VotedOtherwise { step, replica }),
        }
        self.world.state.keep_checkpoint(step, checkpoint);
    }

    fn judge(&mut self, step: Step, checkpoint: &mut Checkpoint) {
        let state = &mut self.world.state;
        match checkpoint.standing(state.genesis().replicas.len()) {
            Standing::Open => {}
            Standing::Disputed => state.begin_dispute(step),
            Standing::Hopeless => {
                checkpoint.hopeless = true;
                state.end_dispute(step);
                self.world.staged.push(Effect::NoAgreement { step });
            }
            Standing::Agreed(hash) => {
                state.end_dispute(step);
                checkpoint.agreed = Some(hash);
                self.checkpoints.agreed(step);
                self.world.staged.push(Effect::Agreed { step, hash });
                let others = checkpoint.votes.iter().filter(|(_, vote)| **vote != hash);
                let others = others.map(|(&replica, _)| Effect::VotedOtherwise { step, replica });
                self.world.staged.extend(others);
            }
        }
    }
}
