//! How a tuple is handed to the calls that wait for one.
//!
//! In the order of their tickets, in portions; each call that is woken looks for itself.
//! Invariant: while a tuple is there, each call that waits and that it is for was woken since it was put, or
//! the tuple is in `handing` with a ticket before that of the call.

use std::iter;

use gesmas_sdk::{abi::value::Value as _, prelude::*};

use crate::{
    TupleSpace, TupleSpaceError,
    place::{Shelf, Template, Tuple, matches},
};

/// Calls that a tuple wakes in one step, and that one step looks at.
const PORTION: u32 = 500;

/// How far a tuple is handed to the calls that wait.
#[derive(Value)]
pub(crate) struct Handing {
    pub(crate) shelf: Shelf,
    /// The ticket of the last call that was looked at.
    pub(crate) after: u64,
    pub(crate) alarm: Alarm,
}

/// A call that waits.
#[derive(Value)]
pub(crate) struct Waiting {
    pub(crate) template: Template,
    pub(crate) takes: bool,
}

/// Calls that wait and that a tuple is for: the ticket of each, and whether it takes.
struct Fitting {
    calls: Vec<(u64, bool)>,
    /// The last ticket that was looked at; nothing if there are no others.
    until: Option<u64>,
}

impl TupleSpace {
    /// Wakes the calls that a tuple is for and whose tickets are after this one, in the order in which they
    /// came, up to the first that takes it, or a portion of them: then with which ticket to go on. Each looks
    /// for itself when it goes on, before any other call begins.
    pub(crate) fn wake_for(
        &mut self,
        tuple: &Tuple,
        after: u64,
    ) -> Result<Option<u64>, TupleSpaceError> {
        // While another tuple is handed on, a call that is woken for this one may take that one.
        let alone = after == 0 && self.handing.is_empty();
        let shelves = Shelf::of_waiting_for(tuple)?;
        let [nearer, further] = shelves.map(|shelf| self.waiting_on(&shelf, tuple, after));
        let until = [nearer.until, further.until].into_iter().flatten().min();
        // Tickets rise on each shelf; up to `until`, both were looked at.
        let mut nearer = nearer.calls.into_iter().peekable();
        let mut further = further.calls.into_iter().peekable();
        let calls = iter::from_fn(|| match (nearer.peek(), further.peek()) {
            (Some(one), Some(other)) if other < one => further.next(),
            (Some(_), _) => nearer.next(),
            (None, _) => further.next(),
        });
        let calls = calls.take_while(|(ticket, _)| until.is_none_or(|until| *ticket <= until));
        let (mut portion, length) = (Portion::of(PORTION), tuple.encoded_len());
        let mut last = after;
        for (ticket, takes) in calls {
            let mut gate = self.gates.at(&ticket);
            // One that failed without tidying up waits no more.
            if gate.waiters() > 0 {
                if !portion.takes(length) {
                    return Ok(Some(last));
                }
                gate.v();
                if takes {
                    return Ok((!alone).then_some(ticket));
                }
            }
            last = ticket;
        }
        Ok(until)
    }

    /// The first calls, after a ticket, that are written down on a shelf and that a tuple is for.
    fn waiting_on(&self, shelf: &Shelf, tuple: &Tuple, after: u64) -> Fitting {
        let (mut calls, mut until) = (Vec::new(), None);
        let mut portion = Portion::of(PORTION);
        for ((places, values, ticket), waiting) in
            self.waiting.iter_after(&shelf.clone().with(after))
        {
            if !shelf.is(places, &values) {
                return Fitting { calls, until: None };
            }
            if !portion.takes(waiting.template.encoded_len()) {
                return Fitting { calls, until };
            }
            if matches(&waiting.template, tuple) {
                calls.push((ticket, waiting.takes));
            }
            until = Some(ticket);
        }
        Fitting { calls, until: None }
    }

    /// Other calls that wait for a tuple are looked at a little later.
    pub(crate) fn hand_later(&mut self, id: u64, shelf: Shelf, after: u64) {
        let alarm = ctx::after(Duration::ZERO, Self::HAND_ON, (id,));
        self.handing.insert(&id, Handing { shelf, after, alarm });
    }
}
