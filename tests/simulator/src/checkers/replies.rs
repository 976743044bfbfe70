//! One reply: whatever replica answers a request, and however often, it says the same.
//!
//! So an acknowledged effect is never taken back: a reply that was lost with a part of the log
//! would come again with another step.

use std::collections::BTreeMap;

use gesmas_machine::{Outcome, SessionId, Step};

use crate::verdict::{Checked, demand};

/// All replies of the run.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    known: BTreeMap<(SessionId, u64), (Step, Outcome)>,
}

impl Replies {
    /// A replica answers a request.
    pub(crate) fn said(
        &mut self,
        replica: u64,
        (session, number): (SessionId, u64),
        step: Step,
        outcome: &Outcome,
    ) -> Checked {
        match self.known.get(&(session, number)) {
            None => {
                self.known.insert((session, number), (step, outcome.clone()));
                Ok(())
            }
            Some((first, known)) => demand(*first == step && known == outcome, "one reply", || {
                format!(
                    "replica {replica} answers request {number} of session {session} with \
                     {outcome:?} at {step}, it was {known:?} at {first}"
                )
            }),
        }
    }
}
