//! What a session does about a request that was not admitted.
//!
//! | refusal | answer |
//! |---|---|
//! | out of order | send again from the one after the last admitted, after a short pause |
//! | class unknown | ask for the class, send again when it is there |
//! | class pending, busy, no leader, a limit that passes | send again after a growing pause |
//! | forgotten | the outcome is unknown |
//! | either of these, and the session has one request only | it was another one: tell the caller |
//! | session unknown | the session is over |
//! | anything else | send a cancel in the request's place; tell the caller when that is answered |
//!
//! Invariant: a refused request either goes again under its number or is followed by a cancel under
//! it, so that the requests behind it find their predecessor.

use gesmas_protocol::{ErrorId, OverReason, Refusal};

use super::{
    core::{Output, SessionCore},
    pipeline::Stall,
    reads::passes,
    settings::Role,
};
use crate::{
    clock::Moment,
    failure::{CallFailure, UnknownReason},
};

impl<T> SessionCore<T> {
    pub(super) fn refuse(
        &mut self,
        now: Moment,
        number: u64,
        refusal: Refusal,
        id: Option<ErrorId>,
    ) {
        match refusal {
            Refusal::OutOfOrder { last } if self.is_single() => {
                // It is open when it is the last one itself.
                if last != number {
                    self.refuse_single(number, Refusal::OutOfOrder { last });
                }
            }
            Refusal::Forgotten if self.is_single() => {
                self.refuse_single(number, Refusal::Forgotten);
            }
            // The pause lets the refusals of all that followed arrive before they are sent again.
            Refusal::OutOfOrder { last } if last < number => {
                self.pipeline.rewind(last + 1);
                if self.pipeline.stall.is_none() {
                    self.pipeline.pause(now);
                }
            }
            // It was admitted meanwhile, by an earlier sending whose reply is still to come.
            Refusal::OutOfOrder { .. } => {}
            Refusal::Forgotten => {
                let ticket = self.pipeline.remove(number).and_then(|entry| entry.ticket);
                let failure = CallFailure::Unknown(UnknownReason::Forgotten);
                self.outputs.extend(ticket.map(|ticket| Output::Resolved(ticket, Err(failure))));
            }
            Refusal::SessionUnknown => self.end(OverReason::Unknown),
            Refusal::ClassUnknown { class } => {
                self.pipeline.rewind(number);
                self.pipeline.stall = Some(Stall::Class(class.clone()));
                self.outputs.push_back(Output::ClassNeeded(class, id));
            }
            refusal if passes(&refusal) => {
                if matches!(refusal, Refusal::Limit(_)) {
                    self.acknowledgements.hurry(now);
                }
                self.pipeline.rewind(number);
                self.pipeline.pause(now);
            }
            refusal => self.give_up(now, number, CallFailure::Refused(refusal, id)),
        }
    }

    const fn is_single(&self) -> bool {
        matches!(self.role(), Role::Single { .. })
    }

    /// The one request of the session was another one.
    pub(super) fn refuse_single(&mut self, number: u64, refusal: Refusal) {
        let ticket = self.pipeline.remove(number).and_then(|entry| entry.ticket);
        let failure = CallFailure::Refused(refusal, None);
        self.outputs.extend(ticket.map(|ticket| Output::Resolved(ticket, Err(failure))));
    }

    /// Ends a request that can never be admitted; a cancel takes its place.
    fn give_up(&mut self, now: Moment, number: u64, failure: CallFailure) {
        let Some(entry) = self.pipeline.entries.get(&number) else { return };
        let again = entry.given_up;
        self.pipeline.rewind(number);
        if again {
            // Even the cancel was refused. It must be admitted some day; there is no other way on.
            self.pipeline.pause(now);
        } else {
            self.pipeline.refuse(number, failure);
        }
    }

    /// The class that was asked for is there, or (with a failure) will not be.
    pub(crate) fn class_settled(
        &mut self,
        now: Moment,
        class: &str,
        failure: Option<&CallFailure>,
    ) {
        self.reads.class_settled(class, failure, &mut self.outputs);
        if self.pipeline.stall != Some(Stall::Class(class.into())) {
            return;
        }
        self.pipeline.stall = None;
        if let Some(failure) = failure
            && let Some(number) = self.pipeline.first_waiting_for(class)
        {
            self.give_up(now, number, failure.clone());
        }
    }
}
