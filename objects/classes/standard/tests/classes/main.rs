//! Every standard class keeps its promises, natively and as the module that is shipped.
//!
//! A file for each class. Where calls wait for each other, seeds draw the order in which the calls of several
//! clients arrive, and the file says what must hold in any.
//! Not here: kills and restarts at each suspension point (`tests/durability`), several replicas and
//! faults (`tests/simulator`).

mod barrier;
mod counter;
mod delay_queue;
mod edges;
mod election;
mod handlers;
mod latch;
mod lease;
mod lock;
mod membership;
mod priority_queue;
mod queue;
mod rate_limiter;
mod register;
mod rw_lock;
mod semaphore;
mod tuple_space;
mod work_queue;

use std::{fmt::Debug, time::Duration};

use gesmas_machine::{CallError, CancelReason};
use gesmas_sdk::{Cancelled, stub::StubError};
use gesmas_testkit::{Class, Ended};

/// The standard class of this name.
fn standard(name: &str) -> Class {
    let native = gesmas_classes::native().into_iter().find(|class| class.name == name);
    let module = gesmas_classes::find(name).expect("it is standard").module;
    Class::new(native.expect("it is standard"), module)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The error of its class that a call returned.
fn failed<T: Debug, E: Debug>(ended: Result<T, StubError<E, Ended>>) -> E {
    match ended {
        Err(StubError::Failed(error)) => error,
        other => panic!("it did not fail with an error of its class: {other:?}"),
    }
}

/// What a call ends with that its caller has given up, if its class has no word of its own for it.
fn given_up<T>() -> Result<T, StubError<Cancelled, Ended>> {
    let reason = CallError::Cancelled(CancelReason::Caller);
    Err(StubError::Other(Ended::Failed(reason)))
}
