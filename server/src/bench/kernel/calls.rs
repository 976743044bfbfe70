//! Calls of typed stubs as requests for the machine, without a client.
//!
//! The stub of a class knows names, signature and encoding of its methods; here its call is caught
//! instead of sent.

use std::{
    future::Future,
    pin::pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use gesmas_machine::{MethodName, ObjectName, OnBehalf, RequestBody};
use gesmas_sdk::stub::{CallMode, Invoke, InvokeError, StubCall};

/// Where a stub's call ends up.
#[derive(Default)]
pub(super) struct Net(Mutex<Option<StubCall>>);

/// A call that was caught has no result.
#[derive(Debug)]
pub(super) struct Caught;

impl Invoke for &Net {
    type Error = Caught;

    async fn invoke(&self, call: StubCall) -> Result<Vec<u8>, InvokeError<Caught>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
        Err(InvokeError::Other(Caught))
    }
}

impl Net {
    /// What a stub over this net asks for.
    pub(super) fn catch<F: Future>(&self, call: F) -> RequestBody {
        let ended = pin!(call).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(ended, Poll::Ready(_)), "a caught call ends at once");
        let caught = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let StubCall { class, object, method, signature, arguments, mode } =
            caught.expect("a stub makes its call");
        let object = ObjectName::new(class, &object).expect("the benchmark's names are good");
        match mode {
            CallMode::Create => RequestBody::CreateObject { object, signature, arguments },
            CallMode::Update => {
                let method = MethodName::new(method).expect("stubs have good names");
                RequestBody::Call {
                    object,
                    method,
                    signature,
                    arguments,
                    on_behalf: OnBehalf::Requester,
                }
            }
            CallMode::Read => panic!("reads are no requests"),
        }
    }
}
