//! What handles ask of the hub.
//!
//! Handles are values of the user's tasks; the hub is owned by the one task that drives the
//! connection. They meet in this queue, in which a session's requests lie in the order of their
//! numbers ([`Line`]).
//! The queue has no bound of its own: calls are bounded by the permits of their sessions, what gives
//! back by what was taken, and everything else by the callers that wait for it.
//! Invariant: an end that grants something is taken by its caller or undone, wherever it is dropped: on
//! its way to the caller, in the caller's hand, or with the runtime ([`End`]).

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use gesmas_protocol::{AdminReply, AdminRequest, Bytes, RequestBody};
use tokio::sync::{OwnedSemaphorePermit, mpsc, mpsc::error::SendError, oneshot, watch};

use crate::{
    clock::Moment,
    events::EventQueue,
    failure::{AdminFailure, CallFailure, NotSentReason, OpenError},
    session::{core::SessionState, reads::ReadTarget, settings::SessionSettings, undo::Undo},
};

/// Who is told that a request or read has ended.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// A caller.
    Caller {
        /// Its waiting future.
        sender: oneshot::Sender<End>,
        /// Its share of what a session may have outstanding. A request that is given up returns it
        /// at once: it is either gone or one of those in flight, which the server bounds.
        _permit: Option<OwnedSemaphorePermit>,
    },
    /// The hub: a class was shipped.
    Shipped(String),
    /// Nobody: what was held is given back for a caller that is gone.
    Nobody,
}

/// Where a session reports to.
#[derive(Debug)]
pub(crate) struct SessionPorts {
    pub(crate) state: watch::Sender<SessionState>,
    pub(crate) doubtful: watch::Sender<bool>,
    pub(crate) events: Arc<EventQueue>,
    pub(crate) opened: Option<oneshot::Sender<Result<Opened, OpenError>>>,
    pub(crate) line: Arc<Line>,
    pub(crate) safety: Arc<Safety>,
}

/// An open session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// Its name within the client.
    pub(crate) key: u64,
    /// Its number in the cluster.
    pub(crate) session: u64,
    /// Its timeout.
    pub(crate) timeout: std::time::Duration,
}

/// One wish. Sessions are named by their key within the client.
#[derive(Debug)]
pub(crate) enum Command {
    Open {
        settings: SessionSettings,
        nonce: u128,
        ports: SessionPorts,
    },
    Call {
        session: u64,
        /// The number that the request is going to have; the hub checks it.
        number: u64,
        body: RequestBody,
        deadline: Option<Moment>,
        ticket: Ticket,
        /// It is sent as a cancel from the start.
        withdrawn: bool,
        /// What takes back what it is granted.
        undo: Option<Undo>,
    },
    Cancel {
        session: u64,
        number: u64,
    },
    /// Cancels a request whose caller waits on.
    Withdraw {
        session: u64,
        number: u64,
    },
    Read {
        session: u64,
        /// Number of the session's last request before it.
        made_after: u64,
        target: ReadTarget,
        deadline: Option<Moment>,
        ticket: Ticket,
    },
    /// Asks whether a session lives.
    Probe {
        session: u64,
        ticket: Ticket,
    },
    EventsConsumed {
        session: u64,
        number: u64,
    },
    /// Events after this number go to this queue from now on.
    Replay {
        session: u64,
        after: u64,
        queue: Arc<EventQueue>,
    },
    /// Ends a session; the sender is dropped when the cluster has confirmed or cannot be reached.
    Close {
        session: u64,
        /// The session lives on in the cluster.
        leave: bool,
        done: Option<oneshot::Sender<()>>,
    },
    AddClass {
        class: String,
        module: Bytes,
    },
    Admin {
        request: AdminRequest,
        stale: bool,
        sender: oneshot::Sender<Result<AdminReply, AdminFailure>>,
    },
    /// Ends the client; the sender is dropped when everything is written.
    Shutdown {
        done: oneshot::Sender<()>,
    },
}

/// The way to the hub.
#[derive(Clone, Debug)]
pub(crate) struct Commands(pub(crate) mpsc::UnboundedSender<Command>);

impl Commands {
    /// Sends a wish. When the client is shut down the wish is dropped, with every sender in it, and
    /// who waits for one learns it that way; only a request is told that it was not sent.
    pub(crate) fn send(&self, command: Command) {
        if let Err(SendError(command)) = self.0.send(command) {
            refuse(command);
        }
    }
}

/// A request that is to be numbered.
#[derive(Debug)]
pub(crate) struct NewRequest {
    pub(crate) body: RequestBody,
    pub(crate) deadline: Option<Moment>,
    pub(crate) ticket: Ticket,
    pub(crate) withdrawn: bool,
    pub(crate) undo: Option<Undo>,
}

/// Where the requests of a session are numbered, by handles and by the hub.
///
/// Invariant: a number is given out under a lock that is held until the request lies in the queue; so the
/// order of numbers is the order of calls, whatever tasks they come from.
#[derive(Debug)]
pub(crate) struct Line {
    last: Mutex<u64>,
    /// Weak, since the hub has lines: it ends when all handles are gone.
    commands: mpsc::WeakUnboundedSender<Command>,
}

impl Line {
    /// A line of which the first request gets the number after `last`.
    pub(crate) fn after(last: u64, commands: &Commands) -> Self {
        Self { last: Mutex::new(last), commands: commands.0.downgrade() }
    }

    /// Puts a request into the queue and gives its number.
    pub(crate) fn enqueue(&self, session: u64, request: NewRequest) -> u64 {
        let NewRequest { body, deadline, ticket, withdrawn, undo } = request;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        let number = *last;
        let call = Command::Call { session, number, body, deadline, ticket, withdrawn, undo };
        match self.commands.upgrade() {
            Some(commands) => Commands(commands).send(call),
            None => refuse(call),
        }
        number
    }

    /// Puts something into the queue behind all requests made so far, by the number of the last.
    pub(crate) fn behind(&self, command: impl FnOnce(u64) -> Command) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(commands) = self.commands.upgrade() {
            Commands(commands).send(command(*last));
        }
    }

    /// Makes a request for which nobody waits.
    pub(crate) fn make(&self, session: u64, body: RequestBody) {
        let ticket = Ticket::Nobody;
        let request = NewRequest { body, deadline: None, ticket, withdrawn: false, undo: None };
        self.enqueue(session, request);
    }
}

/// Until when a session is known to live, for everybody who has a clock.
#[derive(Debug)]
pub(crate) struct Safety(AtomicU64);

impl Default for Safety {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Safety {
    /// Nobody doubts a session of which this is not said.
    pub(crate) fn set(&self, until: Option<Moment>) {
        self.0.store(until.map_or(u64::MAX, Moment::nanoseconds), Ordering::Relaxed);
    }

    pub(crate) fn has_passed(&self, now: Moment) -> bool {
        now.nanoseconds() >= self.0.load(Ordering::Relaxed)
    }
}

/// The end of a request or read on its way to the caller.
#[derive(Debug)]
pub(crate) struct End {
    result: Result<Bytes, CallFailure>,
    grant: Option<Grant>,
}

impl End {
    pub(crate) fn take(self) -> Result<Bytes, CallFailure> {
        if let Some(mut grant) = self.grant {
            grant.taken = true;
        }
        self.result
    }
}

impl From<Result<Bytes, CallFailure>> for End {
    fn from(result: Result<Bytes, CallFailure>) -> Self {
        Self { result, grant: None }
    }
}

/// What a request was granted. Dropped before somebody has taken it, it is undone.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) result: Bytes,
    pub(crate) undo: Undo,
    pub(crate) session: u64,
    pub(crate) line: Arc<Line>,
    pub(crate) taken: bool,
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.taken
            && let Some(body) = self.undo.of(&self.result)
        {
            self.line.make(self.session, body);
        }
    }
}

/// The client is shut down: of what is dropped now only a request has to be told.
fn refuse(command: Command) {
    if let Command::Call { ticket, .. } = command {
        ticket.resolve(Err(CallFailure::NotSent(NotSentReason::Closed)));
    }
}

impl Ticket {
    /// Tells a caller; one that is gone needs nothing.
    pub(crate) fn resolve(self, result: Result<Bytes, CallFailure>) {
        match self {
            Self::Caller { sender, .. } => drop(sender.send(result.into())),
            Self::Nobody => log_give_back(&result),
            Self::Shipped(_) => {}
        }
    }

    /// Gives a grant to its caller. If the caller is gone, or goes without it, it is undone.
    pub(crate) fn grant(self, grant: Grant) {
        if let Self::Caller { sender, .. } = self {
            let result = Ok(grant.result.clone());
            drop(sender.send(End { result, grant: Some(grant) }));
        }
    }
}

/// What was given back and was not held any more is no news; anything else may still be held.
fn log_give_back(result: &Result<Bytes, CallFailure>) {
    match result {
        Ok(_) => {}
        Err(failure @ (CallFailure::Failed(..) | CallFailure::NotSent(_))) => {
            tracing::debug!(%failure, "nothing was given back");
        }
        Err(failure) => tracing::warn!(%failure, "what a session holds may not be given back"),
    }
}
