//! What handles ask of the hub.
//!
//! Handles are values of the user's tasks; the hub is owned by the one task that drives the
//! connection. They meet in this queue, in which a session's requests lie in the order of their
//! numbers.
//! The queue has no bound of its own: calls are bounded by the permits of their sessions, and
//! everything else by the callers that wait for it.

use std::{sync::Arc, time::Instant};

use gesmas_protocol::{AdminReply, AdminRequest, Bytes, RequestBody};
use tokio::sync::{OwnedSemaphorePermit, mpsc, mpsc::error::SendError, oneshot, watch};

use crate::{
    events::EventQueue,
    failure::{AdminFailure, CallFailure, NotSentReason, OpenError},
    session::{
        core::{SessionSettings, SessionState},
        reads::ReadTarget,
    },
};

/// Who is told that a request or read has ended.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// A caller.
    Caller {
        /// Its waiting future.
        sender: oneshot::Sender<Result<Bytes, CallFailure>>,
        /// Its share of what a session may have outstanding. A request that is given up returns it
        /// at once: it is either gone or one of those in flight, which the server bounds.
        _permit: Option<OwnedSemaphorePermit>,
    },
    /// The hub: a class was shipped.
    Shipped(String),
}

/// Where a session reports to.
#[derive(Debug)]
pub(crate) struct SessionPorts {
    pub(crate) state: watch::Sender<SessionState>,
    pub(crate) doubtful: watch::Sender<bool>,
    pub(crate) events: Arc<EventQueue>,
    pub(crate) opened: Option<oneshot::Sender<Result<Opened, OpenError>>>,
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
        deadline: Option<Instant>,
        ticket: Ticket,
        /// It is sent as a cancel from the start.
        withdrawn: bool,
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
        made_after: u64,
        target: ReadTarget,
        deadline: Option<Instant>,
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
        if let Err(SendError(Command::Call { ticket, .. })) = self.0.send(command) {
            ticket.resolve(Err(CallFailure::NotSent(NotSentReason::Closed)));
        }
    }
}

impl Ticket {
    /// Tells a caller; one that is gone needs nothing.
    pub(crate) fn resolve(self, result: Result<Bytes, CallFailure>) {
        if let Self::Caller { sender, .. } = self {
            drop(sender.send(result));
        }
    }
}
