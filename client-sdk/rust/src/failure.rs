//! Why things that a client asked for did not come to be.
//!
//! Invariant: a failure says what is known of the effect. [`CallFailure::Unknown`] is said whenever
//! a request may have been admitted and its end was not heard; every other failure is certain.

use std::io;

use gesmas_protocol::{
    AdminError, CallError, CancelReason, ErrorId, ErrorMessage, FrameError, OverReason, Refusal,
};

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The request was admitted, and this is its end.
    #[error("{0}")]
    Failed(CallError, Option<ErrorId>),
    /// The request was not admitted and never will be: it did nothing.
    #[error("{0}")]
    Refused(Refusal, Option<ErrorId>),
    /// The request was sent and its end was not heard: it may or may not have taken effect.
    #[error("the outcome is unknown: {0}")]
    Unknown(UnknownReason),
    /// The request was never sent: it did nothing.
    #[error("the request was not sent: {0}")]
    NotSent(NotSentReason),
    /// The class was not loaded and could not be shipped: the request did nothing.
    #[error("class {class} could not be shipped: {error}")]
    Shipping {
        /// The class.
        class: String,
        /// How the shipping ended.
        error: CallError,
    },
}

impl CallFailure {
    /// Whether the request may have had an effect that nobody can tell.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// What became of the call.
    ///
    /// | fate | what is known |
    /// |---|---|
    /// | [`Fate::NeverRan`] | it did nothing and never will |
    /// | [`Fate::Withdrawn`] | it was cancelled before it was served: it was granted nothing |
    /// | [`Fate::Ended`] | it ran to this end |
    /// | [`Fate::Unknown`] | it may have run, and may run yet if its session lives |
    ///
    /// ```no_run
    /// # async fn example(session: gesmas_client::Session) {
    /// use std::time::Duration;
    ///
    /// use gesmas_client::Fate;
    ///
    /// let call = session.call("Queue", "jobs", "consume", 7, vec![]);
    /// match call.deadline(Duration::from_secs(5)).await {
    ///     Ok(item) => println!("{} bytes are ours", item.len()),
    ///     Err(failure) => match failure.fate() {
    ///         Fate::NeverRan | Fate::Withdrawn(_) => println!("no item was taken"),
    ///         Fate::Ended => println!("it was served, and failed: {failure}"),
    ///         Fate::Unknown(_) => println!("an item may have been taken"),
    ///     },
    /// }
    /// # }
    /// ```
    #[must_use]
    pub const fn fate(&self) -> Fate {
        match self {
            Self::Failed(CallError::Cancelled(reason), _)
            | Self::Failed(CallError::CleanupFailed { reason, .. }, _) => Fate::Withdrawn(*reason),
            Self::Failed(..) => Fate::Ended,
            Self::Refused(..) | Self::NotSent(_) | Self::Shipping { .. } => Fate::NeverRan,
            Self::Unknown(reason) => Fate::Unknown(*reason),
        }
    }

    /// Finds the details in the log of the server, where there are any.
    #[must_use]
    pub const fn id(&self) -> Option<ErrorId> {
        match self {
            Self::Failed(_, id) | Self::Refused(_, id) => *id,
            Self::Unknown(_) | Self::NotSent(_) | Self::Shipping { .. } => None,
        }
    }

    /// Stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Failed(error, _) => error.code(),
            Self::Refused(refusal, _) => refusal.code(),
            Self::Unknown(_) => "unknown",
            Self::NotSent(_) => "not-sent",
            Self::Shipping { .. } => "shipping-failed",
        }
    }
}

/// What became of a call that has no result. See [`CallFailure::fate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It did not run and never will: it was not sent, or not admitted.
    NeverRan,
    /// A cancel came before its end: it was granted nothing. It had not begun, or it was blocked; in that
    /// case what it had done before it blocked stands, and so does its clean-up.
    Withdrawn(CancelReason),
    /// It ran, and ended with an error. Some classes, `Lock` for one, have an error of their own for
    /// being cancelled while they waited, which says as much as [`Fate::Withdrawn`].
    Ended,
    /// Its end was not heard.
    Unknown(UnknownReason),
}

/// Why an outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownReason {
    /// The deadline passed and no reply had come.
    #[error("its deadline passed and no reply had come")]
    Deadline,
    /// The session ended.
    #[error("its session is over ({0})")]
    SessionOver(OverReason),
    /// The reply is gone: another user of the session acknowledged it.
    #[error("its reply is gone")]
    Forgotten,
    /// The client was shut down.
    #[error("the client was shut down")]
    Closed,
}

/// Why a request was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSentReason {
    /// The deadline passed first.
    #[error("its deadline passed first")]
    Deadline,
    /// The session is over.
    #[error("its session is over ({0})")]
    SessionOver(OverReason),
    /// Too many calls of the session are outstanding.
    #[error("{0} calls of the session are outstanding")]
    TooMany(u64),
    /// It is larger than a frame may be.
    #[error("it is larger than a frame may be")]
    TooLarge,
    /// The session was closed, or the client was shut down.
    #[error("its session was closed")]
    Closed,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No address was given.
    #[error("no endpoint was given")]
    NoEndpoint,
    /// The operating system gave no randomness, and sessions need a nonce.
    #[error("the operating system gave no randomness: {0}")]
    Random(getrandom::Error),
    /// The network failed.
    #[error("{endpoint}: {error}")]
    Network {
        /// The address.
        endpoint: String,
        /// What failed.
        error: io::Error,
    },
    /// The server sent something that is not the protocol.
    #[error("{endpoint}: {error}")]
    Protocol {
        /// The address.
        endpoint: String,
        /// What is wrong with it.
        error: FrameError,
    },
    /// The server did not want the connection.
    #[error("{endpoint}: {error}")]
    Rejected {
        /// The address.
        endpoint: String,
        /// The server's word.
        error: ErrorMessage,
    },
    /// The server answered the greeting with something else.
    #[error("{endpoint}: the server did not answer the greeting")]
    NoWelcome {
        /// The address.
        endpoint: String,
    },
    /// No endpoint could be reached in time.
    #[error("no endpoint could be reached in time{}", .last.as_ref().map(|last| format!("; the last attempt: {last}")).unwrap_or_default())]
    TimedOut {
        /// What the last attempt ran into.
        last: Option<String>,
    },
}

/// Why a session was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The cluster turned it away.
    #[error("the session was refused: {0}")]
    Refused(Refusal),
    /// The session that was to be attached is over.
    #[error("the session is over ({0})")]
    Over(OverReason),
    /// No answer came in time.
    #[error("no replica opened the session in time")]
    TimedOut,
    /// The client was shut down.
    #[error("the client was shut down")]
    Closed,
    /// The operating system gave no randomness, and sessions need a nonce.
    #[error("the operating system gave no randomness")]
    Random,
}

/// Why a question of an operator has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminFailure {
    /// The replica said so.
    #[error(transparent)]
    Answered(AdminError),
    /// The answer failed on its way.
    #[error(transparent)]
    Server(ErrorMessage),
    /// The answer belongs to another question: the server and this client disagree.
    #[error("the server answered another question")]
    OtherAnswer,
    /// No answer came in time.
    #[error("no replica answered in time")]
    TimedOut,
    /// The client was shut down.
    #[error("the client was shut down")]
    Closed,
}
