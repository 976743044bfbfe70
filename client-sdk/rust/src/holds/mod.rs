//! Holds: what a session was granted, given back when it is dropped; and handles of the classes that
//! grant something.
//!
//! ```no_run
//! # async fn example(session: gesmas_client::Session) -> Result<(), Box<dyn std::error::Error>> {
//! let hold = session.lock("printer").acquire().await?;
//! tokio::select! {
//!     () = hold.lost() => println!("stop: the session may be over"),
//!     () = print(hold.token()) => {}
//! }
//! hold.release().await?;
//! # Ok(())
//! # }
//! # async fn print(token: u64) {}
//! ```
//!
//! Taking something is safe to cancel at any moment, by `select!`, a timeout, an aborted task: afterwards
//! either the caller has the [`Hold`], or nobody has within a round trip to the cluster. A call that was
//! not sent is not sent; one that waits is cancelled; what it is granted all the same is given back
//! ([`Call::undo`](crate::Call::undo)).
//! A hold that is dropped gives back without waiting for it; [`Hold::release`] tells whether it did.
//! Classes of one's own get the same by [`Session::acquire`].
//!
//! Invariants: between a grant and its hold there is no point at which a future can be dropped; what gives
//! back is sent whatever is dropped meanwhile, and is no subject of deadlines.
//! Not here: what outlives its session. When a session ends the classes give back what it held.

mod election;
mod lease;
mod lock;
mod membership;
mod rw_lock;
mod semaphore;

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use gesmas_abi::value::{Value, from_bytes};
use gesmas_protocol::Bytes;
use gesmas_sdk::{
    MethodError,
    stub::{StubCall, StubError, TypedCall},
};

pub use self::{
    election::Election,
    lease::{Lease, LeaseHold},
    lock::Lock,
    membership::{Member, Membership},
    rw_lock::RwLock,
    semaphore::Semaphore,
};
use crate::{call::Call, failure::CallFailure, guard::Guard, handle::Session, stub::invoke_error};

/// How long after the end of a wait that has a limit its end is waited for.
const MARGIN: Duration = Duration::from_secs(1);

/// What comes of taking something: `E` is the error of the class.
pub type Taken<T, E> = Result<T, StubError<E, CallFailure>>;

/// Something that a session holds. Dropped, it is given back, without waiting.
///
/// `T` is what the session was granted, mostly a fencing token; `E` is the error with which the class
/// refuses to take it back.
#[must_use = "a hold is given back when it is dropped"]
pub struct Hold<T, E> {
    session: Session,
    granted: T,
    /// None once it is given back.
    give_back: Option<StubCall>,
    error: PhantomData<fn() -> E>,
}

impl<T: fmt::Debug, E> fmt::Debug for Hold<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("granted", &self.granted)
            .field("give_back", &self.give_back)
            .finish_non_exhaustive()
    }
}

impl<T, E> Hold<T, E> {
    /// What was granted.
    pub const fn granted(&self) -> &T {
        &self.granted
    }

    /// The session that holds it.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Whether it is, or may be, lost, because the session is over or may be.
    pub fn is_lost(&self) -> bool {
        self.session.may_be_over()
    }

    /// Ends when it is, or may be, lost.
    pub async fn lost(&self) {
        self.session.until_it_may_be_over().await;
    }

    /// Leaves it with the session, and gives what was granted: it is given back by hand, or when the
    /// session is over.
    pub fn keep(mut self) -> T
    where
        T: Clone,
    {
        self.give_back = None;
        self.granted.clone()
    }
}

impl<T, E: MethodError> Hold<T, E> {
    /// Gives it back and tells whether the class took it.
    ///
    /// It is given back also when the future is dropped: before it has begun because the hold is, and
    /// later because nothing cancels a call that gives back.
    ///
    /// # Errors
    /// An error of the class when the session did not hold it any more, a [`CallFailure`] when nobody
    /// can tell, or when the session was over, with which it was given back.
    pub async fn release(mut self) -> Taken<(), E> {
        let call = self.give_back.take().expect("only this gives back a hold that is there");
        match self.session.give_back(call).await {
            Ok(_) => Ok(()),
            Err(failure) => {
                let end: Result<Bytes, _> = Err(invoke_error(failure));
                TypedCall::<(), E>::decode(end)
            }
        }
    }
}

impl<E> Hold<u64, E> {
    /// The fencing token.
    #[must_use]
    pub const fn token(&self) -> u64 {
        self.granted
    }

    /// A guard for those who work under it: it knows the token, and gives nothing back.
    #[must_use]
    pub fn guard(&self) -> Guard {
        self.session.guard(self.granted)
    }
}

impl<T, E> Drop for Hold<T, E> {
    fn drop(&mut self) {
        if let Some(call) = self.give_back.take() {
            self.session.make(call);
        }
    }
}

/// Names the call that gives back what was granted.
type GiveBack<T, E> = Arc<dyn Fn(&T) -> TypedCall<(), E> + Send + Sync>;

impl Session {
    /// Takes something of any class: makes a call that is granted something, and holds it.
    ///
    /// `give_back` names the call that gives back what `call` returned. It gives back a grant that comes
    /// too late for its caller, and what the [`Hold`] holds when that is dropped. The call waits as long as
    /// it takes, whatever the deadline of the session is.
    ///
    /// ```no_run
    /// use gesmas_lock::LockCalls;
    ///
    /// # async fn example(session: gesmas_client::Session) -> Result<(), Box<dyn std::error::Error>> {
    /// let calls = LockCalls::new("printer");
    /// let lock = calls.lock(session.new_owner());
    /// let hold = session.acquire(lock, move |token| calls.unlock(*token)).await?;
    /// println!("printing with token {}", hold.token());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn acquire<T, E, F>(
        &self,
        call: TypedCall<T, E>,
        give_back: impl Fn(&T) -> TypedCall<(), F> + Send + Sync + 'static,
    ) -> Taken<Hold<T, F>, E>
    where
        T: Value + 'static,
        E: MethodError,
        F: 'static,
    {
        let give_back: GiveBack<T, F> = Arc::new(give_back);
        let granted = self.take(call, None, give_back.clone(), Some).await?;
        Ok(self.hold(granted, &give_back))
    }

    /// The same of a method that may grant nothing, because something is not free or was not in time.
    /// `patience` is how long the call may take; none is as long as it takes.
    ///
    /// # Errors
    /// As a stub's: nothing is held then.
    pub async fn try_acquire<T, E, F>(
        &self,
        call: TypedCall<Option<T>, E>,
        patience: Option<Duration>,
        give_back: impl Fn(&T) -> TypedCall<(), F> + Send + Sync + 'static,
    ) -> Taken<Option<Hold<T, F>>, E>
    where
        T: Value + 'static,
        E: MethodError,
        F: 'static,
    {
        let give_back: GiveBack<T, F> = Arc::new(give_back);
        let granted = self.take(call, patience, give_back.clone(), |granted| granted).await?;
        Ok(granted.map(|granted| self.hold(granted, &give_back)))
    }

    /// Makes a call whose result may be a grant, which `of` finds in it.
    async fn take<R, T, E, F>(
        &self,
        call: TypedCall<R, E>,
        patience: Option<Duration>,
        give_back: GiveBack<T, F>,
        of: fn(R) -> Option<T>,
    ) -> Taken<R, E>
    where
        R: Value + 'static,
        T: 'static,
        E: MethodError,
        F: 'static,
    {
        let undo = move |result: &Bytes| {
            let granted = from_bytes::<R>(result).ok().and_then(of)?;
            Some(give_back(&granted).into_call())
        };
        let call = self.call_of(call.into_call()).undo(undo);
        let call = match patience {
            Some(patience) => call.deadline(patience),
            None => call.without_deadline(),
        };
        TypedCall::<R, E>::decode(call.await.map_err(invoke_error))
    }

    fn call_of(&self, call: StubCall) -> Call {
        let StubCall { class, object, method, signature, arguments, .. } = call;
        self.call(class, object, method, signature, arguments)
    }

    fn hold<T, E>(&self, granted: T, give_back: &GiveBack<T, E>) -> Hold<T, E> {
        let give_back = Some(give_back(&granted).into_call());
        Hold { session: self.clone(), granted, give_back, error: PhantomData }
    }

    /// The lock of this name.
    #[must_use]
    pub fn lock(&self, object: impl Into<String>) -> Lock {
        Lock::new(self.clone(), object.into())
    }

    /// The read-write lock of this name.
    #[must_use]
    pub fn rw_lock(&self, object: impl Into<String>) -> RwLock {
        RwLock::new(self.clone(), object.into())
    }

    /// The semaphore of this name.
    #[must_use]
    pub fn semaphore(&self, object: impl Into<String>) -> Semaphore {
        Semaphore::new(self.clone(), object.into())
    }

    /// The election of this name.
    #[must_use]
    pub fn election(&self, object: impl Into<String>) -> Election {
        Election::new(self.clone(), object.into())
    }

    /// The group of members of this name.
    #[must_use]
    pub fn membership(&self, object: impl Into<String>) -> Membership {
        Membership::new(self.clone(), object.into())
    }

    /// The lease of this name.
    #[must_use]
    pub fn lease(&self, object: impl Into<String>) -> Lease {
        Lease::new(self.clone(), object.into())
    }
}

/// How long a call may take whose wait has this limit: the cluster's word that the time was up is waited
/// for, and no longer.
const fn patience(limit: Duration) -> Option<Duration> {
    Some(limit.saturating_add(MARGIN))
}
