//! What all workers share: the clock, the progress, the faults that they noticed.
//!
//! Invariant: a violation is noted at once, so that the rounds can end with the first.

use std::{
    future::Future,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gesmas_client::{
    CallFailure, Session, SessionState,
    protocol::{CallError, OverReason},
};
use gesmas_sdk::stub::StubError;
use tokio::sync::watch;

use crate::history::{Book, Clock, Outcome};

/// A session that ended although its client lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The session.
    pub(crate) session: u64,
    /// Why, as the cluster says.
    pub(crate) reason: OverReason,
    /// Whether nothing had been heard of it for its timeout, as far as the client can know.
    pub(crate) silent: bool,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Desk {
    /// Real time.
    pub(crate) clock: Clock,
    /// Mean pause of a worker between two calls.
    pub(crate) pace: Duration,
    stopping: watch::Sender<bool>,
    /// When each acknowledged call began, as a count of those that began after a mark.
    progress: watch::Sender<Progress>,
    violations: Mutex<Vec<String>>,
    losses: Mutex<Vec<Loss>>,
    /// Calls that were open when their client found a replica again: it sends them again.
    pub(crate) sent_again: AtomicU64,
}

/// Calls that began after a mark and were acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    mark: u64,
    calls: u64,
}

impl Desk {
    /// A desk of workers with this pace.
    pub(crate) fn new(clock: Clock, pace: Duration) -> Self {
        Self {
            clock,
            pace,
            stopping: watch::channel(false).0,
            progress: watch::channel(Progress::default()).0,
            violations: Mutex::default(),
            losses: Mutex::default(),
            sent_again: AtomicU64::new(0),
        }
    }

    /// Notes a broken promise.
    pub(crate) fn violation(&self, text: String) {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// The broken promises so far.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a promise was broken.
    pub(crate) fn has_violations(&self) -> bool {
        !self.violations.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The sessions of living clients that were lost.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells all workers to end.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Whether workers are to end.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Ends when workers are to end.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives here.
        drop(stopping.wait_for(|stopping| *stopping).await);
    }

    /// Waits until so many calls were acknowledged that began after now. One user at a time.
    pub(crate) async fn goes_on(&self, calls: u64) {
        let mut progress = self.progress.subscribe();
        self.progress.send_replace(Progress { mark: self.clock.now(), calls: 0 });
        // The sender lives here.
        drop(progress.wait_for(|progress| progress.calls >= calls).await);
    }

    fn note_acknowledged(&self, began: u64) {
        self.progress.send_if_modified(|progress| {
            let counts = began > progress.mark;
            progress.calls += u64::from(counts);
            counts
        });
    }

    /// Makes a call and enters it into its book.
    pub(crate) async fn ask<W: Clone, R: Clone, E: std::fmt::Debug>(
        &self,
        book: &Book<W, R>,
        what: W,
        call: impl Future<Output = Result<R, StubError<E, CallFailure>>>,
    ) -> Outcome<R> {
        let began = self.clock.now();
        let place = book.open(what, began);
        let outcome = match call.await {
            Ok(result) => Outcome::Done(result),
            Err(error) => self.judge(error),
        };
        book.close(place, self.clock.now(), outcome.clone());
        if let Outcome::Done(_) = outcome {
            self.note_acknowledged(began);
        }
        outcome
    }

    /// What a failure says of the effect. Failures that no fault explains are violations.
    fn judge<R, E: std::fmt::Debug>(&self, error: StubError<E, CallFailure>) -> Outcome<R> {
        match error {
            StubError::Other(CallFailure::Unknown(_)) => Outcome::Unknown,
            StubError::Other(
                CallFailure::NotSent(_)
                | CallFailure::Refused(..)
                | CallFailure::Failed(CallError::Cancelled(_), _),
            ) => Outcome::Nothing,
            error => {
                self.violation(format!(
                    "call: it failed in a way that no fault explains: {error:?}"
                ));
                Outcome::Unknown
            }
        }
    }

    /// Watches a session until it is over, and notes when the cluster ended it.
    pub(crate) async fn watch(&self, session: &Session) {
        let (mut states, doubts, id) = (session.states(), session.doubts(), session.id());
        let lost = states.wait_for(|state| matches!(state, SessionState::Lost(_))).await;
        let reason = lost.ok().and_then(|state| match *state {
            SessionState::Lost(reason) => Some(reason),
            SessionState::Connected | SessionState::Suspended => None,
        });
        let Some(reason) = reason.filter(|reason| *reason != OverReason::Closed) else { return };
        let loss = Loss { session: id, reason, silent: *doubts.borrow() };
        if !loss.silent {
            self.violation(format!(
                "sessions: session {id} is over ({reason}) although it was heard of within its timeout"
            ));
        }
        self.losses.lock().unwrap_or_else(PoisonError::into_inner).push(loss);
    }

    /// A client found a replica again, with so many calls open.
    pub(crate) fn note_sent_again(&self, calls: u64) {
        self.sent_again.fetch_add(calls, Ordering::Relaxed);
    }
}
