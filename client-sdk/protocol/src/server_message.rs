//! What a server says: the fields of its messages.
//!
//! Invariant: each message names what it belongs to (a session and a number, or a correlation), so
//! that a client needs no memory of the order in which it asked.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    admin::{AdminError, AdminReply},
    error::{ErrorCode, ErrorId, OverReason, ReadError, Refusal},
    message::{Outcome, Position},
};

/// Answers [`Hello`](crate::Hello).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both sides speak from now on.
    pub version: u16,
    /// The replica.
    pub replica: u64,
    /// The cluster.
    pub cluster: u128,
    /// Greatest body of a frame that the server takes, bytes.
    pub frame_bytes: u32,
    /// Greatest arguments of a call, bytes.
    pub argument_bytes: u64,
    /// Greatest module, bytes.
    pub module_bytes: u64,
    /// Greatest number of open requests of a session.
    pub requests_per_session: u64,
    /// Longest timeout of a session, nanoseconds.
    pub session_timeout_max_ns: u64,
    /// Name and version of the server's software, for logs.
    pub server: String,
}

/// Answers [`OpenSession`](crate::OpenSession); the session is attached to the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// From the opening.
    pub correlation: u64,
    /// The session.
    pub session: u64,
    /// Its timeout, nanoseconds: what was asked for, within the server's limits.
    pub timeout_ns: u64,
}

/// Answers [`OpenSession`](crate::OpenSession) when no session could be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRefused {
    /// From the opening.
    pub correlation: u64,
    /// Why.
    pub refusal: Refusal,
}

/// Answers [`AttachSession`](crate::AttachSession). The replies that are stored for the session
/// follow, and those of its open requests when they end: a client sends nothing again that was
/// admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAttached {
    /// The session.
    pub session: u64,
    /// Number of its last request that was admitted, as far as the replica knows.
    pub last_admitted: u64,
}

/// A session has ended. Nothing more comes for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOver {
    /// The session.
    pub session: u64,
    /// Why.
    pub reason: OverReason,
}

/// Answers [`KeepAlive`](crate::KeepAlive), once the leader, who watches over sessions, has heard of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    /// The session.
    pub session: u64,
    /// From the keep-alive.
    pub correlation: u64,
    /// Number of its last request that was admitted, as far as the replica knows. A client that has
    /// sent more than that for long sends it again.
    pub last_admitted: u64,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The session.
    pub session: u64,
    /// Number of the request.
    pub number: u64,
    /// The step in which it ended.
    pub position: Position,
    /// Result or error.
    pub outcome: Outcome,
}

/// A request (or cancel) was not admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The session.
    pub session: u64,
    /// Number of the request.
    pub number: u64,
    /// Why.
    pub refusal: Refusal,
    /// Finds the details in the server's log; none for what the client handles by itself.
    pub id: Option<ErrorId>,
}

impl Reply {
    /// Id under which the server that sent the reply has logged its error. None for what its class
    /// or caller meant, which nobody logs.
    #[must_use]
    pub fn error_id(&self) -> Option<ErrorId> {
        let error = self.outcome.as_ref().err()?;
        (!error.is_meant()).then(|| ErrorId::of_step(self.position))
    }
}

/// The end of a read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadReply {
    /// From the read.
    pub correlation: u64,
    /// What the replica had applied when it read.
    pub position: Position,
    /// Result or error.
    pub result: Result<Bytes, ReadError>,
    /// Finds the details of an error in the server's log.
    pub id: Option<ErrorId>,
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The session.
    pub session: u64,
    /// Number of the event; numbers of a session rise by one from 1.
    pub number: u64,
    /// The step that sent it.
    pub position: Position,
    /// What was sent.
    pub payload: Bytes,
}

/// Events of a session that made way for newer ones before they were acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventGap {
    /// The session.
    pub session: u64,
    /// Number of the first event that is gone.
    pub from: u64,
    /// Number of the last event that is gone.
    pub to: u64,
}

/// Answers [`Admin`](crate::Admin).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminAnswer {
    /// From the question.
    pub correlation: u64,
    /// Answer or error.
    pub result: Result<AdminReply, AdminError>,
}

/// Something came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} (error {id:016x}, {code})")]
pub struct ErrorMessage {
    /// Drawn by the server, whose log has the details under it.
    pub id: u64,
    /// What the error belongs to, when it belongs to a read, an opening or a question.
    pub correlation: Option<u64>,
    /// What went wrong, for programs.
    pub code: ErrorCode,
    /// What went wrong, for people.
    pub message: String,
}

/// The server shuts down: the client should connect to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoingAway {
    /// Why, for people.
    pub reason: String,
}
