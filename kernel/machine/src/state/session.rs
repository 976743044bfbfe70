//! Sessions: what a client has asked for, what it is owed, and what it owns.
//!
//! Invariant: every number up to `last_admitted` is open, or has a stored reply, or is over for
//! good; so a request runs at most once however often it is sent.

use std::{collections::VecDeque, sync::Arc};

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::{
    effect::Position,
    names::{AlarmId, InvocationId, PermitId, SessionId},
    outcome::Outcome,
    sum::{Kind, Sum},
};

/// A client's lease on the service.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) nonce: u128,
    pub(crate) principal: Arc<str>,
    /// Nanoseconds.
    pub(crate) timeout: u64,
    /// Number of the last request admitted.
    pub(crate) last_admitted: u64,
    /// Requests that have not ended.
    pub(crate) open: OrdMap<u64, Open>,
    /// Blocked invocations that others asked for on its behalf.
    pub(crate) lent: OrdSet<InvocationId>,
    /// Replies that are not acknowledged.
    pub(crate) replies: OrdMap<u64, StoredReply>,
    pub(crate) permits: OrdSet<PermitId>,
    /// Watches of this session, in order of registration.
    pub(crate) watches: OrdSet<AlarmId>,
    /// Events that are not acknowledged, oldest first.
    pub(crate) events: VecDeque<Event>,
    /// Number of the next event.
    pub(crate) next_event: u64,
    /// Number of the last event acknowledged.
    pub(crate) events_acknowledged: u64,
    /// Sum of its own record, without replies and events.
    pub(crate) head: Sum,
    /// Sum of all its records.
    pub(crate) sum: Sum,
}

/// A request that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Open {
    /// Its invocation.
    Invocation(InvocationId),
    /// It waits until its class can be called.
    PutClass,
}

/// A reply, kept until it is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredReply {
    pub(crate) epoch: u32,
    pub(crate) step: u64,
    #[serde(with = "crate::outcome::in_one_piece")]
    pub(crate) outcome: Outcome,
    /// Sum of its record, which follows from the rest and is no part of an image.
    #[serde(skip)]
    pub(crate) sum: Sum,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) epoch: u32,
    pub(crate) step: u64,
    #[serde(with = "serde_bytes")]
    pub(crate) payload: Vec<u8>,
}

impl Session {
    /// A session that has asked for nothing.
    pub(crate) fn new(id: SessionId, nonce: u128, principal: Arc<str>, timeout: u64) -> Self {
        let mut session = Self {
            nonce,
            principal,
            timeout,
            last_admitted: 0,
            open: OrdMap::new(),
            lent: OrdSet::new(),
            replies: OrdMap::new(),
            permits: OrdSet::new(),
            watches: OrdSet::new(),
            events: VecDeque::new(),
            next_event: 1,
            events_acknowledged: 0,
            head: Sum::default(),
            sum: Sum::default(),
        };
        session.head = session.record(id);
        session.sum = session.head;
        session
    }

    /// Brings `head` up to date; returns what it was and what it is.
    pub(crate) fn refresh(&mut self, id: SessionId) -> (Sum, Sum) {
        let old = self.head;
        self.head = self.record(id);
        (old, self.head)
    }

    /// Gives each reply its sum, which decoding leaves out.
    pub(crate) fn sum_replies(&mut self, id: SessionId) {
        let replies = std::mem::take(&mut self.replies).into_iter().map(|(number, mut reply)| {
            reply.sum = reply.record(id, number);
            (number, reply)
        });
        self.replies = replies.collect();
    }

    /// Sum of its own record.
    pub(crate) fn record(&self, id: SessionId) -> Sum {
        Sum::of(
            Kind::Session,
            &(
                (id, self.nonce, &self.principal, self.timeout),
                (self.last_admitted, self.next_event, self.events_acknowledged),
            ),
        )
    }
}

impl StoredReply {
    /// Where it belongs in the history.
    pub(crate) fn position(&self) -> Position {
        Position { epoch: self.epoch, step: crate::names::Step(self.step) }
    }

    /// Sum of its record.
    pub(crate) fn record(&self, session: SessionId, number: u64) -> Sum {
        Sum::of(Kind::Reply, &(session, number, self))
    }
}

impl Event {
    /// Sum of its record.
    pub(crate) fn record(&self, session: SessionId) -> Sum {
        Sum::of(Kind::Event, &(session, self))
    }
}
