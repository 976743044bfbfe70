//! `Membership`: who is there.

use gesmas_membership::{MembershipCalls, MembershipError, MembershipStub};
use gesmas_sdk::abi::value::Bytes;

use super::{Hold, Taken};
use crate::{guard::Guard, handle::Session};

/// A group of members, of which this session may be one.
#[derive(Clone, Debug)]
pub struct Membership {
    session: Session,
    calls: MembershipCalls,
    object: String,
}

impl Membership {
    pub(super) fn new(session: Session, object: String) -> Self {
        Self { session, calls: MembershipCalls::new(object.clone()), object }
    }

    /// Is a member from now on, until the [`Member`] is dropped or the session is over.
    ///
    /// A session joins once under a name: a second join that is given up takes the member out that the
    /// first has put in.
    ///
    /// # Errors
    /// As a stub's: nobody has joined by it then.
    pub async fn join(
        &self,
        name: impl Into<String>,
        metadata: impl Into<Bytes>,
    ) -> Taken<Member, MembershipError> {
        let name = name.into();
        let call = self.calls.join(name.clone(), metadata.into());
        let (calls, leaver) = (self.calls.clone(), name.clone());
        let leave = move |token: &u64| calls.leave(leaver.clone(), *token);
        let hold = self.session.acquire(call, leave).await?;
        Ok(Member { hold, name, stub: self.stub() })
    }

    /// Everything else that the class offers: who is there, and news of it.
    #[must_use]
    pub fn stub(&self) -> MembershipStub<Session> {
        MembershipStub::new(self.session.clone(), self.object.as_str())
    }
}

/// A membership. Dropped, it ends.
#[derive(Debug)]
#[must_use = "a member leaves when it is dropped"]
pub struct Member {
    hold: Hold<u64, MembershipError>,
    name: String,
    stub: MembershipStub<Session>,
}

impl Member {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its fencing token.
    #[must_use]
    pub const fn token(&self) -> u64 {
        self.hold.token()
    }

    /// A guard for those who work as this member.
    #[must_use]
    pub fn guard(&self) -> Guard {
        self.hold.guard()
    }

    /// Says something else of itself; gives the version of the change.
    ///
    /// # Errors
    /// As a stub's.
    pub async fn update(&self, metadata: impl Into<Bytes>) -> Taken<u64, MembershipError> {
        self.stub.update(self.name.clone(), self.token(), metadata.into()).await
    }

    /// Leaves, and tells whether it was there until now.
    ///
    /// # Errors
    /// As of [`Hold::release`].
    pub async fn leave(self) -> Taken<(), MembershipError> {
        self.hold.release().await
    }

    /// Whether it is, or may be, there no longer.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.hold.is_lost()
    }

    /// Ends when it is, or may be, there no longer.
    pub async fn lost(&self) {
        self.hold.lost().await;
    }

    /// Leaves the member there as long as the session lives, and gives its token.
    #[must_use]
    pub fn keep(self) -> u64 {
        self.hold.keep()
    }
}
