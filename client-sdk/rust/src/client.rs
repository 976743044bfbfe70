//! The client: endpoints, one connection, and the sessions that share it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gesmas_protocol::Bytes;
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    clock::Clock,
    command::{Command, Commands},
    driver::{Driver, LinkState, Target},
    failure::ConnectError,
    session_builder::SessionBuilder,
};

/// How long [`ClientBuilder::connect`] looks for a replica if it is not told otherwise.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// A client of a cluster. Clones share one connection; a second connection is a second client.
///
/// The connection ends when the client, all its clones and all its sessions are gone.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) commands: Commands,
    state: watch::Receiver<LinkState>,
    sent: Arc<AtomicU64>,
    clock: Clock,
    /// Whether questions of operators take what the connected replica has.
    pub(crate) stale: bool,
}

impl Client {
    /// Says how to connect.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            endpoints: Vec::new(),
            token: None,
            name: "gesmas-client".into(),
            patience: CONNECT_PATIENCE,
            classes: Vec::new(),
            clock: Clock::system(),
        }
    }

    /// The same client, whose questions of operators are answered from what the connected replica has.
    /// That may be old; it needs no majority. Reads have [`Read::stale`](crate::Read::stale).
    #[must_use]
    pub fn stale(&self) -> Self {
        Self { stale: true, ..self.clone() }
    }

    /// Says how to open a session; [`SessionBuilder::open`] opens it.
    #[must_use]
    pub fn session(&self) -> SessionBuilder {
        SessionBuilder::new(self.commands.clone(), self.clock.clone())
    }

    /// Gives the client the code of a class, to ship it when a call of any session needs it.
    pub fn add_class(&self, class: &str, module: impl Into<Bytes>) {
        self.commands.send(Command::AddClass { class: class.into(), module: module.into() });
    }

    /// Where the client stands with the cluster, now and whenever it changes.
    #[must_use]
    pub fn link(&self) -> watch::Receiver<LinkState> {
        self.state.clone()
    }

    /// Bytes that the client and its clones have sent so far, greetings and repetitions included.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Ends the connection of all clones once what was asked for is written. Sessions that are still
    /// open live on until they expire.
    pub async fn shutdown(self) {
        let (done, finished) = oneshot::channel();
        self.commands.send(Command::Shutdown { done });
        // Either way there is nothing left to wait for.
        drop(finished.await);
    }
}

/// How to connect.
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    endpoints: Vec<String>,
    token: Option<String>,
    name: String,
    patience: Duration,
    classes: Vec<(String, Bytes)>,
    clock: Clock,
}

impl ClientBuilder {
    /// Adds replicas, each as `host:port`. Any of them will do; more make the client safer.
    #[must_use]
    pub fn endpoints<I>(mut self, endpoints: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.endpoints.extend(endpoints.into_iter().map(Into::into));
        self
    }

    /// Says who the client is.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Names the client's software in the logs of servers.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How long [`ClientBuilder::connect`] looks for a replica.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Gives the client the code of a class, to ship it when a call needs it.
    #[must_use]
    pub fn class(mut self, class: impl Into<String>, module: impl Into<Bytes>) -> Self {
        self.classes.push((class.into(), module.into()));
        self
    }

    /// Gives the client another clock than the system's, to count leases and deadlines by: for tests of
    /// programs, in which time leaps and machines sleep.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Connects to one of the endpoints. From then on the client reconnects by itself.
    ///
    /// # Errors
    /// [`ConnectError`] when there is no endpoint, or none could be reached in time.
    ///
    /// # Panics
    /// When it is not called in a tokio runtime with I/O and time.
    pub async fn connect(self) -> Result<Client, ConnectError> {
        if self.endpoints.is_empty() {
            return Err(ConnectError::NoEndpoint);
        }
        let seed = getrandom::u64().map_err(ConnectError::Random)?;
        let (sender, commands) = mpsc::unbounded_channel();
        let (states, mut state) = watch::channel(LinkState::Searching(None));
        let Self { endpoints, token, name, patience, classes, clock } = self;
        let sent = Arc::new(AtomicU64::new(0));
        let target = Target { endpoints, token, name, sent: sent.clone() };
        let client = Client {
            commands: Commands(sender),
            state: state.clone(),
            sent,
            clock: clock.clone(),
            stale: false,
        };
        for (class, module) in classes {
            client.add_class(&class, module);
        }
        tokio::spawn(Driver::new(target, commands, states, clock, seed).run());
        let connected = state.wait_for(|state| matches!(state, LinkState::Connected(_)));
        let in_time = matches!(tokio::time::timeout(patience, connected).await, Ok(Ok(_)));
        if in_time {
            return Ok(client);
        }
        let last = match &*state.borrow() {
            LinkState::Searching(last) => last.clone(),
            LinkState::Connected(_) | LinkState::Closed => None,
        };
        Err(ConnectError::TimedOut { last })
    }
}
