//! Opening sessions.
//!
//! Invariant: a session is handed out once it is known since when it lives: at once if it was opened by
//! this builder, and after an answered keep-alive if somebody else may have opened it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use gesmas_protocol::OverReason;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::{
    clock::Clock,
    command::{Command, Commands, Line, Safety, SessionPorts},
    events::EventQueue,
    failure::OpenError,
    handle::{Session, Shared},
    session::{
        core::SessionState,
        settings::{Role, SessionSettings},
    },
};

/// Deadline of calls that name none.
const DEADLINE: Duration = Duration::from_secs(30);
/// Calls of a session that may be outstanding at a time.
const OUTSTANDING: usize = 16_384;
/// How long the opening of a session may take.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);

/// How to open a session.
#[derive(Clone, Debug)]
pub struct SessionBuilder {
    commands: Commands,
    settings: SessionSettings,
    deadline: Option<Duration>,
    outstanding: usize,
    patience: Duration,
    nonce: Option<u128>,
    clock: Clock,
}

impl SessionBuilder {
    pub(crate) fn new(commands: Commands, clock: Clock) -> Self {
        Self {
            commands,
            clock,
            settings: SessionSettings::default(),
            deadline: Some(DEADLINE),
            outstanding: OUTSTANDING,
            patience: OPEN_PATIENCE,
            nonce: None,
        }
    }

    /// How long the session lives without a sign of life; 10 seconds if not said.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Deadline of calls that name none; 30 seconds if not said.
    #[must_use]
    pub const fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Calls that may be outstanding at a time; 16,384 if not said. What the server takes is a bound
    /// of its own (`requests_per_session`, 20,000), behind which calls wait in the client. It should be
    /// the greater one: what gives back is not counted here, and must not wait behind calls that wait for it.
    #[must_use]
    pub const fn outstanding(mut self, outstanding: usize) -> Self {
        self.outstanding = outstanding;
        self
    }

    /// How long the opening may take; 10 seconds if not said.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Names the opening: a second one with the same nonce gives the same session, as long as that
    /// lives. Drawn at random if not said.
    ///
    /// Somebody may have opened the session before, so the answer to the opening does not say since when
    /// it lives: it is usable once a keep-alive was answered, one round trip later than another.
    #[must_use]
    pub const fn nonce(mut self, nonce: u128) -> Self {
        self.settings.fresh = false;
        self.nonce = Some(nonce);
        self
    }

    pub(crate) const fn role(mut self, role: Role) -> Self {
        self.settings.role = role;
        self
    }

    fn draw_nonce(&self) -> Result<u128, OpenError> {
        if let Some(nonce) = self.nonce {
            return Ok(nonce);
        }
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|_| OpenError::Random)?;
        Ok(u128::from_le_bytes(nonce))
    }

    /// Opens the session.
    ///
    /// # Errors
    /// [`OpenError`] when the cluster refuses it or does not answer in time.
    pub async fn open(self) -> Result<Session, OpenError> {
        let patience = self.patience;
        tokio::time::timeout(patience, self.open_and_prove())
            .await
            .unwrap_or(Err(OpenError::TimedOut))
    }

    /// Opens the session for others, who use it through [`crate::Client::attach`] or by its number alone, and
    /// gives its number and timeout. One that is attached in this client already stays so.
    ///
    /// # Errors
    /// [`OpenError`] when the cluster refuses it or does not answer in time.
    pub async fn open_for_others(self) -> Result<(u64, Duration), OpenError> {
        let session = self.role(Role::Opener).open().await?;
        Ok((session.id(), session.timeout()))
    }

    async fn open_and_prove(self) -> Result<Session, OpenError> {
        let nonce = self.draw_nonce()?;
        let role = self.settings.role;
        let doubtful = !self.settings.fresh && role == Role::Owner;
        let (state, states) = watch::channel(SessionState::Suspended);
        let (doubter, doubts) = watch::channel(doubtful);
        let (opened, answer) = oneshot::channel();
        let events = Arc::new(EventQueue::default());
        let safety = Arc::new(Safety::default());
        let last = match role {
            Role::Single { number } => number - 1,
            Role::Owner | Role::Opener | Role::Guest { .. } => 0,
        };
        let line = Arc::new(Line::after(last, &self.commands));
        let ports = SessionPorts {
            state,
            doubtful: doubter,
            events: events.clone(),
            opened: Some(opened),
            line: line.clone(),
            safety: safety.clone(),
        };
        self.commands.send(Command::Open { settings: self.settings, nonce, ports });
        let opened = answer.await.map_err(|_| OpenError::Closed)??;
        let mut proof = doubts.clone();
        let session = Session {
            shared: Arc::new(Shared {
                commands: self.commands,
                key: opened.key,
                id: opened.session,
                timeout: opened.timeout,
                states,
                doubts,
                safety,
                clock: self.clock,
                events: Mutex::new(Some(events)),
                line,
                leave: AtomicBool::new(role != Role::Owner || doubtful),
                owners: AtomicU64::new(0),
                permits: Arc::new(Semaphore::new(self.outstanding)),
                outstanding: self.outstanding,
                deadline: self.deadline,
            }),
        };
        if doubtful {
            // Until the session is proven it may be somebody else's: one that is not wanted any more is
            // left alone.
            let proven = proof.wait_for(|doubtful| !doubtful).await;
            proven.map_err(|_| OpenError::Over(OverReason::Unknown))?;
            session.shared.leave.store(false, Ordering::Relaxed);
        }
        Ok(session)
    }
}
