//! What `?` makes of a permit that was not acquired.

use gesmas_sdk::prelude::*;

/// An error with a word for the want of a session.
#[error]
pub enum Wordy {
    /// there is no session
    NoSession,
    /// the call was cancelled
    Cancelled,
}

/// An error without one.
#[error]
pub enum Terse {
    /// the call was cancelled
    Cancelled,
}

#[test]
fn a_permit_without_a_session_is_told_in_the_class_s_words() {
    for reason in [NotAcquired::NoSession, NotAcquired::SessionOver] {
        assert_eq!(Wordy::from(reason), Wordy::NoSession);
        assert_eq!(Terse::from(reason), Terse::Cancelled);
    }
    assert_eq!(Wordy::from(NotAcquired::Cancelled), Wordy::Cancelled);
}
