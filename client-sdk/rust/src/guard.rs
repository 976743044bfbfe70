//! Guards: what a session holds, its fencing token, and word of its loss.
//!
//! Deliberately absent: giving back. [`Hold`](crate::Hold) does that; a guard is for those who work with what
//! somebody else holds.

use crate::handle::Session;

/// Something that a session holds in the cluster under a fencing token.
///
/// A guard is lost once the session is over, or once so much time has passed without a word from the
/// cluster that it may be over. Whoever works under a guard stops when it is lost, and hands the
/// token to whatever it works on, which refuses smaller tokens than it has seen.
#[derive(Clone, Debug)]
pub struct Guard {
    session: Session,
    token: u64,
}

impl Guard {
    pub(crate) const fn new(session: Session, token: u64) -> Self {
        Self { session, token }
    }

    /// The fencing token.
    #[must_use]
    pub const fn token(&self) -> u64 {
        self.token
    }

    /// The session that holds it.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Whether it is, or may be, lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.session.may_be_over()
    }

    /// Ends when it is, or may be, lost.
    pub async fn lost(&self) {
        self.session.until_it_may_be_over().await;
    }
}
