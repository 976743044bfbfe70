//! `RwLock`: many readers or one writer.

use std::time::Duration;

use gesmas_rw_lock::{RwLockCalls, RwLockError, RwLockStub};
use gesmas_sdk::stub::TypedCall;

use super::{Hold, Taken, patience};
use crate::handle::Session;

/// A lock that this session may take to read or to write.
///
/// Each taking is an owner of its own. One that reads and takes the lock to write waits for itself.
#[derive(Clone, Debug)]
pub struct RwLock {
    session: Session,
    calls: RwLockCalls,
    object: String,
}

impl RwLock {
    pub(super) fn new(session: Session, object: String) -> Self {
        Self { session, calls: RwLockCalls::new(object.clone()), object }
    }

    /// Takes the lock to read; waits while another writes or has waited longer.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn read(&self) -> Taken<Hold<u64, RwLockError>, RwLockError> {
        self.session.acquire(self.calls.read_lock(self.session.new_owner()), self.unlock()).await
    }

    /// Takes the lock to read if that is possible at once.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn try_read(&self) -> Taken<Option<Hold<u64, RwLockError>>, RwLockError> {
        self.try_take(self.calls.try_read_lock(self.session.new_owner()), self.session.deadline())
            .await
    }

    /// Takes the lock to read; waits at most that long.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn read_for(
        &self,
        limit: Duration,
    ) -> Taken<Option<Hold<u64, RwLockError>>, RwLockError> {
        self.try_take(self.calls.read_lock_for(self.session.new_owner(), limit), patience(limit))
            .await
    }

    /// Takes the lock to write; waits while another holds it or has waited longer.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn write(&self) -> Taken<Hold<u64, RwLockError>, RwLockError> {
        self.session.acquire(self.calls.write_lock(self.session.new_owner()), self.unlock()).await
    }

    /// Takes the lock to write if that is possible at once.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn try_write(&self) -> Taken<Option<Hold<u64, RwLockError>>, RwLockError> {
        self.try_take(self.calls.try_write_lock(self.session.new_owner()), self.session.deadline())
            .await
    }

    /// Takes the lock to write; waits at most that long.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn write_for(
        &self,
        limit: Duration,
    ) -> Taken<Option<Hold<u64, RwLockError>>, RwLockError> {
        self.try_take(self.calls.write_lock_for(self.session.new_owner(), limit), patience(limit))
            .await
    }

    /// Everything else that the class offers.
    #[must_use]
    pub fn stub(&self) -> RwLockStub<Session> {
        RwLockStub::new(self.session.clone(), self.object.as_str())
    }

    async fn try_take(
        &self,
        call: TypedCall<Option<u64>, RwLockError>,
        patience: Option<Duration>,
    ) -> Taken<Option<Hold<u64, RwLockError>>, RwLockError> {
        self.session.try_acquire(call, patience, self.unlock()).await
    }

    fn unlock(&self) -> impl Fn(&u64) -> TypedCall<(), RwLockError> + Send + Sync + 'static {
        let calls = self.calls.clone();
        move |token| calls.unlock(*token)
    }
}
