//! A worker: a session that is opened again when it is lost, and a pace.
//!
//! Invariant: after a session was lost its open calls stay unknown; nothing is tried again in a new
//! session.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gesmas_client::{CallFailure, Client, LinkState, Session, SessionState};
use gesmas_sdk::stub::StubError;
use tokio::task::JoinHandle;

use super::Desk;
use crate::{
    history::{Book, Outcome},
    prng::Prng,
};

/// How long opening a session may take before it is tried again.
const OPENING: Duration = Duration::from_secs(60);
/// How long a client may look for a replica.
const CONNECTING: Duration = Duration::from_secs(60);

/// A connection that workers share.
#[derive(Debug)]
pub(crate) struct Line {
    /// The client.
    pub(crate) client: Client,
    open: AtomicU64,
}

impl Line {
    /// Connects, and counts from then on what is sent again after each break.
    pub(crate) async fn connect(
        desk: &Arc<Desk>,
        addresses: &[SocketAddr],
    ) -> Result<Arc<Self>, gesmas_client::ConnectError> {
        let addresses = addresses.iter().map(ToString::to_string);
        let builder = Client::builder().endpoints(addresses).name("gesmas-kill");
        let client = builder.patience(CONNECTING).connect().await?;
        let line = Arc::new(Self { client, open: AtomicU64::new(0) });
        let (desk, watched) = (desk.clone(), Arc::downgrade(&line));
        let mut states = line.client.link();
        states.mark_unchanged();
        tokio::spawn(async move {
            let mut broken = false;
            while states.changed().await.is_ok() {
                let connected = matches!(*states.borrow_and_update(), LinkState::Connected(_));
                let Some(line) = watched.upgrade() else { break };
                if connected && broken {
                    desk.note_sent_again(line.open.load(Ordering::Relaxed));
                }
                broken = !connected;
            }
        });
        Ok(line)
    }
}

/// What the session of a worker is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The session's timeout.
    pub(crate) timeout: Duration,
    /// The deadline of its calls.
    pub(crate) deadline: Option<Duration>,
}

impl Manner {
    /// Waits as long as it takes.
    pub(crate) const PATIENT: Self = Self { timeout: Duration::from_secs(10), deadline: None };
    /// Gives a call up after a while, so that some outcomes are unknown.
    pub(crate) const IMPATIENT: Self =
        Self { deadline: Some(Duration::from_millis(700)), ..Self::PATIENT };
}

/// See the file's head.
pub(crate) struct Worker {
    /// What all workers share.
    pub(crate) desk: Arc<Desk>,
    /// Its numbers.
    pub(crate) prng: Prng,
    line: Arc<Line>,
    manner: Manner,
    session: Session,
    watcher: JoinHandle<()>,
}

impl Worker {
    /// Opens a session.
    pub(crate) async fn new(desk: Arc<Desk>, line: Arc<Line>, manner: Manner, prng: Prng) -> Self {
        let session = open(&line, manner).await;
        let watcher = watch(&desk, &session);
        Self { desk, prng, line, manner, session, watcher }
    }

    /// The session.
    pub(crate) fn session(&self) -> Session {
        self.session.clone()
    }

    /// Makes a call, enters it into its book, and replaces the session if it is over.
    pub(crate) async fn ask<W: Clone, R: Clone, E: std::fmt::Debug>(
        &mut self,
        book: &Book<W, R>,
        what: W,
        call: impl Future<Output = Result<R, StubError<E, CallFailure>>>,
    ) -> Outcome<R> {
        let outcome = self.ask_in_turn(book, what, call).await;
        self.mend().await;
        outcome
    }

    /// The same for calls that are made together, which leave the session as it is.
    pub(crate) async fn ask_in_turn<W: Clone, R: Clone, E: std::fmt::Debug>(
        &self,
        book: &Book<W, R>,
        what: W,
        call: impl Future<Output = Result<R, StubError<E, CallFailure>>>,
    ) -> Outcome<R> {
        self.line.open.fetch_add(1, Ordering::Relaxed);
        let outcome = self.desk.ask(book, what, call).await;
        self.line.open.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    /// Opens another session if this one is over.
    pub(crate) async fn mend(&mut self) {
        if matches!(self.session.state(), SessionState::Lost(_)) {
            self.renew().await;
        }
    }

    /// Opens another session, after closing this one.
    pub(crate) async fn renew(&mut self) {
        let fresh = open(&self.line, self.manner).await;
        let watcher = watch(&self.desk, &fresh);
        std::mem::replace(&mut self.session, fresh).close().await;
        self.watcher.abort();
        self.watcher = watcher;
    }

    /// Ends in good order.
    pub(crate) async fn finish(self) {
        self.watcher.abort();
        self.session.close().await;
    }

    /// Dies: its connection is gone, and nobody closes its session.
    pub(crate) async fn die(self) {
        self.watcher.abort();
        self.line.client.clone().shutdown().await;
    }

    /// The pause between two calls; shorter when workers are to end.
    pub(crate) async fn think(&mut self) {
        let longest = u64::try_from(2 * self.desk.pace.as_millis()).expect("a pace is short");
        let pause = self.prng.milliseconds(0, longest);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.desk.stopped() => {}
        }
    }
}

async fn open(line: &Line, manner: Manner) -> Session {
    loop {
        let builder = line.client.session().timeout(manner.timeout).deadline(manner.deadline);
        if let Ok(session) = builder.patience(OPENING).open().await {
            return session;
        }
        // Each attempt is bounded by itself, and whoever waits for the worker has a bound too.
    }
}

fn watch(desk: &Arc<Desk>, session: &Session) -> JoinHandle<()> {
    let (desk, session) = (desk.clone(), session.clone());
    tokio::spawn(async move { desk.watch(&session).await })
}
