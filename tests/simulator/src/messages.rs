//! What clients and replicas say to each other.
//!
//! The words are those of the client protocol; their encoding has tests of its own and plays no
//! part here.

use gesmas_machine::{
    Acknowledged, Outcome, Place, Read, Refusal, Request, SessionEnd, SessionId, Step,
};

/// From a client.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Open {
        nonce: u128,
        timeout: u64,
    },
    /// When it was asked, and the last event that the client has.
    KeepAlive {
        session: SessionId,
        asked: u64,
        events: u64,
    },
    Request(Box<Request>),
    Cancel {
        place: Place,
        acknowledged: Acknowledged,
    },
    Acknowledge {
        session: SessionId,
        acknowledged: Acknowledged,
    },
    Close {
        session: SessionId,
    },
    Read {
        session: SessionId,
        correlation: u64,
        read: Box<Read>,
        seen: Step,
    },
}

/// To a client.
#[derive(Clone, Debug)]
pub(crate) enum Tell {
    Opened {
        nonce: u128,
        session: Result<SessionId, Refusal>,
    },
    Alive {
        session: SessionId,
        asked: u64,
    },
    /// Its replica takes part in nothing now.
    Away,
    Event {
        session: SessionId,
        number: u64,
        payload: Vec<u8>,
    },
    Reply {
        session: SessionId,
        number: u64,
        step: Step,
        outcome: Outcome,
    },
    Refused {
        session: SessionId,
        number: u64,
        refusal: Refusal,
    },
    Over {
        session: SessionId,
        reason: Option<SessionEnd>,
    },
    ReadReply {
        correlation: u64,
        step: Step,
        result: Result<Outcome, Refusal>,
    },
    Busy,
}
