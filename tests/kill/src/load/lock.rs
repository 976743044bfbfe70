//! Clients that take turns with a lock. There are two locks: with one of them a client dies now and
//! then while it holds it.
//!
//! Two, because a session of a client that died expires only once a leader has listened for its
//! timeout, which takes long while leaders are killed; meanwhile nobody has that lock.
//! Invariant: a hold is noted for the time in which its holder may rely on it and no longer: until
//! it calls `unlock`, dies, or doubts that its session lives.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gesmas_client::SessionState;
use gesmas_lock::{LockError, LockStub};
use gesmas_sdk::stub::StubError;

use super::{Desk, Line, Manner, Worker};
use crate::{
    checkers::lock::Hold,
    history::{Book, Outcome},
    prng::Prng,
};

/// The lock whose clients all live.
pub(crate) const STEADY: &str = "steady";
/// The lock of which one client dies now and then.
pub(crate) const MORTAL: &str = "mortal";
/// Clients of each that live.
pub(crate) const WORKERS: u64 = 3;
/// Timeout of the session of the one that dies.
const MORTAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a holder works at the most, milliseconds.
const WORK: u64 = 20;
/// The owner of a session: each has one task.
const OWNER: u64 = 1;
/// A client that may die does so in so many of a hundred holds.
const DEATHS: u64 = 5;

/// What is asked of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockCall {
    /// Takes it; the result is the token.
    Lock,
    /// Gives it back; the result is the token.
    Unlock,
}

/// What is known of the lock.
#[derive(Debug)]
pub(crate) struct LockBook {
    /// The object.
    name: &'static str,
    /// The calls.
    pub(crate) calls: Book<LockCall, u64>,
    holds: Mutex<Vec<Hold>>,
}

impl LockBook {
    /// The book of a lock.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, calls: Book::default(), holds: Mutex::default() }
    }

    /// The holds.
    pub(crate) fn holds(&self) -> Vec<Hold> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, hold: Hold) {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).push(hold);
    }
}

/// Takes turns with a session that is opened again when it is lost.
pub(crate) async fn work(mut worker: Worker, book: Arc<LockBook>) {
    while !worker.desk.is_stopping() {
        if let Some(turn) = turn(&mut worker, &book).await {
            unlock(&mut worker, &book, turn).await;
        }
        worker.think().await;
    }
    worker.finish().await;
}

/// The same with a client of its own, which dies now and then with the lock in its hands.
pub(crate) async fn work_and_die(
    desk: Arc<Desk>,
    addresses: Vec<SocketAddr>,
    book: Arc<LockBook>,
    mut prng: Prng,
) {
    let manner = Manner { timeout: MORTAL_TIMEOUT, deadline: None };
    while !desk.is_stopping() {
        let Ok(line) = Line::connect(&desk, &addresses).await else { continue };
        let stream = prng.below(u64::MAX);
        let mut worker = Worker::new(desk.clone(), line, manner, Prng::new(stream, 0)).await;
        loop {
            if desk.is_stopping() {
                worker.finish().await;
                return;
            }
            if let Some(turn) = turn(&mut worker, &book).await {
                if worker.prng.percent(DEATHS) {
                    book.note(Hold { until: desk.clock.now(), ..turn });
                    worker.die().await;
                    break;
                }
                unlock(&mut worker, &book, turn).await;
            }
            worker.think().await;
        }
    }
}

/// Takes the lock and works under it. None when it was not taken for certain; otherwise the hold
/// lasts until it is given back.
async fn turn(worker: &mut Worker, book: &LockBook) -> Option<Hold> {
    let session = worker.session();
    let lock = LockStub::new(session.clone(), book.name);
    let outcome = worker.ask_in_turn(&book.calls, LockCall::Lock, lock.lock(OWNER)).await;
    let Outcome::Done(token) = outcome else {
        // It may have the lock without knowing the token: closing the session gives it back.
        worker.renew().await;
        return None;
    };
    let from = worker.desk.clock.now();
    let guard = session.guard(token);
    if guard.is_lost() {
        worker.renew().await;
        return None;
    }
    let hold = Hold { session: session.id(), token, from, until: from };
    let work = worker.prng.milliseconds(0, WORK);
    tokio::select! {
        () = tokio::time::sleep(work) => Some(hold),
        () = guard.lost() => {
            book.note(Hold { until: sure_until(worker, from), ..hold });
            worker.renew().await;
            None
        }
    }
}

/// The doubt began a little before it was noticed, and no later than this.
fn sure_until(worker: &Worker, from: u64) -> u64 {
    let slack = Duration::from_millis(200).as_nanos();
    let slack = u64::try_from(slack).expect("it is short");
    worker.desk.clock.now().saturating_sub(slack).max(from)
}

async fn unlock(worker: &mut Worker, book: &LockBook, hold: Hold) {
    let session = worker.session();
    let guard = session.guard(hold.token);
    let lock = LockStub::new(session.clone(), book.name);
    if guard.is_lost() {
        book.note(Hold { until: sure_until(worker, hold.from), ..hold });
        worker.renew().await;
        return;
    }
    book.note(Hold { until: worker.desk.clock.now(), ..hold });
    let mut taken_away = false;
    let call = async {
        match lock.unlock(hold.token).await {
            Err(StubError::Failed(LockError::NotHeld)) => {
                taken_away = true;
                Ok(hold.token)
            }
            given_back => given_back.map(|()| hold.token),
        }
    };
    let outcome = worker.ask_in_turn(&book.calls, LockCall::Unlock, call).await;
    let lives = !matches!(session.state(), SessionState::Lost(_));
    if taken_away && lives {
        worker.desk.violation(format!(
            "lock: session {} lives and held token {}, and could not give it back",
            hold.session, hold.token
        ));
    }
    if !matches!(outcome, Outcome::Done(_)) {
        worker.renew().await;
    }
}
