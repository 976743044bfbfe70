//! Typed stubs over sessions: what class crates generate calls through here.

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
        result.map(Vec::from).map_err(|failure| match failure {
            CallFailure::Failed(CallError::Failed(error) | CallError::InitRefused(error), _) => {
                InvokeError::Failed(error.into())
            }
            CallFailure::Failed(CallError::Aborted(error), _) => InvokeError::Aborted(error.into()),
            failure => InvokeError::Other(failure),
        })
    }
}
