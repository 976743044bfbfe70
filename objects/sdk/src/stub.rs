//! Typed client stubs.
//!
//! `#[methods]` gives each class a stub, `QueueStub` for `Queue`, with one asynchronous function
//! for each method, and descriptions of the same calls, `QueueCalls`. How a call travels is the business
//! of an [`Invoke`], which the client library implements; so a class crate depends on no client.
//! Invariant: the futures are `Send`, so that a stub works on any runtime.
//! Stubs do not exist on WebAssembly: there, an object cannot call.

use std::{error::Error, fmt, future::Future, marker::PhantomData};

use gesmas_abi::{
    Malformed,
    value::{Value, from_bytes},
};

use crate::failure::MethodError;

/// What a stub asks of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StubCall {
    /// Name of the class.
    pub class: &'static str,
    /// Name of the object within the class.
    pub object: String,
    /// The method; `init` for a creation.
    pub method: &'static str,
    /// The method's signature as the stub was compiled with it.
    pub signature: u64,
    /// The encoded arguments.
    pub arguments: Vec<u8>,
    /// How to send it.
    pub mode: CallMode,
}

/// How a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    /// Ordered.
    Update,
    /// Not ordered.
    Read,
    /// Creates the object with the arguments of its `init`.
    Create,
}

/// Sends calls of stubs. Implemented by clients.
pub trait Invoke: Sync {
    /// What can go wrong besides the class's own errors.
    type Error: Send;

    /// Sends a call and waits for its result, encoded.
    fn invoke(
        &self,
        call: StubCall,
    ) -> impl Future<Output = Result<Vec<u8>, InvokeError<Self::Error>>> + Send;
}

/// Why a client has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvokeError<T> {
    /// The method (or `init`) returned an error of its class, encoded.
    Failed(Vec<u8>),
    /// The method aborted with an error of its class, encoded.
    Aborted(Vec<u8>),
    /// Anything else: cancelled, trapped, unknown, no connection.
    Other(T),
}

/// Why a stub has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StubError<E, T> {
    /// The method returned this error; what it did stands.
    Failed(E),
    /// The method aborted with this error; its last segment is undone.
    Aborted(E),
    /// The answer does not decode: the class's code is not what the stub was compiled with.
    Malformed(Malformed),
    /// Anything else.
    Other(T),
}

impl<E: fmt::Display, T: fmt::Display> fmt::Display for StubError<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Aborted(error) => write!(f, "aborted: {error}"),
            Self::Malformed(reason) => write!(f, "the answer does not decode: {reason}"),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display, T: fmt::Debug + fmt::Display> Error for StubError<E, T> {}

/// A call that is described and not made: what a stub would send, and the types of what comes back.
///
/// `QueueCalls` describes the calls that `QueueStub` makes. A description is for a client that does more
/// with a call than to make it: that makes it when a guard is dropped, say.
pub struct TypedCall<T, E> {
    call: StubCall,
    returns: PhantomData<fn() -> (T, E)>,
}

impl<T, E> fmt::Debug for TypedCall<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl<T, E> TypedCall<T, E> {
    /// For what the macros emit.
    #[doc(hidden)]
    pub const fn new(call: StubCall) -> Self {
        Self { call, returns: PhantomData }
    }

    /// What is to be sent.
    pub fn into_call(self) -> StubCall {
        self.call
    }
}

impl<T: Value, E: MethodError> TypedCall<T, E> {
    /// Makes the call and decodes what comes back.
    ///
    /// # Errors
    /// [`StubError`], which tells errors of the class from all others.
    pub async fn invoke<I: Invoke>(self, invoker: &I) -> Result<T, StubError<E, I::Error>> {
        Self::decode(invoker.invoke(self.call).await)
    }

    /// Decodes what has come back.
    ///
    /// # Errors
    /// [`StubError`], which tells errors of the class from all others.
    pub fn decode<F>(end: Result<impl AsRef<[u8]>, InvokeError<F>>) -> Result<T, StubError<E, F>> {
        let error = match end {
            Ok(result) => return from_bytes(result.as_ref()).map_err(StubError::Malformed),
            Err(error) => error,
        };
        Err(match error {
            InvokeError::Failed(payload) => {
                E::from_payload(&payload).map_or_else(StubError::Malformed, StubError::Failed)
            }
            InvokeError::Aborted(payload) => {
                E::from_payload(&payload).map_or_else(StubError::Malformed, StubError::Aborted)
            }
            InvokeError::Other(error) => StubError::Other(error),
        })
    }
}
