//! Handles to sessions.
//!
//! Not here: opening them (`session_builder.rs`), and what they hold (`holds`).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use gesmas_protocol::{Bytes, OnBehalf, Replace, RequestBody};
use gesmas_sdk::stub::StubCall;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::{
    call::{Call, PendingCall, Read},
    clock::{Clock, Moment},
    command::{Command, Commands, End, Line, NewRequest, Safety, Ticket},
    events::{EventQueue, Events},
    failure::{CallFailure, NotSentReason},
    guard::Guard,
    session::{core::SessionState, reads::ReadTarget},
};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) commands: Commands,
    pub(crate) key: u64,
    pub(crate) id: u64,
    pub(crate) timeout: Duration,
    pub(crate) states: watch::Receiver<SessionState>,
    pub(crate) doubts: watch::Receiver<bool>,
    pub(crate) safety: Arc<Safety>,
    pub(crate) clock: Clock,
    pub(crate) events: Mutex<Option<Arc<EventQueue>>>,
    pub(crate) line: Arc<Line>,
    /// Whether the session lives on when its handles are gone.
    pub(crate) leave: AtomicBool,
    /// Owners that were named so far.
    pub(crate) owners: AtomicU64,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) outstanding: usize,
    pub(crate) deadline: Option<Duration>,
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
///
/// # How long it is believed
///
/// The cluster ends a session of which it has heard nothing for its timeout, and a client that was cut off
/// cannot see that. So it believes its session until the timeout has passed since
/// - the first attempt to open it left, if nobody can have opened it before ([`SessionBuilder::nonce`](
///   crate::SessionBuilder::nonce)), or
/// - a keep-alive left that was answered,
///
/// whichever is later. Nothing else proves that it lives: no opening that was sent again, no attachment, no
/// reply to a call. Time is counted by a clock that goes on while the machine sleeps and never goes
/// back ([`Clock`](crate::Clock)). So the client doubts before the cluster ends the session, whatever
/// clocks and machines do; [`Session::may_be_over`] and the holds say so.
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

    /// True while the session's timeout may have passed without the cluster having heard of it. After
    /// the machine has slept it may take a quarter of a second until this is told;
    /// [`Session::may_be_over`] says it at once.
    #[must_use]
    pub fn doubts(&self) -> watch::Receiver<bool> {
        self.shared.doubts.clone()
    }

    /// Whether the session is over, or may be: nothing was heard of it for its timeout. Who has a lock
    /// under it asks this before whatever must happen under the lock.
    #[must_use]
    pub fn may_be_over(&self) -> bool {
        matches!(self.state(), SessionState::Lost(_))
            || *self.shared.doubts.borrow()
            || self.shared.safety.has_passed(self.shared.clock.now())
    }

    /// Ends when the session is over, or may be.
    pub(crate) async fn until_it_may_be_over(&self) {
        let (mut states, mut doubts) = (self.states(), self.doubts());
        // No more news come of a session that is closed.
        tokio::select! {
            _ = states.wait_for(|state| matches!(state, SessionState::Lost(_))) => {}
            _ = doubts.wait_for(|doubtful| *doubtful) => {}
        }
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
    /// [`Client::attach`](crate::Client::attach) comes back to it. Calls that are outstanding go on
    /// in the cluster, and end here as unknown; what they are granted stays with the session.
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
        answer.await.map_or(closed, End::take).map(|_| ())
    }

    /// Closes the session and waits, as long as there is a connection, until the cluster has.
    pub async fn close(self) {
        let (done, closed) = oneshot::channel();
        let session = self.shared.key;
        self.shared.commands.send(Command::Close { session, leave: false, done: Some(done) });
        // The sender is dropped when there is nothing to wait for any more.
        drop(tokio::time::timeout(self.shared.timeout, closed).await);
    }

    /// Deadline of calls that name none.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.shared.deadline
    }

    /// The time on the client's clock.
    pub(crate) fn now(&self) -> Moment {
        self.shared.clock.now()
    }

    pub(crate) async fn sleep_until(&self, moment: Moment) {
        self.shared.clock.sleep_until(moment).await;
    }

    fn request(&self, body: RequestBody) -> Call {
        let deadline = self.shared.deadline;
        Call { session: self.clone(), body, deadline, withdrawn: false, undo: None }
    }

    /// Gives back what the session holds, at once and whatever becomes of the future, which only tells
    /// the end of it.
    pub(crate) fn give_back(&self, call: StubCall) -> PendingCall {
        let (sender, receiver) = oneshot::channel();
        let ticket = Ticket::Caller { sender, _permit: None };
        let (body, deadline) = (body_of(call, OnBehalf::Requester), None);
        let request = NewRequest { body, deadline, ticket, withdrawn: false, undo: None };
        self.enqueue(request);
        PendingCall::detached(self.clone(), receiver)
    }

    /// Makes a request for which nobody waits.
    pub(crate) fn make(&self, call: StubCall) {
        self.shared.line.make(self.shared.key, body_of(call, OnBehalf::Requester));
    }

    /// Puts a request into the queue and gives its number.
    pub(crate) fn enqueue(&self, request: NewRequest) -> u64 {
        self.shared.line.enqueue(self.shared.key, request)
    }

    /// Puts a read into the queue, behind all requests made so far.
    pub(crate) fn enqueue_read(
        &self,
        target: ReadTarget,
        deadline: Option<Moment>,
        ticket: Ticket,
    ) {
        let session = self.shared.key;
        self.shared.line.behind(|made_after| Command::Read {
            session,
            made_after,
            target,
            deadline,
            ticket,
        });
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

/// The request that makes a call.
pub(crate) fn body_of(call: StubCall, on_behalf: OnBehalf) -> RequestBody {
    let StubCall { class, object, method, signature, arguments, .. } = call;
    RequestBody::Call {
        class: class.into(),
        object,
        method: method.into(),
        signature,
        arguments: arguments.into(),
        on_behalf,
    }
}
