//! `Lock`: one holder at a time.

use std::time::Duration;

use gesmas_lock::{LockCalls, LockError, LockStub};
use gesmas_sdk::stub::TypedCall;

use super::{Hold, Taken, patience};
use crate::handle::Session;

/// A lock that this session may take.
///
/// Each taking is an owner of its own, so the tasks of a session exclude each other, and one that takes
/// the lock twice waits for itself.
#[derive(Clone, Debug)]
pub struct Lock {
    session: Session,
    calls: LockCalls,
    object: String,
}

impl Lock {
    pub(super) fn new(session: Session, object: String) -> Self {
        Self { session, calls: LockCalls::new(object.clone()), object }
    }

    /// Takes the lock; waits as long as another holds it.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn acquire(&self) -> Taken<Hold<u64, LockError>, LockError> {
        let call = self.calls.lock(self.session.new_owner());
        self.session.acquire(call, self.unlock()).await
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn try_acquire(&self) -> Taken<Option<Hold<u64, LockError>>, LockError> {
        let call = self.calls.try_lock(self.session.new_owner());
        self.session.try_acquire(call, self.session.deadline(), self.unlock()).await
    }

    /// Takes the lock; waits at most that long.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn acquire_for(
        &self,
        limit: Duration,
    ) -> Taken<Option<Hold<u64, LockError>>, LockError> {
        let call = self.calls.lock_for(self.session.new_owner(), limit);
        self.session.try_acquire(call, patience(limit), self.unlock()).await
    }

    /// Everything else that the class offers.
    #[must_use]
    pub fn stub(&self) -> LockStub<Session> {
        LockStub::new(self.session.clone(), self.object.as_str())
    }

    fn unlock(&self) -> impl Fn(&u64) -> TypedCall<(), LockError> + Send + Sync + 'static {
        let calls = self.calls.clone();
        move |token| calls.unlock(*token)
    }
}
