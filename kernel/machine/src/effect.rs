//! What comes out of the machine: the effects of steps.
//!
//! Invariant: effects of a step leave together, in order, when the step is over; an undone segment
//! leaves none but its log lines.
//! Not here: who receives them. Every replica has every effect; the one that holds a client's
//! connection sends what is for it.

use crate::{
    code::CodeHash,
    names::{ClassName, InvocationId, ObjectName, SessionId, Step},
    outcome::{Outcome, Refusal},
    sum::Sum,
};

/// Where in the history an effect belongs: clients never accept an older position than the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Raised when a cluster is restored from a backup.
    pub epoch: u32,
    /// The step.
    pub step: Step,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// Its client closed it.
    Closed,
    /// Nobody heard of it for its timeout.
    Expired,
    /// An operator ended it.
    Killed,
}

/// One output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A session is open.
    SessionOpened {
        /// As the client chose it.
        nonce: u128,
        /// The session, or why there is none.
        session: Result<SessionId, Refusal>,
    },
    /// A session is over.
    SessionOver {
        /// The session.
        session: SessionId,
        /// Why.
        reason: SessionEnd,
    },
    /// A request has ended.
    Reply {
        /// Its session.
        session: SessionId,
        /// Its number.
        number: u64,
        /// When.
        position: Position,
        /// How.
        outcome: Outcome,
    },
    /// A request or cancel was not admitted.
    Refused {
        /// Its session.
        session: SessionId,
        /// Its number.
        number: u64,
        /// Why.
        refusal: Refusal,
    },
    /// A session has an event.
    Event {
        /// The session.
        session: SessionId,
        /// Number of the event in its session.
        number: u64,
        /// When.
        position: Position,
        /// What.
        payload: Vec<u8>,
    },
    /// This replica is to compile a module and to report by a command.
    Compile {
        /// The class.
        class: ClassName,
        /// The module's hash.
        code: CodeHash,
    },
    /// The state is to be compared: this replica is to vote.
    Checkpoint {
        /// The step after which.
        step: Step,
        /// Hash of the state then.
        hash: Sum,
    },
    /// A majority of the replicas had one state after a step.
    Agreed {
        /// The step.
        step: Step,
        /// Hash of the state then.
        hash: Sum,
    },
    /// A replica had another state after a step than the majority.
    VotedOtherwise {
        /// The step.
        step: Step,
        /// The replica.
        replica: u64,
    },
    /// No majority of the replicas had one state after a step.
    NoAgreement {
        /// The step.
        step: Step,
    },
    /// A batch was void: its requests are to be forwarded again.
    BatchVoid,
    /// A line for the operators' log.
    Log {
        /// The object whose method wrote it.
        object: ObjectName,
        /// The invocation.
        invocation: InvocationId,
        /// 1 error, 2 warning, 3 information, 4 debugging.
        level: u8,
        /// The line.
        text: String,
    },
    /// A handler failed; its object keeps the fault.
    HandlerFailed {
        /// The object.
        object: ObjectName,
        /// How, for people.
        text: String,
    },
}
