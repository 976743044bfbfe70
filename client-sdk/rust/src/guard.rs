//! Guards: what a session holds, its fencing token, and word of its loss.
//!
//! Deliberately absent: giving back. What is held belongs to a class, whose stub gives it back.

use tokio::sync::watch;

use crate::{handle::Session, session::core::SessionState};

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
        matches!(self.session.state(), SessionState::Lost(_)) || *self.session.doubts().borrow()
    }

    /// Ends when it is, or may be, lost.
    pub async fn lost(&self) {
        let mut states = self.session.states();
        let mut doubts = self.session.doubts();
        tokio::select! {
            () = until(&mut states, |state| matches!(state, SessionState::Lost(_))) => {}
            () = until(&mut doubts, |doubtful| *doubtful) => {}
        }
    }
}

/// Ends when a value satisfies a condition, and when there will be no more values.
async fn until<T>(values: &mut watch::Receiver<T>, condition: impl FnMut(&T) -> bool) {
    drop(values.wait_for(condition).await);
}
