//! How methods fail.
//!
//! Invariant: a method's error is either its cancellation, which has no encoding since the kernel
//! knows the reason, or an error enum of its class, which the interface lists.

use std::{error::Error, fmt};

use gesmas_abi::{
    Malformed,
    value::{Type, Value, from_bytes, to_bytes},
};

use crate::class::Finish;

/// What a method returns. Without a second type, its only failure is its cancellation.
pub type Result<T, E = Cancelled> = core::result::Result<T, E>;

/// The call was cancelled: by its deadline, its caller, the end of its session or an operator while it
/// was blocked, or because its wait would have closed a circle.
///
/// A method that gets it may clean up and should return: a `p()` that would block again gets it
/// once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call was cancelled")
    }
}

impl Error for Cancelled {}

/// Why a permit for the caller's session was not acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAcquired {
    /// The call was cancelled while it waited.
    Cancelled,
    /// The caller's session is over; the call runs on because it is detached.
    SessionOver,
    /// There is no session: handlers, and some calls, run on nobody's behalf.
    NoSession,
}

impl fmt::Display for NotAcquired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "the call was cancelled",
            Self::SessionOver => "the caller's session is over",
            Self::NoSession => "a handler has no session that could own a permit",
        })
    }
}

impl Error for NotAcquired {}

/// A call whose session is over has nobody to answer, so it may end as a cancelled one does.
impl From<NotAcquired> for Cancelled {
    fn from(_: NotAcquired) -> Self {
        Self
    }
}

/// What a method can fail with: [`Cancelled`], or an enum marked [`#[error]`](crate::error).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error of a class",
    note = "mark the enum with `#[error]`, or return `Result<T>`, which fails only with `Cancelled`"
)]
pub trait MethodError: Sized {
    /// Its type in the interface, none for the cancellation.
    const TYPE: Option<Type>;

    /// Ends the method with this error.
    fn finish(self) -> Finish;

    /// The bytes that [`ctx::abort`](crate::ctx::abort) sends.
    fn into_payload(self) -> Vec<u8>;

    /// The error of these bytes.
    ///
    /// # Errors
    /// [`Malformed`] when they are not those of such an error.
    fn from_payload(payload: &[u8]) -> core::result::Result<Self, Malformed>;
}

impl MethodError for Cancelled {
    const TYPE: Option<Type> = None;

    fn finish(self) -> Finish {
        Finish::Cancelled
    }

    fn into_payload(self) -> Vec<u8> {
        Vec::new()
    }

    fn from_payload(payload: &[u8]) -> core::result::Result<Self, Malformed> {
        if payload.is_empty() {
            Ok(Self)
        } else {
            Err(Malformed("the method's interface lists no error"))
        }
    }
}

/// Marks the enums of `#[error]`; they are values too.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error of a class",
    label = "is not marked `#[error]`",
    note = "mark the enum with `#[error]`, or return `Result<T>`, which fails only with `Cancelled`"
)]
pub trait ErrorEnum: Value {}

impl<E: ErrorEnum> MethodError for E {
    const TYPE: Option<Type> = Some(<E as Value>::TYPE);

    fn finish(self) -> Finish {
        Finish::Failed(to_bytes(&self))
    }

    fn into_payload(self) -> Vec<u8> {
        to_bytes(&self)
    }

    fn from_payload(payload: &[u8]) -> core::result::Result<Self, Malformed> {
        from_bytes(payload)
    }
}
