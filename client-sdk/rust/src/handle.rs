//! Handles to sessions.
//!
//! Invariant: numbers are given out under a lock that is held until the request lies in the queue to
//! the hub; so the order of numbers is the order of calls, whatever tasks they come from.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gesmas_protocol::{Bytes, OnBehalf, Replace, RequestBody};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::{
    call::{Call, Read},
    command::{Command, Commands, SessionPorts, Ticket},
    events::{EventQueue, Events},
    failure::{CallFailure, NotSentReason, OpenError},
    guard::Guard,
    session::{
        core::{Role, SessionSettings, SessionState},
        reads::ReadTarget,
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
}

impl SessionBuilder {
    pub(crate) fn new(commands: Commands) -> Self {
        Self {
            commands,
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
    /// of its own, behind which calls wait in the client.
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
    #[must_use]
    pub const fn nonce(mut self, nonce: u128) -> Self {
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
        let nonce = self.draw_nonce()?;
        let role = self.settings.role;
        let (state, states) = watch::channel(SessionState::Suspended);
        let (doubtful, doubts) = watch::channel(false);
        let (opened, answer) = oneshot::channel();
        let events = Arc::new(EventQueue::default());
        let ports = SessionPorts { state, doubtful, events: events.clone(), opened: Some(opened) };
        self.commands.send(Command::Open { settings: self.settings, nonce, ports });
        let answer = tokio::time::timeout(self.patience, answer).await;
        let opened = answer.map_err(|_| OpenError::TimedOut)?.map_err(|_| OpenError::Closed)??;
        Ok(Session {
            shared: Arc::new(Shared {
                commands: self.commands,
                key: opened.key,
                id: opened.session,
                timeout: opened.timeout,
                states,
                doubts,
                events: Mutex::new(Some(events)),
                last_number: Mutex::new(match role {
                    Role::Single { number } => number - 1,
                    Role::Owner | Role::Guest { .. } => 0,
                }),
                leave: AtomicBool::new(role != Role::Owner),
                owners: AtomicU64::new(0),
                permits: Arc::new(Semaphore::new(self.outstanding)),
                outstanding: self.outstanding,
                deadline: self.deadline,
            }),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    commands: Commands,
    key: u64,
    id: u64,
    timeout: Duration,
    states: watch::Receiver<SessionState>,
    doubts: watch::Receiver<bool>,
    events: Mutex<Option<Arc<EventQueue>>>,
    last_number: Mutex<u64>,
    /// Whether the session lives on when its handles are gone.
    leave: AtomicBool,
    /// Owners that were named so far.
    owners: AtomicU64,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) outstanding: usize,
    deadline: Option<Duration>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let leave = self.leave.load(Ordering::Relaxed);
        self.commands.send(Command::Close { session: self.key, leave, done: None });
    }
}

/// A session: a lease on the service that survives reconnects and changes of replica.
///
/// Clones are the same session. When the last one is dropped the session is closed: its blocked
/// calls are cancelled and the permits that it owns are given back.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) shared: Arc<Shared>,
}

impl Session {
    /// Its number in the cluster, as methods see it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Its timeout, as the cluster granted it.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.shared.timeout
    }

    /// Its state at the moment.
    #[must_use]
    pub fn state(&self) -> SessionState {
        *self.shared.states.borrow()
    }

    /// Its state, now and whenever it changes.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<SessionState> {
        self.shared.states.clone()
    }

    /// True while the session's timeout may have passed without the cluster having heard of it.
    #[must_use]
    pub fn doubts(&self) -> watch::Receiver<bool> {
        self.shared.doubts.clone()
    }

    /// Says how to invoke a method; `.await` or [`Call::send`] does.
    pub fn call(
        &self,
        class: impl Into<String>,
        object: impl Into<String>,
        method: impl Into<String>,
        signature: u64,
        arguments: impl Into<Bytes>,
    ) -> Call {
        self.request(RequestBody::Call {
            class: class.into(),
            object: object.into(),
            method: method.into(),
            signature,
            arguments: arguments.into(),
            on_behalf: OnBehalf::Requester,
        })
    }

    /// Invokes a method under the session's deadline.
    ///
    /// # Errors
    /// [`CallFailure`], which says whether the call may have had an effect.
    pub async fn invoke(
        &self,
        class: &str,
        object: &str,
        method: &str,
        signature: u64,
        arguments: impl Into<Bytes>,
    ) -> Result<Bytes, CallFailure> {
        self.call(class, object, method, signature, arguments).await
    }

    /// Says how to read; `.await` or [`Read::send`] does.
    pub fn read(
        &self,
        class: impl Into<String>,
        object: impl Into<String>,
        method: impl Into<String>,
        signature: u64,
        arguments: impl Into<Bytes>,
    ) -> Read {
        let target = ReadTarget {
            class: class.into(),
            object: object.into(),
            method: method.into(),
            signature,
            arguments: arguments.into(),
            stale: false,
            anonymous: false,
        };
        Read { session: self.clone(), target, deadline: self.shared.deadline }
    }

    /// Creates an object with the arguments of its class's `init`.
    pub fn create_object(
        &self,
        class: impl Into<String>,
        object: impl Into<String>,
        signature: u64,
        arguments: impl Into<Bytes>,
    ) -> Call {
        self.request(RequestBody::CreateObject {
            class: class.into(),
            object: object.into(),
            signature,
            arguments: arguments.into(),
        })
    }

    /// Removes an object; its callers end with `ObjectRemoved`.
    pub fn remove_object(&self, class: impl Into<String>, object: impl Into<String>) -> Call {
        self.request(RequestBody::RemoveObject { class: class.into(), object: object.into() })
    }

    /// Brings a class; the call ends when the class can be called.
    pub fn put_class(&self, class: impl Into<String>, module: impl Into<Bytes>) -> Call {
        let (class, module) = (class.into(), module.into());
        self.request(RequestBody::PutClass { class, module, replace: None })
    }

    /// Brings a class, in the place of other code that has its name; the call ends when the new code
    /// is called. Calls that are blocked go on in theirs.
    pub fn replace_class(
        &self,
        class: impl Into<String>,
        module: impl Into<Bytes>,
        replace: Replace,
    ) -> Call {
        let (class, module) = (class.into(), module.into());
        self.request(RequestBody::PutClass { class, module, replace: Some(replace) })
    }

    /// Removes a class that has no objects.
    pub fn remove_class(&self, class: impl Into<String>) -> Call {
        self.request(RequestBody::RemoveClass { class: class.into() })
    }

    /// Changes a limit of the cluster, as an operator.
    pub fn set_limit(&self, name: impl Into<String>, value: u64) -> Call {
        self.request(RequestBody::SetLimit { name: name.into(), value })
    }

    /// Ends a fault of a handler, as an operator. With `retry` the handler is called once more, with
    /// the arguments that it had, soon after; should it fail again there is a new fault.
    pub fn end_fault(
        &self,
        class: impl Into<String>,
        object: impl Into<String>,
        fault: u64,
        retry: bool,
    ) -> Call {
        let (class, object) = (class.into(), object.into());
        self.request(RequestBody::EndFault { class, object, fault, retry })
    }

    /// Cancels an invocation, as an operator.
    pub fn kill(&self, invocation: u64) -> Call {
        self.request(RequestBody::Kill { invocation })
    }

    /// Ends a session, as an operator.
    pub fn kill_session(&self, session: u64) -> Call {
        self.request(RequestBody::KillSession { session })
    }

    /// Gives the client the code of a class, to ship it when a call needs it.
    pub fn add_class(&self, class: &str, module: impl Into<Bytes>) {
        let class = class.into();
        self.shared.commands.send(Command::AddClass { class, module: module.into() });
    }

    /// The events of the session. They can be taken once.
    #[must_use]
    pub fn events(&self) -> Option<Events> {
        let queue = self.shared.events.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let commands = self.shared.commands.clone();
        let session = self.shared.key;
        Some(Events { queue, commands, session, handed_out: 0, acknowledges: true })
    }

    /// A number that nobody else on this session was given: for `Lock`, which tells owners apart by it.
    /// Tasks that share the session exclude each other if each asks with a number of its own.
    #[must_use]
    pub fn new_owner(&self) -> u64 {
        self.shared.owners.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Watches over something that the session holds under a fencing token.
    #[must_use]
    pub fn guard(&self, token: u64) -> Guard {
        Guard::new(self.clone(), token)
    }

    /// Lets go of the session without closing it: it lives on until it expires, and
    /// [`Client::attach`](crate::Client::attach) comes back to it. Calls that are outstanding are
    /// cancelled.
    pub fn leave(self) {
        self.shared.leave.store(true, Ordering::Relaxed);
    }

    pub(crate) fn replay(&self, after: u64) -> Events {
        let queue = Arc::new(EventQueue::default());
        let (commands, session) = (self.shared.commands.clone(), self.shared.key);
        commands.send(Command::Replay { session, after, queue: queue.clone() });
        Events { queue, commands, session, handed_out: 0, acknowledges: false }
    }

    pub(crate) fn consume_events(&self, number: u64) {
        let session = self.shared.key;
        self.shared.commands.send(Command::EventsConsumed { session, number });
    }

    /// Waits until the leader has heard of the session.
    pub(crate) async fn probe(&self) -> Result<(), CallFailure> {
        let (sender, answer) = oneshot::channel();
        let ticket = Ticket::Caller { sender, _permit: None };
        self.shared.commands.send(Command::Probe { session: self.shared.key, ticket });
        let closed = Err(CallFailure::NotSent(NotSentReason::Closed));
        answer.await.unwrap_or(closed).map(|_| ())
    }

    /// Closes the session and waits, as long as there is a connection, until the cluster has.
    pub async fn close(self) {
        let (done, closed) = oneshot::channel();
        let session = self.shared.key;
        self.shared.commands.send(Command::Close { session, leave: false, done: Some(done) });
        // The sender is dropped when there is nothing to wait for any more.
        drop(tokio::time::timeout(self.shared.timeout, closed).await);
    }

    fn request(&self, body: RequestBody) -> Call {
        Call { session: self.clone(), body, deadline: self.shared.deadline, withdrawn: false }
    }

    /// Puts a request into the queue and gives its number.
    pub(crate) fn enqueue(
        &self,
        body: RequestBody,
        deadline: Option<Instant>,
        ticket: Ticket,
        withdrawn: bool,
    ) -> u64 {
        let mut last = self.shared.last_number.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        let (session, number) = (self.shared.key, *last);
        let call = Command::Call { session, number, body, deadline, ticket, withdrawn };
        self.shared.commands.send(call);
        number
    }

    /// Puts a read into the queue, behind all requests made so far.
    pub(crate) fn enqueue_read(
        &self,
        target: ReadTarget,
        deadline: Option<Instant>,
        ticket: Ticket,
    ) {
        let last = self.shared.last_number.lock().unwrap_or_else(PoisonError::into_inner);
        let (session, made_after) = (self.shared.key, *last);
        self.shared.commands.send(Command::Read { session, made_after, target, deadline, ticket });
    }

    /// Cancels a request whose caller waits on.
    pub(crate) fn withdraw(&self, number: u64) {
        self.shared.commands.send(Command::Withdraw { session: self.shared.key, number });
    }

    /// Gives a request up.
    pub(crate) fn give_up(&self, number: u64) {
        self.shared.commands.send(Command::Cancel { session: self.shared.key, number });
    }
}
