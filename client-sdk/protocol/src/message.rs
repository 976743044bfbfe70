//! Messages: what clients and servers say to each other.
//!
//! The order of a connection: the client says [`Hello`], the server [`Welcome`]; then sessions are
//! opened and attached, in any number, and each message names the one it belongs to.
//! Invariants: a message's kind is its number in the tables below, for ever; a changed message gets
//! a new number. A request may be sent many times, through many connections, and means the same.
//! Not here: the fields of the messages (`client_message.rs`, `server_message.rs`); when to send what (the client library's session core; the server's admission).

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use crate::{
    client_message::{
        Acknowledge, Admin, AttachSession, Cancel, CloseSession, Hello, KeepAlive, OnBehalf,
        OpenSession, Read, Replace, Request, RequestBody,
    },
    server_message::{
        AdminAnswer, Alive, ErrorMessage, Event, EventGap, GoingAway, ReadReply, Refused, Reply,
        SessionAttached, SessionOpened, SessionOver, SessionRefused, Welcome,
    },
};
use crate::{
    error::CallError,
    frame::{self, Frame, FrameError},
};

/// The end of an admitted request: the encoded result, or why there is none.
pub type Outcome = Result<Bytes, CallError>;

macro_rules! messages {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $kind:literal => $variant:ident($body:ty),)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant($body),)* }

        impl $name {
            /// Number of the message's kind in frames.
            #[must_use]
            pub const fn kind(&self) -> u16 {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// Appends the message as a frame, so that many go out in one write.
            ///
            /// # Errors
            /// [`FrameError::TooLarge`] when it does not fit into a frame; nothing is appended.
            pub fn append_to(&self, output: &mut Vec<u8>) -> Result<(), FrameError> {
                match self { $(Self::$variant(body) => frame::append($kind, body, output),)* }
            }

            /// Decodes a frame.
            ///
            /// # Errors
            /// [`FrameError`] when it is not one of these messages, whole and nothing else.
            pub fn from_frame(frame: &Frame) -> Result<Self, FrameError> {
                match frame.kind {
                    $($kind => crate::encoding::read(&frame.body).map(Self::$variant),)*
                    kind => Err(FrameError::UnknownKind { kind }),
                }
            }
        }

        $(impl From<$body> for $name {
            fn from(body: $body) -> Self {
                Self::$variant(body)
            }
        })*
    };
}

messages!(
    /// What a client says.
    ClientMessage {
        /// Opens the connection.
        1 => Hello(Hello),
        /// Opens a session.
        2 => OpenSession(OpenSession),
        /// Brings a session to this connection.
        3 => AttachSession(AttachSession),
        /// Ends a session.
        4 => CloseSession(CloseSession),
        /// Keeps a session alive.
        5 => KeepAlive(KeepAlive),
        // 6 was a request that could not be made on behalf of another session.
        /// Gives up a request.
        7 => Cancel(Cancel),
        /// Acknowledges replies and events when no request carries the acknowledgement.
        8 => Acknowledge(Acknowledge),
        /// A read.
        9 => Read(Read),
        // 10 was a question of an operator that was answered from what the replica had.
        /// An ordered request.
        11 => Request(Request),
        /// A question of an operator.
        12 => Admin(Admin),
    }
);

messages!(
    /// What a server says.
    ServerMessage {
        /// Answers [`Hello`].
        101 => Welcome(Welcome),
        /// Answers [`OpenSession`].
        102 => SessionOpened(SessionOpened),
        /// Answers [`OpenSession`] when no session could be opened.
        103 => SessionRefused(SessionRefused),
        /// Answers [`AttachSession`].
        104 => SessionAttached(SessionAttached),
        /// A session has ended. Also answers [`AttachSession`] and [`CloseSession`].
        105 => SessionOver(SessionOver),
        /// Answers [`KeepAlive`].
        106 => Alive(Alive),
        /// The end of a request.
        107 => Reply(Reply),
        /// A request was not admitted.
        108 => Refused(Refused),
        /// The end of a read.
        109 => ReadReply(ReadReply),
        /// An event of a session.
        110 => Event(Event),
        /// Events of a session that made way.
        111 => EventGap(EventGap),
        /// Answers [`Admin`].
        112 => AdminAnswer(AdminAnswer),
        /// Something came to nothing.
        113 => Error(ErrorMessage),
        /// The server shuts down.
        114 => GoingAway(GoingAway),
    }
);

/// A place in the one order of all steps.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Position {
    /// Counts restores of the cluster from a backup.
    pub epoch: u64,
    /// Counts steps.
    pub step: u64,
}

/// Replies and events that the client has and the server may forget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Numbers of requests whose replies arrived: ranges with both ends, rising, apart; at most
    /// [`Acknowledged::RANGES_MAX`] in a message.
    #[serde(deserialize_with = "crate::encoding::bounded::<{ Acknowledged::RANGES_MAX }, _, _>")]
    pub replies: Vec<(u64, u64)>,
    /// Number of the last event that was consumed, with all before it; 0 for none.
    pub events: u64,
}

impl Acknowledged {
    /// Ranges that one message carries. A message with more does not decode.
    pub const RANGES_MAX: usize = 1_024;
}
