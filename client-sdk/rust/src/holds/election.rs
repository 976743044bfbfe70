//! `Election`: candidates of whom one leads.

use gesmas_election::{ElectionCalls, ElectionError, ElectionStub};
use gesmas_sdk::{abi::value::Bytes, stub::TypedCall};

use super::{Hold, Taken};
use crate::handle::Session;

/// An election in which this session may run.
///
/// A session leads once: its tasks do not run against each other.
#[derive(Clone, Debug)]
pub struct Election {
    session: Session,
    calls: ElectionCalls,
    object: String,
}

impl Election {
    pub(super) fn new(session: Session, object: String) -> Self {
        Self { session, calls: ElectionCalls::new(object.clone()), object }
    }

    /// Runs for leader as this candidate; waits until it leads. The hold is the lead, and resigns when it
    /// is dropped.
    ///
    /// # Errors
    /// As a stub's: nobody leads by it then.
    pub async fn campaign(
        &self,
        candidate: impl Into<Bytes>,
    ) -> Taken<Hold<u64, ElectionError>, ElectionError> {
        self.session.acquire(self.calls.campaign(candidate.into()), self.resign()).await
    }

    /// Leads if nobody does.
    ///
    /// # Errors
    /// As a stub's: nobody leads by it then.
    pub async fn try_campaign(
        &self,
        candidate: impl Into<Bytes>,
    ) -> Taken<Option<Hold<u64, ElectionError>>, ElectionError> {
        let call = self.calls.try_campaign(candidate.into());
        self.session.try_acquire(call, self.session.deadline(), self.resign()).await
    }

    /// Everything else that the class offers: who leads, and news of it.
    #[must_use]
    pub fn stub(&self) -> ElectionStub<Session> {
        ElectionStub::new(self.session.clone(), self.object.as_str())
    }

    fn resign(&self) -> impl Fn(&u64) -> TypedCall<(), ElectionError> + Send + Sync + 'static {
        let calls = self.calls.clone();
        move |token| calls.resign(*token)
    }
}
