//! What goes into the machine: entries of the log and the commands they hold.
//!
//! Invariant: everything a step depends on is in here or in the state.
//! Not here: how entries are ordered (the server's Paxos) and who may say what (its admission).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    code::CodeHash,
    encoding::{self, DecodeError},
    engine::EngineIdentity,
    limits::Limits,
    names::{AlarmId, ClassName, InvocationId, MethodName, ObjectName, SessionId, Step, Time},
    outcome::LimitExceeded,
    sum::Sum,
};

/// The version of the machine's behaviour that this code runs.
pub const STATE_MACHINE_VERSION: u32 = 2;

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogEntry {
    /// The first: what the group is. Later ones change nothing.
    Genesis(Box<Genesis>),
    /// A replica begins to lead.
    LeaderStart {
        /// With this ballot.
        ballot: Ballot,
        /// Ordered time is at least this from here on.
        now: Time,
    },
    /// Commands that a leader ordered together.
    Batch(Batch),
}

impl LogEntry {
    /// The bytes to put into the log.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encoding::encode(self)
    }

    /// Reads an entry from the log.
    ///
    /// # Errors
    /// When the bytes are not exactly one entry.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        encoding::decode(bytes)
    }
}

/// What a group is from its first entry on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Genesis {
    /// The cluster.
    pub cluster: u128,
    /// Version of the machine's behaviour.
    pub state_machine_version: u32,
    /// All that guests draw as random comes from this.
    pub seed: [u8; 32],
    /// The replicas.
    pub replicas: Vec<u64>,
    /// The engine that every replica runs.
    pub engine: EngineIdentity,
    /// The limits.
    pub limits: Limits,
    /// Names of the standard classes, and the only code that may have them.
    pub reserved: BTreeMap<ClassName, CodeHash>,
}

/// A leader's ballot, ordered as Paxos orders it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ballot {
    /// Configuration of the group.
    pub configuration: u32,
    /// Number of the ballot.
    pub number: u32,
    /// Priority of the replica.
    pub priority: u32,
    /// The replica.
    pub replica: u64,
}

/// Commands that share a stamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Ballot of the leader that ordered them. A batch of another ballot than the current one is
    /// void.
    pub ballot: Ballot,
    /// Ordered time of their steps, later than the stamp before.
    pub stamp: Time,
    /// The commands, in order.
    pub commands: Vec<Command>,
}

/// One ordered input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A client opens a session.
    OpenSession {
        /// Chosen by the client: a second opening with it returns the same session.
        nonce: u128,
        /// Who opens it.
        principal: String,
        /// Silence after which it expires, nanoseconds.
        timeout: u64,
    },
    /// A client closes its session.
    CloseSession {
        /// The session.
        session: SessionId,
    },
    /// The leader has not heard of a session for its timeout.
    ExpireSession {
        /// The session.
        session: SessionId,
    },
    /// A client asks for something.
    Request(Request),
    /// A client gives up a request.
    Cancel {
        /// Session and numbers of the request.
        place: Place,
        /// What the client has received.
        acknowledged: Acknowledged,
    },
    /// A client tells what it has received.
    Acknowledge {
        /// Its session.
        session: SessionId,
        /// What it has received.
        acknowledged: Acknowledged,
    },
    /// A replica has compiled a module, or could not.
    Compiled {
        /// The replica.
        replica: u64,
        /// The module.
        code: CodeHash,
        /// Why it could not.
        failure: Option<String>,
    },
    /// A replica says what its state was after a step.
    Vote {
        /// The replica.
        replica: u64,
        /// The step.
        step: Step,
        /// Hash of its state then.
        hash: Sum,
    },
    /// An object is to come up to date with its class, since a read needs it.
    Migrate {
        /// The object.
        object: ObjectName,
    },
}

impl Command {
    /// Bytes of its encoding, in an entry and in a message between replicas.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        encoding::length(self)
    }
}

/// Where a request stands among those of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The session.
    pub session: SessionId,
    /// Number of the request: greater than those before.
    pub number: u64,
    /// Number of the request before it; 0 for the first.
    pub previous: u64,
}

/// What a client has received of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Numbers of requests whose replies it has, as ranges with both ends.
    pub replies: Vec<(u64, u64)>,
    /// Number of the last event it has, all before included.
    pub events: u64,
}

/// A numbered request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Its place in its session.
    pub place: Place,
    /// What the client has received.
    pub acknowledged: Acknowledged,
    /// Time left until its deadline, nanoseconds, counted from its admission.
    pub time_left: Option<u64>,
    /// What it asks for.
    pub body: RequestBody,
}

/// Whose session a call runs under: the one that its body sees, that owns what it acquires for its
/// session, and whose end cancels it. The end of the session that asked cancels it in any case.
///
/// A gateway asks through sessions of its own for clients that it serves, so that their calls need no
/// numbers and may come through any gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnBehalf {
    /// The session that asked.
    #[default]
    Requester,
    /// None: what needs a session is answered as in a handler.
    Nobody,
    /// Another session, which must be open.
    Session(SessionId),
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestBody {
    /// Invokes a method.
    Call {
        /// The object.
        object: ObjectName,
        /// The method.
        method: MethodName,
        /// Hash of the method's signature as the caller knows it.
        signature: u64,
        /// Its encoded arguments.
        #[serde(with = "serde_bytes")]
        arguments: Vec<u8>,
        /// Whose session it runs under.
        on_behalf: OnBehalf,
    },
    /// Creates an object.
    CreateObject {
        /// The object.
        object: ObjectName,
        /// Hash of the signature of `init` as the caller knows it.
        signature: u64,
        /// Encoded arguments of `init`.
        #[serde(with = "serde_bytes")]
        arguments: Vec<u8>,
    },
    /// Removes an object; its callers end with `ObjectRemoved`.
    RemoveObject {
        /// The object.
        object: ObjectName,
    },
    /// Loads a class; the reply comes when it can be called.
    PutClass {
        /// Its name.
        class: ClassName,
        /// Its module.
        #[serde(with = "serde_bytes")]
        module: Vec<u8>,
        /// How it takes the place of other code, if it may.
        replace: Option<Replace>,
    },
    /// Cancels an invocation.
    Kill {
        /// The invocation.
        invocation: InvocationId,
    },
    /// Ends a session, as if it had expired.
    KillSession {
        /// The session; not the one that asks, which closes itself.
        session: SessionId,
    },
    /// Removes a class that has no objects.
    RemoveClass {
        /// The class.
        class: ClassName,
    },
    /// Changes a limit.
    SetLimit {
        /// Its name.
        name: String,
        /// Its value from now on.
        value: u64,
    },
    /// Ends a fault of a handler.
    EndFault {
        /// The object that keeps it.
        object: ObjectName,
        /// The alarm that had called the handler.
        fault: AlarmId,
        /// Whether the handler is called once more, by a new alarm that goes off at once.
        retry: bool,
    },
}

/// How new code takes the place of old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replace {
    /// Where the layout of the state changes, blocked calls of the class are cancelled, and clean up,
    /// instead of being in the way.
    pub cancel_pinned: bool,
}

/// A read: not ordered, run against the state as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Session and number of the last update before it, which must have been admitted.
    pub after: Option<(SessionId, u64)>,
    /// Who asks.
    pub principal: String,
    /// The object.
    pub object: ObjectName,
    /// The method.
    pub method: MethodName,
    /// Hash of the method's signature as the caller knows it.
    pub signature: u64,
    /// Its encoded arguments.
    pub arguments: Vec<u8>,
}

impl Request {
    /// Whether the request keeps to the limits that are checked before ordering; the machine checks
    /// them again.
    ///
    /// # Errors
    /// The limit it breaks.
    pub fn check(&self, limits: &Limits) -> Result<(), LimitExceeded> {
        self.body.check(limits)
    }
}

impl RequestBody {
    /// See [`Request::check`].
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), LimitExceeded> {
        match self {
            Self::Call { arguments, .. } | Self::CreateObject { arguments, .. } => {
                crate::limits::within(
                    "argument_bytes",
                    limits.argument_bytes,
                    arguments.len() as u64,
                )
            }
            Self::PutClass { module, .. } => {
                crate::limits::within("module.bytes", limits.module.bytes, module.len() as u64)
            }
            Self::RemoveObject { .. }
            | Self::Kill { .. }
            | Self::KillSession { .. }
            | Self::RemoveClass { .. }
            | Self::SetLimit { .. }
            | Self::EndFault { .. } => Ok(()),
        }
    }
}
