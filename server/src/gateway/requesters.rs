//! Sessions of the gateway's own, in which the calls of its clients travel.
//!
//! A session has room for so many requests; another is opened when the last is half full. One that is
//! lost is forgotten with the calls in it, whose callers are told that the outcome is unknown.
//! Invariant: no call is owned by such a session: each is on behalf of its client's, or of nobody.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use gesmas_client::{Client, OpenError, Session, SessionState};

/// Calls in a session beyond which the next ones go into another.
const FULL: usize = 8_192;

struct Requester {
    session: Session,
    calls: Arc<AtomicUsize>,
}

/// The sessions.
pub(super) struct Requesters {
    client: Client,
    open: Mutex<Vec<Requester>>,
    /// Held by whoever opens one, so that a rush opens one and not many.
    opening: tokio::sync::Mutex<()>,
}

/// A place in a session, for one call.
pub(super) struct Seat {
    pub(super) session: Session,
    calls: Arc<AtomicUsize>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Requesters {
    pub(super) fn new(client: Client) -> Self {
        let (open, opening) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { client, open, opening }
    }

    /// A place for a call.
    pub(super) async fn seat(&self) -> Result<Seat, OpenError> {
        if let Some(seat) = self.free_seat() {
            return Ok(seat);
        }
        let _opening = self.opening.lock().await;
        if let Some(seat) = self.free_seat() {
            return Ok(seat);
        }
        let session = self.client.session().open().await?;
        let requester = Requester { session, calls: Arc::default() };
        let seat = requester.seat();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(requester);
        Ok(seat)
    }

    fn free_seat(&self) -> Option<Seat> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|requester| !matches!(requester.session.state(), SessionState::Lost(_)));
        let free = |requester: &&Requester| requester.calls.load(Ordering::Relaxed) < FULL;
        open.iter().find(free).map(Requester::seat)
    }
}

impl Requester {
    fn seat(&self) -> Seat {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Seat { session: self.session.clone(), calls: self.calls.clone() }
    }
}
