//! `Semaphore`: a number of permits.

use std::time::Duration;

use gesmas_sdk::stub::TypedCall;
use gesmas_semaphore::{SemaphoreCalls, SemaphoreError, SemaphoreStub};

use super::{Hold, Taken, patience};
use crate::handle::Session;

/// A semaphore of which this session may take permits.
#[derive(Clone, Debug)]
pub struct Semaphore {
    session: Session,
    calls: SemaphoreCalls,
    object: String,
}

impl Semaphore {
    pub(super) fn new(session: Session, object: String) -> Self {
        Self { session, calls: SemaphoreCalls::new(object.clone()), object }
    }

    /// Takes that many permits at once; waits until they are there. What is granted is their grant.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn acquire(&self, permits: u32) -> Taken<Hold<u64, SemaphoreError>, SemaphoreError> {
        self.session.acquire(self.calls.acquire(permits), self.release()).await
    }

    /// Takes that many permits if they are there and nobody waits.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn try_acquire(
        &self,
        permits: u32,
    ) -> Taken<Option<Hold<u64, SemaphoreError>>, SemaphoreError> {
        let call = self.calls.try_acquire(permits);
        self.session.try_acquire(call, self.session.deadline(), self.release()).await
    }

    /// Takes that many permits; waits at most that long.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn acquire_for(
        &self,
        permits: u32,
        limit: Duration,
    ) -> Taken<Option<Hold<u64, SemaphoreError>>, SemaphoreError> {
        let call = self.calls.acquire_for(permits, limit);
        self.session.try_acquire(call, patience(limit), self.release()).await
    }

    /// Everything else that the class offers; `create` above all.
    #[must_use]
    pub fn stub(&self) -> SemaphoreStub<Session> {
        SemaphoreStub::new(self.session.clone(), self.object.as_str())
    }

    fn release(&self) -> impl Fn(&u64) -> TypedCall<(), SemaphoreError> + Send + Sync + 'static {
        let calls = self.calls.clone();
        move |grant| calls.release(*grant)
    }
}
