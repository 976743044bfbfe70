//! Calls and reads: what was asked for, and the futures of their ends.
//!
//! `send` puts a call into the session's order at once; the future that it gives only waits. Awaiting
//! a call does both, after waiting for room if too many are outstanding.
//! Invariants: a future that is dropped before the end gives its call up; one that is dropped with the end
//! in it, or too late, gives back what the call was granted, if the call says how ([`Call::undo`]).

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use gesmas_protocol::{Bytes, OnBehalf, RequestBody};
use gesmas_sdk::stub::StubCall;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{
    clock::{Clock, Moment},
    command::{End, NewRequest, Ticket},
    failure::{CallFailure, NotSentReason, UnknownReason},
    handle::{Session, body_of},
    session::{reads::ReadTarget, undo::Undo},
};

/// Deadlines further away are none: a clock cannot count them, and nobody lives to see them.
const DEADLINE_LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

fn after(clock: &Clock, deadline: Option<Duration>) -> Option<Moment> {
    let deadline = deadline.filter(|deadline| *deadline <= DEADLINE_LONGEST);
    deadline.map(|deadline| clock.now() + deadline)
}

type NameUndo = dyn Fn(&Bytes) -> Option<StubCall> + Send + Sync;

/// A request that is not made yet.
#[must_use = "a call does nothing until it is sent or awaited"]
pub struct Call {
    pub(crate) session: Session,
    pub(crate) body: RequestBody,
    pub(crate) deadline: Option<Duration>,
    pub(crate) withdrawn: bool,
    pub(crate) undo: Option<Box<NameUndo>>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("body", &self.body)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// Gives it a deadline of its own.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Has a method run under another session, or none; see [`OnBehalf`]. Other requests know no such
    /// thing.
    pub fn on_behalf(mut self, whom: OnBehalf) -> Self {
        if let RequestBody::Call { on_behalf, .. } = &mut self.body {
            *on_behalf = whom;
        }
        self
    }

    /// Cancels it instead of making it, if this or another client has made it under its number; if
    /// none has, none can any more. Its end tells what became of it.
    pub(crate) const fn withdrawn(mut self) -> Self {
        self.withdrawn = true;
        self
    }

    /// Lets it wait for ever: until it ends, is dropped, or the session is over.
    pub const fn without_deadline(mut self) -> Self {
        self.deadline = None;
        self
    }

    /// Says what takes back what the call is granted: by its result, the call that does, or none when
    /// nothing was granted.
    ///
    /// Then giving the call up is safe at any moment. When its future is dropped, or its deadline passes
    /// here without word, it is cancelled; if the cancel comes too late, or the future is dropped with the
    /// result in it, the call that `undo` names is made in the same session. So either the caller has what
    /// was granted, or nobody has.
    ///
    /// `undo` runs on the task of the client or where the future is dropped: it names the call, and does
    /// nothing else.
    ///
    /// [`Session::acquire`] does this with types, and guards what was granted afterwards. A call of
    /// [`KeyedCall`](crate::KeyedCall) is undone by nobody, since its outcome is for others too.
    pub fn undo(
        mut self,
        undo: impl Fn(&Bytes) -> Option<StubCall> + Send + Sync + 'static,
    ) -> Self {
        self.undo = Some(Box::new(undo));
        self
    }

    /// Makes the request: from here on it has its place in the order of the session.
    ///
    /// With too many outstanding, it is not made and the future says so.
    pub fn send(self) -> PendingCall {
        let deadline = after(&self.session.shared.clock, self.deadline);
        let permit = self.session.shared.permits.clone().try_acquire_owned();
        match permit {
            Ok(permit) => self.send_with(deadline, permit),
            Err(_) => {
                let outstanding = self.session.shared.outstanding as u64;
                PendingCall::failed(self.session, NotSentReason::TooMany(outstanding))
            }
        }
    }

    fn send_with(self, deadline: Option<Moment>, permit: OwnedSemaphorePermit) -> PendingCall {
        let (sender, receiver) = oneshot::channel();
        let ticket = Ticket::Caller { sender, _permit: Some(permit) };
        let Self { session, body, withdrawn, undo, .. } = self;
        let on_behalf = match &body {
            RequestBody::Call { on_behalf, .. } => *on_behalf,
            _ => OnBehalf::Requester,
        };
        let undo = undo
            .map(|name| Undo::new(move |result| name(result).map(|call| body_of(call, on_behalf))));
        let number = session.enqueue(NewRequest { body, deadline, ticket, withdrawn, undo });
        PendingCall { session, number: Some(number), receiver }
    }

    /// Waits for room if too many are outstanding, no longer than its deadline, and makes the request:
    /// what awaiting a call does first.
    pub async fn send_when_there_is_room(self) -> PendingCall {
        let deadline = after(&self.session.shared.clock, self.deadline);
        let room = self.session.shared.permits.clone().acquire_owned();
        let permit = match self.deadline {
            None => room.await,
            Some(patience) => match tokio::time::timeout(patience, room).await {
                Ok(permit) => permit,
                Err(_) => return PendingCall::failed(self.session, NotSentReason::Deadline),
            },
        };
        self.send_with(deadline, permit.expect("the permits of a session are never closed"))
    }
}

impl IntoFuture for Call {
    type Output = Result<Bytes, CallFailure>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.send_when_there_is_room().await.await })
    }
}

/// A request that is made. Dropping it gives the request up: it is cancelled in the cluster.
#[derive(Debug)]
#[must_use = "dropping a pending call cancels it"]
pub struct PendingCall {
    session: Session,
    /// None once the end was heard.
    number: Option<u64>,
    receiver: oneshot::Receiver<End>,
}

impl PendingCall {
    /// One that nothing cancels.
    pub(crate) const fn detached(session: Session, receiver: oneshot::Receiver<End>) -> Self {
        Self { session, number: None, receiver }
    }

    fn failed(session: Session, reason: NotSentReason) -> Self {
        let (sender, receiver) = oneshot::channel();
        drop(sender.send(Err(CallFailure::NotSent(reason)).into()));
        Self { session, number: None, receiver }
    }

    /// Number of the request in its session; none when it was not made or has ended.
    #[must_use]
    pub const fn number(&self) -> Option<u64> {
        self.number
    }

    /// Cancels the request and waits on: the future tells what became of it. That is a result if it was
    /// served before the cancel came, and otherwise a failure whose [`CallFailure::fate`] says whether it
    /// was withdrawn, had ended, or is unknown.
    pub fn withdraw(&self) {
        if let Some(number) = self.number {
            self.session.withdraw(number);
        }
    }
}

impl Future for PendingCall {
    type Output = Result<Bytes, CallFailure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(context).map(|end| {
            self.number = None;
            end.map_or(Err(CallFailure::Unknown(UnknownReason::Closed)), End::take)
        })
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.session.give_up(number);
        }
    }
}

/// A read that is not made yet.
#[derive(Debug)]
#[must_use = "a read does nothing until it is sent or awaited"]
pub struct Read {
    pub(crate) session: Session,
    pub(crate) target: ReadTarget,
    pub(crate) deadline: Option<Duration>,
}

impl Read {
    /// Gives it a deadline of its own.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Lets it wait for ever: until it ends or the session is over.
    pub const fn without_deadline(mut self) -> Self {
        self.deadline = None;
        self
    }

    /// Lets the replica answer from what it has, which may be old, but never older than what this
    /// session has seen.
    pub const fn stale(mut self) -> Self {
        self.target.stale = true;
        self
    }

    /// Makes it a read of nobody in particular: its body sees no session, and it waits for none of the
    /// session's requests.
    pub const fn anonymous(mut self) -> Self {
        self.target.anonymous = true;
        self
    }

    /// Makes the read: it sees all requests that the session made before.
    pub fn send(self) -> PendingRead {
        let deadline = after(&self.session.shared.clock, self.deadline);
        let (sender, receiver) = oneshot::channel();
        let ticket = Ticket::Caller { sender, _permit: None };
        self.session.enqueue_read(self.target, deadline, ticket);
        PendingRead { receiver, _session: self.session }
    }
}

impl IntoFuture for Read {
    type Output = Result<Bytes, CallFailure>;
    type IntoFuture = PendingRead;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

/// A read that is made.
#[derive(Debug)]
#[must_use = "a read is for its result"]
pub struct PendingRead {
    receiver: oneshot::Receiver<End>,
    /// Keeps the session open.
    _session: Session,
}

impl Future for PendingRead {
    type Output = Result<Bytes, CallFailure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let failure = Err(CallFailure::NotSent(NotSentReason::Closed));
        Pin::new(&mut self.receiver).poll(context).map(|end| end.map_or(failure, End::take))
    }
}
