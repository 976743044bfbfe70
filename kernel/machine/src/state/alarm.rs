//! Alarms: timers, deadlines, the ends of timed waits, and watches of sessions.
//!
//! One sequence of ids orders them all: alarms that are due at the same time go off in the order in
//! which they were made.

use serde::{Deserialize, Serialize};

use crate::{
    names::{AlarmId, Incarnation, InvocationId, MethodName, ObjectName, SessionId, Time},
    sum::{Kind, Sum},
};

/// Something that happens later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alarm {
    /// When; none for a watch whose session lives.
    pub(crate) due: Option<Time>,
    /// Object whose sum holds its record.
    pub(crate) object: ObjectName,
    pub(crate) action: AlarmAction,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AlarmAction {
    /// The invocation's deadline passes.
    Deadline(InvocationId),
    /// The invocation's timed `P` is over.
    WaitTimeout(InvocationId),
    /// A handler runs: at `due`, or when the session is over.
    Handler {
        incarnation: Incarnation,
        handler: MethodName,
        #[serde(with = "serde_bytes")]
        arguments: Vec<u8>,
        watched: Option<SessionId>,
    },
}

impl Alarm {
    /// Sum of its record.
    pub(crate) fn record(&self, id: AlarmId) -> Sum {
        Sum::of(Kind::Alarm, &(id, self))
    }
}
