//! Typed stubs over sessions: what class crates generate calls through here.
//!
//! Dropping the future of a stub's method cancels the call, and nobody hears what became of it: it may
//! have been withdrawn, or served just before, and then what it was granted stays with the session. So
//! things that a session holds are taken by [`Session::lock`] and its like. Who wants to hear the end
//! makes the call by [`Session::call`], gives it up by [`PendingCall::withdraw`](crate::PendingCall::withdraw),
//! and reads it off [`CallFailure::fate`].

use gesmas_protocol::CallError;
use gesmas_sdk::stub::{CallMode, Invoke, InvokeError, StubCall};

use crate::{failure::CallFailure, handle::Session};

impl Invoke for Session {
    type Error = CallFailure;

    async fn invoke(&self, call: StubCall) -> Result<Vec<u8>, InvokeError<CallFailure>> {
        let StubCall { class, object, method, signature, arguments, mode } = call;
        let result = match mode {
            CallMode::Update => self.call(class, object, method, signature, arguments).await,
            CallMode::Read => self.read(class, object, method, signature, arguments).await,
            CallMode::Create => self.create_object(class, object, signature, arguments).await,
        };
        result.map(Vec::from).map_err(invoke_error)
    }
}

/// Tells errors of the class from all others.
pub(crate) fn invoke_error(failure: CallFailure) -> InvokeError<CallFailure> {
    match failure {
        CallFailure::Failed(CallError::Failed(error) | CallError::InitRefused(error), _) => {
            InvokeError::Failed(error.into())
        }
        CallFailure::Failed(CallError::Aborted(error), _) => InvokeError::Aborted(error.into()),
        failure => InvokeError::Other(failure),
    }
}
