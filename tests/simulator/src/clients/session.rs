//! A client's session: its requests and reads that have not ended.
//!
//! Invariant: a request keeps its number and its predecessor until it is answered; what was given up
//! is from then on sent as a cancel only.

use std::collections::BTreeMap;

use gesmas_machine::{
    Acknowledged, MethodName, Place, Read, Refusal, Request, RequestBody, SessionId, Step,
};

use super::{FIRST_RETRY, LAST_RETRY, acknowledged::Received};
use crate::{
    catalog::{Call, Catalog},
    messages::Ask,
    prng::Prng,
    verdict::{Checked, Violation},
};

/// A request that has not been answered.
#[derive(Debug)]
pub(super) struct Pending {
    place: Place,
    body: RequestBody,
    pub(super) call: Option<Call>,
    pub(super) given_up: bool,
    /// When it is sent again.
    due: u64,
    wait: u64,
    sent: bool,
}

impl Pending {
    /// In words.
    pub(super) fn name(&self) -> String {
        let given_up = if self.given_up { " (given up)" } else { "" };
        let name = self.call.as_ref().map_or("set-up", |call| call.method);
        format!("{name}{given_up}")
    }
}

/// A read that has not been answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) call: Call,
    /// Last request before it.
    after: u64,
    due: u64,
    /// Step that the client had seen when it asked first.
    pub(super) seen: Step,
    sent: bool,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) nonce: u128,
    last: u64,
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) reads: BTreeMap<u64, Asked>,
    received: Received,
    unacknowledged: bool,
    /// Until when the service has promised that it lives.
    pub(super) lease: u64,
    /// Whether the service has said that it lives since the cluster is in order. One that had not may
    /// have ended before.
    pub(super) lives_in_order: bool,
    /// Whether its client closes it.
    pub(super) closing: bool,
}

impl Session {
    pub(super) fn new(id: SessionId, nonce: u128) -> Self {
        Self {
            id,
            nonce,
            last: 0,
            pending: BTreeMap::new(),
            reads: BTreeMap::new(),
            received: Received::default(),
            unacknowledged: false,
            lease: 0,
            lives_in_order: false,
            closing: false,
        }
    }

    /// Whether its class and object are there.
    pub(super) fn is_ready(&self) -> bool {
        self.pending.values().all(|pending| pending.call.is_some())
    }

    /// A new request.
    pub(super) fn add(&mut self, body: RequestBody, call: Option<Call>) {
        let place = Place { session: self.id, number: self.last + 1, previous: self.last };
        self.last += 1;
        let pending =
            Pending { place, body, call, given_up: false, due: 0, wait: FIRST_RETRY, sent: false };
        self.pending.insert(self.last, pending);
    }

    /// A new read.
    pub(super) fn add_read(&mut self, correlation: u64, call: Call) {
        let asked = Asked { call, after: self.last, due: 0, seen: Step(0), sent: false };
        self.reads.insert(correlation, asked);
    }

    /// Another replica is asked from now on.
    pub(super) fn send_all_again(&mut self) {
        self.pending.values_mut().for_each(|pending| pending.due = 0);
        self.reads.values_mut().for_each(|asked| asked.due = 0);
    }

    /// Gives up some calls; the number of those that were not given up before.
    pub(super) fn give_up(&mut self, which: impl Fn(&Call) -> bool) -> u64 {
        let mut number = 0;
        let chosen = |pending: &&mut Pending| pending.call.as_ref().is_some_and(&which);
        for pending in self.pending.values_mut().filter(chosen) {
            number += u64::from(!pending.given_up);
            if !pending.given_up {
                pending.given_up = true;
                pending.due = 0;
            }
        }
        number
    }

    /// Gives up one request, if there is one.
    pub(super) fn give_up_one(&mut self, prng: &mut Prng) -> u64 {
        let can = |pending: &&mut Pending| {
            // What gives something back is never given up: its holder would have it for ever.
            let call = pending.call.as_ref();
            pending.sent && call.is_some_and(|call| !matches!(call.method, "unlock" | "release"))
        };
        let mut candidates: Vec<_> = self.pending.values_mut().filter(can).collect();
        if candidates.is_empty() {
            return 0;
        }
        let chosen = prng.index(candidates.len());
        candidates[chosen].given_up = true;
        candidates[chosen].due = 0;
        1
    }

    /// Sends what is due; the number of requests that were sent before.
    pub(super) fn send_due(&mut self, now: u64, asks: &mut Vec<Ask>) -> u64 {
        let mut again = 0;
        let acknowledged = self.received.ranges();
        for pending in self.pending.values_mut().filter(|pending| pending.due <= now) {
            again += u64::from(pending.sent);
            pending.sent = true;
            pending.due = now + pending.wait;
            pending.wait = (pending.wait * 2).min(LAST_RETRY);
            let (place, acknowledged) = (pending.place, acknowledged.clone());
            asks.push(if pending.given_up {
                Ask::Cancel { place, acknowledged }
            } else {
                let body = pending.body.clone();
                let time_left = pending.call.as_ref().and_then(|call| call.time_left);
                Ask::Request(Box::new(Request { place, acknowledged, time_left, body }))
            });
        }
        again
    }

    /// Asks the reads that are due.
    pub(super) fn ask_due(
        &mut self,
        now: u64,
        client: usize,
        seen: Step,
        catalog: &Catalog,
        asks: &mut Vec<Ask>,
    ) {
        let session = self.id;
        for (&correlation, asked) in self.reads.iter_mut().filter(|(_, asked)| asked.due <= now) {
            if !asked.sent {
                asked.sent = true;
                asked.seen = seen;
            }
            asked.due = now + LAST_RETRY / 2;
            let read = Read {
                after: Some((session, asked.after)),
                principal: format!("client-{client}"),
                object: asked.call.object.clone(),
                method: MethodName::new(asked.call.method).expect("a name"),
                signature: catalog.signature(&asked.call),
                arguments: asked.call.arguments.clone(),
            };
            let seen = asked.seen;
            asks.push(Ask::Read { session, correlation, read: Box::new(read), seen });
        }
    }

    /// The calls that wait and were not given up, with their methods.
    pub(super) fn waiting(&self) -> impl Iterator<Item = ((SessionId, u64), &'static str)> + '_ {
        let pending = self.pending.iter().filter(|(_, pending)| !pending.given_up);
        pending.filter_map(|(number, pending)| {
            let call = pending.call.as_ref()?;
            Some(((self.id, *number), call.method))
        })
    }

    /// Number of the last event that it has.
    pub(super) fn last_event(&self) -> u64 {
        self.received.events
    }

    /// Whether an event is the next; one that is not comes again.
    pub(super) fn take_event(&mut self, number: u64) -> bool {
        let is_next = number == self.received.events + 1;
        if is_next {
            self.received.events = number;
            self.unacknowledged = true;
        }
        is_next
    }

    /// A request is answered; none when it had been before.
    pub(super) fn take_answered(&mut self, number: u64) -> Option<Pending> {
        let pending = self.pending.remove(&number)?;
        self.received.add(number);
        self.unacknowledged = true;
        Some(pending)
    }

    /// An acknowledgement of its own, now and then; mostly they ride on requests.
    pub(super) fn take_acknowledgement(&mut self, prng: &mut Prng) -> Option<Acknowledged> {
        if !self.unacknowledged || !prng.permille(150) {
            return None;
        }
        self.unacknowledged = false;
        Some(self.received.ranges())
    }

    /// A request was turned away.
    pub(super) fn refused(&mut self, number: u64, refusal: &Refusal) -> Checked {
        match refusal {
            Refusal::OutOfOrder { last } => {
                // What comes after the last that was admitted is sent again, in order.
                let unsent = self.pending.range_mut(last + 1..);
                unsent.for_each(|(_, pending)| pending.due = 0);
                Ok(())
            }
            Refusal::Forgotten if self.pending.contains_key(&number) => Err(Violation::new(
                "exactly once",
                format!("the reply to {number} of session {} is gone before it came", self.id),
            )),
            _ => Ok(()),
        }
    }

    /// A planted fault: a request is sent under a new number although it may have been admitted.
    pub(super) fn renumber(&mut self) {
        let first = self.pending.iter().find(|(_, pending)| pending.sent && pending.call.is_some());
        if let Some((&number, _)) = first {
            let Pending { body, call, .. } = self.pending.remove(&number).expect("just found");
            self.received.add(number);
            self.add(body, call);
        }
    }

    /// A planted fault: a reply is acknowledged that has not come.
    pub(super) fn acknowledge_early(&mut self) {
        if let Some((&number, _)) = self.pending.iter().find(|(_, pending)| pending.sent) {
            self.received.add(number);
        }
    }
}
