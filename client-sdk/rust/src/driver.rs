//! The one task of a client: it owns the hub and the connection and feeds one to the other.
//!
//! ```text
//!   Waiting --pause over--> Connecting --greeted--> Connected --failed, left--> Connecting
//!      ^------------------------ failed ---'
//! ```
//!
//! Invariants: commands and time are served in every state, so that deadlines pass while there is
//! no connection, and doubts are told while one takes no bytes; after a loss the next endpoint is tried
//! at once, and pauses grow only once all have failed in a row.
//! Not here: any decision about sessions (`hub.rs`).

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, Instant},
};

use gesmas_protocol::Welcome;
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    clock::{Clock, Moment},
    command::Command,
    connection::{Connection, UNWRITTEN_MAX},
    failure::ConnectError,
    hub::{Hub, Verdict},
    session::pacing::Pacing,
};

/// How many commands are taken before what they cause is sent, so that sending is not starved.
const COMMANDS_PER_TURN: usize = 1_024;
/// Pauses between rounds in which no endpoint could be reached.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest of these pauses.
const PAUSE_LONGEST: Duration = Duration::from_secs(1);
/// Between two looks at what is due, while the connection takes nothing.
const PAUSE_STUCK: Duration = Duration::from_millis(10);
/// How long the last bytes may take when the client is shut down.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where a client stands with the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It looks for a replica; with what the last attempt ran into.
    Searching(Option<String>),
    /// It is connected to this endpoint.
    Connected(String),
    /// It is shut down.
    Closed,
}

/// What a driver needs to connect.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) endpoints: Vec<String>,
    pub(crate) token: Option<String>,
    pub(crate) name: String,
    /// Counts the bytes that are sent.
    pub(crate) sent: Arc<AtomicU64>,
}

type Attempt = Pin<Box<dyn Future<Output = Result<(Connection, Welcome), ConnectError>> + Send>>;

enum Link {
    Waiting(Instant),
    Connecting(Attempt),
    Connected(Box<Connection>),
}

enum Progress {
    Nothing,
    Greeted(Box<Connection>, Welcome),
    Failed(ConnectError),
}

/// The driver. See the file's head.
pub(crate) struct Driver {
    hub: Hub,
    target: Target,
    commands: mpsc::UnboundedReceiver<Command>,
    state: watch::Sender<LinkState>,
    link: Link,
    /// Index of the endpoint to try next.
    next: usize,
    /// Failures since a connection stood.
    failures: usize,
    /// Whether anything came of the connection besides its greeting.
    useful: bool,
    pacing: Pacing,
    clock: Clock,
    farewell: Option<oneshot::Sender<()>>,
}

impl Driver {
    /// A driver that starts with the endpoint that `seed` picks, so that clients spread.
    pub(crate) fn new(
        target: Target,
        commands: mpsc::UnboundedReceiver<Command>,
        state: watch::Sender<LinkState>,
        clock: Clock,
        seed: u64,
    ) -> Self {
        let count = target.endpoints.len() as u64;
        let next = usize::try_from(seed % count).expect("an index of a vector");
        Self {
            hub: Hub::new(seed),
            target,
            commands,
            state,
            link: Link::Waiting(Instant::now()),
            next,
            failures: 0,
            useful: false,
            pacing: Pacing::new(PAUSE_FIRST, PAUSE_LONGEST, seed),
            clock,
            farewell: None,
        }
    }

    /// Drives until the client is shut down or all its handles are gone.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(COMMANDS_PER_TURN);
        loop {
            let alarm = self.alarm();
            let progress = tokio::select! {
                count = self.commands.recv_many(&mut batch, COMMANDS_PER_TURN) => {
                    if count == 0 {
                        break;
                    }
                    Progress::Nothing
                }
                progress = self.link.advance() => progress,
                () = sleep_until(&self.clock, alarm) => Progress::Nothing,
            };
            let now = self.clock.now();
            for command in batch.drain(..) {
                match command {
                    Command::Shutdown { done } => self.farewell = Some(done),
                    command => self.hub.handle_command(now, command),
                }
            }
            self.progress(progress);
            self.hub.handle_timeout(now);
            self.serve(now);
            if self.farewell.is_some() {
                break;
            }
        }
        self.finish().await;
    }

    /// When to serve although nothing happens.
    fn alarm(&self) -> Option<Moment> {
        let alarm = self.hub.poll_timeout()?;
        // What is due cannot leave over a connection that takes nothing, and is looked at again and again.
        let stuck = matches!(&self.link,
            Link::Connected(connection) if connection.backlog() >= UNWRITTEN_MAX);
        Some(if stuck { alarm.max(self.clock.now() + PAUSE_STUCK) } else { alarm })
    }

    fn progress(&mut self, progress: Progress) {
        match progress {
            Progress::Nothing => {
                if let Link::Waiting(end) = self.link
                    && end <= Instant::now()
                {
                    self.connect();
                }
            }
            Progress::Greeted(connection, welcome) => {
                tracing::debug!(
                    endpoint = connection.endpoint(),
                    replica = welcome.replica,
                    "connected"
                );
                self.useful = false;
                self.state.send_replace(LinkState::Connected(connection.endpoint().into()));
                self.hub.handle_connected(welcome);
                self.link = Link::Connected(connection);
            }
            Progress::Failed(error) => self.fail(&error.to_string()),
        }
    }

    fn fail(&mut self, reason: &str) {
        tracing::debug!(reason, "no connection");
        let connected = matches!(self.link, Link::Connected(_));
        if connected {
            self.hub.handle_disconnected();
        }
        // A replica that greets and sends its clients away is as good as one that is not there.
        if !(connected && self.useful) {
            self.failures += 1;
        }
        self.state.send_replace(LinkState::Searching(Some(reason.into())));
        if self.failures < self.target.endpoints.len() {
            self.connect();
        } else {
            self.failures = 0;
            self.link = Link::Waiting(Instant::now() + self.pacing.pause());
        }
    }

    fn connect(&mut self) {
        let endpoint = self.target.endpoints[self.next].clone();
        self.next = (self.next + 1) % self.target.endpoints.len();
        let Target { token, name, sent, .. } = self.target.clone();
        self.link = Link::Connecting(Box::pin(Connection::open(endpoint, token, name, sent)));
    }

    /// Takes in what arrived and sends what is due.
    fn serve(&mut self, now: Moment) {
        let mut leave = None;
        if let Link::Connected(connection) = &mut self.link {
            loop {
                match connection.next_message() {
                    Ok(None) => break,
                    Ok(Some(message)) => {
                        if self.hub.handle_message(now, message) == Verdict::Leave {
                            leave = Some("the server is going away".to_owned());
                            break;
                        }
                        self.useful = true;
                        self.failures = 0;
                        self.pacing.reset();
                    }
                    Err(error) => {
                        leave = Some(error.to_string());
                        break;
                    }
                }
            }
        }
        if let Some(reason) = &leave {
            self.fail(reason);
        }
        let mut nowhere = Vec::new();
        let verdict = match &mut self.link {
            Link::Connected(connection) if connection.backlog() >= UNWRITTEN_MAX => {
                self.hub.serve_sparingly(now, connection.output())
            }
            Link::Connected(connection) => self.hub.serve(now, connection.output()),
            _ => self.hub.serve(now, &mut nowhere),
        };
        assert!(nowhere.is_empty(), "the hub sends only over a connection");
        if verdict == Verdict::Leave && matches!(self.link, Link::Connected(_)) {
            self.fail("a keep-alive was not answered");
            self.hub.serve(now, &mut nowhere);
        }
    }

    /// Writes what is left, within a moment. Tickets that are still open are dropped with the hub.
    async fn finish(mut self) {
        if let Link::Connected(connection) = &mut self.link {
            self.hub.serve(self.clock.now(), connection.output());
            let write_all =
                async { while connection.backlog() > 0 && connection.turn().await.is_ok() {} };
            if tokio::time::timeout(FAREWELL, write_all).await.is_err() {
                tracing::debug!("the last bytes could not be written in time");
            }
        }
        self.state.send_replace(LinkState::Closed);
    }
}

impl Link {
    /// Waits until something happens to the connection. Cancel safe.
    async fn advance(&mut self) -> Progress {
        match self {
            Self::Waiting(end) => {
                tokio::time::sleep_until((*end).into()).await;
                Progress::Nothing
            }
            Self::Connecting(attempt) => match attempt.await {
                Ok((connection, welcome)) => Progress::Greeted(Box::new(connection), welcome),
                Err(error) => Progress::Failed(error),
            },
            Self::Connected(connection) => match connection.turn().await {
                Ok(()) => Progress::Nothing,
                Err(error) => Progress::Failed(ConnectError::Network {
                    endpoint: connection.endpoint().into(),
                    error,
                }),
            },
        }
    }
}

async fn sleep_until(clock: &Clock, alarm: Option<Moment>) {
    match alarm {
        Some(time) => clock.sleep_until(time).await,
        None => pending().await,
    }
}
