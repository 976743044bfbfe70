//! A client of the world: what the stub of a class calls.
//!
//! Invariant: a call is in the outbox from when its future is first polled until the world delivers it,
//! and its end is in the mail from then on until the future takes it.

use std::{
    collections::{BTreeMap, VecDeque},
    future::{Future, poll_fn},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use gesmas_machine::{CallError, Refusal, SessionId};
use gesmas_sdk::{
    ctx::Session,
    stub::{Invoke, InvokeError, StubCall},
};

/// Why a call has no result, besides the errors of its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was admitted and ended so: cancelled, trapped, or without its object, say.
    Failed(CallError),
    /// It was not admitted, and changed nothing.
    Refused(Refusal),
    /// Its session was over before it ended.
    SessionOver,
}

/// How a call came back.
pub(crate) type Answer = Result<Vec<u8>, InvokeError<Ended>>;

/// A call on its way to the world.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) ticket: u64,
    pub(crate) task: u64,
    pub(crate) session: SessionId,
    pub(crate) call: StubCall,
}

/// What clients and their world share.
#[derive(Debug, Default)]
pub(crate) struct Post {
    pub(crate) outbox: VecDeque<Sent>,
    pub(crate) mail: BTreeMap<u64, Answer>,
    /// The task that is being polled.
    pub(crate) task: u64,
    tickets: u64,
}

/// The post, as it is locked for a moment; nobody panics while they hold it.
pub(crate) fn open(post: &Mutex<Post>) -> MutexGuard<'_, Post> {
    post.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client with a session of its own. Clones share the session.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) session: SessionId,
    pub(crate) post: Arc<Mutex<Post>>,
}

impl Client {
    /// Its session, as methods see it.
    #[must_use]
    pub fn session(&self) -> Session {
        Session(self.session.0)
    }
}

impl Invoke for Client {
    type Error = Ended;

    fn invoke(&self, call: StubCall) -> impl Future<Output = Answer> + Send {
        let (post, session) = (Arc::clone(&self.post), self.session);
        let (mut call, mut sent) = (Some(call), None);
        poll_fn(move |_| {
            let mut post = open(&post);
            let ticket = *sent.get_or_insert_with(|| {
                post.tickets += 1;
                let (ticket, task) = (post.tickets, post.task);
                let call = call.take().expect("it is sent once");
                post.outbox.push_back(Sent { ticket, task, session, call });
                ticket
            });
            post.mail.remove(&ticket).map_or(Poll::Pending, Poll::Ready)
        })
    }
}
