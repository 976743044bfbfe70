//! What a client says: the fields of its messages.
//!
//! Invariant: whatever is sent again after a failure is sent with the same numbers, so that a server
//! can tell a repetition from something new.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    admin::AdminRequest,
    message::{Acknowledged, Position},
};

/// Opens the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Versions that the client speaks, at most [`Hello::VERSIONS_MAX`]. The frame that carries this message has the first version.
    #[serde(deserialize_with = "crate::encoding::bounded::<{ Hello::VERSIONS_MAX }, _, _>")]
    pub versions: Vec<u16>,
    /// Who the client is.
    pub token: Option<String>,
    /// Name and version of the client's software, for logs.
    pub client: String,
}

impl Hello {
    /// Versions that one greeting lists. A greeting with more does not decode.
    pub const VERSIONS_MAX: usize = 64;
}

/// Opens a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    /// Names the answer.
    pub correlation: u64,
    /// Drawn at random once per session: a second opening with it gives the same session.
    pub nonce: u128,
    /// After this long without a sign of life the session expires, nanoseconds.
    pub timeout_ns: u64,
}

/// Brings a session to this connection; another connection that had it is told nothing more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachSession {
    /// The session.
    pub session: u64,
    /// The latest position that the client has seen. The server answers from there on.
    pub seen: Position,
    /// What the client has of it. The server sends all later events again.
    pub acknowledged: Acknowledged,
    /// The request up to which all that were sent have been answered; 0 if there is none. In a cluster
    /// that was restored to a time before that, the session cannot go on.
    pub answered: u64,
}

/// Ends a session. Answered by [`SessionOver`](crate::SessionOver).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseSession {
    /// The session.
    pub session: u64,
}

/// Keeps a session alive. Answered by [`Alive`](crate::Alive).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepAlive {
    /// The session.
    pub session: u64,
    /// Comes back in the answer, so that the client knows since when it is safe.
    pub correlation: u64,
}

/// An ordered request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The session.
    pub session: u64,
    /// Its number; numbers of a session rise from 1.
    pub number: u64,
    /// Number of the session's request before it, 0 for the first.
    pub previous: u64,
    /// Time left until its deadline, nanoseconds, when it was sent.
    pub time_left_ns: Option<u64>,
    /// What the client has.
    pub acknowledged: Acknowledged,
    /// What is asked for.
    pub body: RequestBody,
}

/// Whose session a call runs under: the one that its body sees, that owns what it acquires for its
/// session, and whose end cancels it. The end of the session that asked cancels it in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnBehalf {
    /// The session that asked.
    #[default]
    Requester,
    /// None: a method that needs a session is told that it has none.
    Nobody,
    /// Another session, which must be open.
    Session(u64),
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestBody {
    /// Invokes a method.
    Call {
        /// Class of the object.
        class: String,
        /// The object.
        object: String,
        /// The method.
        method: String,
        /// Hash of the method's signature as the caller knows it.
        signature: u64,
        /// The encoded arguments.
        arguments: Bytes,
        /// Whose session it runs under.
        on_behalf: OnBehalf,
    },
    /// Creates an object.
    CreateObject {
        /// Class of the object.
        class: String,
        /// The object.
        object: String,
        /// Hash of the signature of `init` as the caller knows it.
        signature: u64,
        /// The encoded arguments of `init`.
        arguments: Bytes,
    },
    /// Removes an object.
    RemoveObject {
        /// Class of the object.
        class: String,
        /// The object.
        object: String,
    },
    /// Brings a class. The reply comes when the class can be called.
    PutClass {
        /// The class.
        class: String,
        /// Its module.
        module: Bytes,
        /// How it takes the place of other code of that name, if it may.
        replace: Option<Replace>,
    },
    /// Cancels an invocation, as an operator.
    Kill {
        /// The invocation.
        invocation: u64,
    },
    /// Ends a session, as an operator.
    KillSession {
        /// The session.
        session: u64,
    },
    /// Removes a class that has no objects.
    RemoveClass {
        /// The class.
        class: String,
    },
    /// Changes a limit, as an operator.
    SetLimit {
        /// Its name.
        name: String,
        /// Its value from now on.
        value: u64,
    },
    /// Ends a fault of a handler, as an operator.
    EndFault {
        /// Class of the object that keeps it.
        class: String,
        /// The object.
        object: String,
        /// Number of the fault.
        fault: u64,
        /// Whether the handler is called once more.
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

/// Gives up a request, and takes its place when it was not admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// The session.
    pub session: u64,
    /// Number of the request.
    pub number: u64,
    /// Number of the session's request before it.
    pub previous: u64,
    /// What the client has.
    pub acknowledged: Acknowledged,
}

/// Acknowledges replies and events when no request carries the acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledge {
    /// The session.
    pub session: u64,
    /// What the client has.
    pub acknowledged: Acknowledged,
}

/// A read: not ordered, not numbered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// Names the answer.
    pub correlation: u64,
    /// The session, when the read belongs to one.
    pub session: Option<u64>,
    /// Number of the session's last request before it: the read is served once that is admitted.
    pub after: u64,
    /// The latest position that the client has seen; no answer comes from before it.
    pub seen: Position,
    /// Time left until its deadline, nanoseconds.
    pub time_left_ns: Option<u64>,
    /// Class of the object.
    pub class: String,
    /// The object.
    pub object: String,
    /// The method.
    pub method: String,
    /// Hash of the method's signature as the caller knows it.
    pub signature: u64,
    /// The encoded arguments.
    pub arguments: Bytes,
    /// Whether the replica may answer from what it has, without asking the leader.
    pub stale: bool,
}

/// A question of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admin {
    /// Names the answer.
    pub correlation: u64,
    /// The question.
    pub request: AdminRequest,
    /// Whether the replica may answer from what it has, without asking the leader. Says nothing where
    /// the question is not about the state.
    pub stale: bool,
}
