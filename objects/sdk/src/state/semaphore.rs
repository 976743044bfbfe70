//! Semaphores: what a method can wait for.
//!
//! A semaphore is a count and a queue of waiters. `p` takes a permit, and waits in the queue when
//! there is none; `v` gives one to the head of the queue, or adds it to the count. Nobody overtakes
//! a waiter, and exactly one waiter wakes for each permit.

use std::{borrow::Cow, marker::PhantomData, time::Duration};

use gesmas_abi::{
    call::{self, PStatus, PermitOwner, Request, Wait},
    interface::{FieldKind, Type},
    key::Key,
    value::{Time, nanoseconds},
};

use super::{Handle, Permit};
use crate::{Cancelled, NotAcquired, Result, ctx::Session, host};

/// A semaphore of the object.
#[derive(Clone, Debug)]
pub struct Semaphore {
    name: Cow<'static, [u8]>,
}

/// Who owns a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// An invocation, by its number.
    Invocation(u64),
    /// A session.
    Session(Session),
}

/// An owned permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The permit.
    pub permit: Permit,
    /// Who owns it.
    pub holder: Holder,
}

impl Semaphore {
    /// Takes a permit; blocks until there is one.
    ///
    /// # Errors
    /// [`Cancelled`] when the call is cancelled while it waits. No permit is taken then.
    pub fn p(&mut self) -> Result<()> {
        match self.ask(Wait::Forever, PermitOwner::Nobody) {
            (PStatus::Granted, _) => Ok(()),
            _ => Err(Cancelled),
        }
    }

    /// Takes a permit if there is one and nobody waits for it; never blocks.
    pub fn try_p(&mut self) -> bool {
        self.ask(Wait::Never, PermitOwner::Nobody).0 == PStatus::Granted
    }

    /// Takes a permit; blocks at most that long. False: the time was up.
    ///
    /// # Errors
    /// [`Cancelled`] when the call is cancelled while it waits.
    pub fn p_for(&mut self, duration: Duration) -> Result<bool> {
        self.p_timed(Wait::For(nanoseconds(duration)))
    }

    /// Takes a permit; blocks at most until that time. False: the time was up.
    ///
    /// # Errors
    /// [`Cancelled`] when the call is cancelled while it waits.
    pub fn p_until(&mut self, time: Time) -> Result<bool> {
        self.p_timed(Wait::Until(time.0))
    }

    fn p_timed(&mut self, wait: Wait) -> Result<bool> {
        match self.ask(wait, PermitOwner::Nobody).0 {
            PStatus::Granted => Ok(true),
            PStatus::TimedOut | PStatus::WouldBlock => Ok(false),
            _ => Err(Cancelled),
        }
    }

    /// Takes a permit that this invocation owns: given back when it ends, however it ends.
    ///
    /// # Errors
    /// [`Cancelled`] when the call is cancelled while it waits.
    pub fn acquire(&mut self) -> Result<Permit> {
        let owned = self.own(Wait::Forever, PermitOwner::Invocation)?;
        owned.ok_or(Cancelled)
    }

    /// Like [`acquire`](Self::acquire), but never blocks.
    pub fn try_acquire(&mut self) -> Option<Permit> {
        self.own(Wait::Never, PermitOwner::Invocation).ok().flatten()
    }

    /// Like [`acquire`](Self::acquire), but blocks at most until that time: none when it had come.
    ///
    /// # Errors
    /// [`Cancelled`] when the call is cancelled while it waits.
    pub fn acquire_until(&mut self, time: Time) -> Result<Option<Permit>> {
        Ok(self.own(Wait::Until(time.0), PermitOwner::Invocation)?)
    }

    /// Takes a permit that the caller's session owns: given back when the session is over.
    ///
    /// # Errors
    /// [`NotAcquired`] when the call is cancelled while it waits, or there is no session to own it.
    pub fn acquire_for_session(&mut self) -> Result<Permit, NotAcquired> {
        let owned = self.own(Wait::Forever, PermitOwner::Session)?;
        owned.ok_or(NotAcquired::Cancelled)
    }

    /// Like [`acquire_for_session`](Self::acquire_for_session), but never blocks: none when there
    /// is no permit.
    ///
    /// # Errors
    /// [`NotAcquired`] when there is no session to own it.
    pub fn try_acquire_for_session(&mut self) -> Result<Option<Permit>, NotAcquired> {
        self.own(Wait::Never, PermitOwner::Session)
    }

    /// Like [`acquire_for_session`](Self::acquire_for_session), but blocks at most that long: none
    /// when the time was up.
    ///
    /// # Errors
    /// [`NotAcquired`] when the call is cancelled while it waits, or there is no session to own it.
    pub fn acquire_for_session_within(
        &mut self,
        duration: Duration,
    ) -> Result<Option<Permit>, NotAcquired> {
        self.own(Wait::For(nanoseconds(duration)), PermitOwner::Session)
    }

    /// Like [`acquire_for_session`](Self::acquire_for_session), but blocks at most until that time:
    /// none when it had come.
    ///
    /// # Errors
    /// [`NotAcquired`] when the call is cancelled while it waits, or there is no session to own it.
    pub fn acquire_for_session_until(&mut self, time: Time) -> Result<Option<Permit>, NotAcquired> {
        self.own(Wait::Until(time.0), PermitOwner::Session)
    }

    fn own(&mut self, wait: Wait, owner: PermitOwner) -> Result<Option<Permit>, NotAcquired> {
        match self.ask(wait, owner) {
            (PStatus::Owned, permit) => Ok(Some(Permit(permit))),
            (PStatus::TimedOut | PStatus::WouldBlock, _) => Ok(None),
            (PStatus::SessionOver, _) => Err(NotAcquired::SessionOver),
            (PStatus::NoSession, _) => Err(NotAcquired::NoSession),
            (PStatus::Granted | PStatus::Cancelled, _) => Err(NotAcquired::Cancelled),
        }
    }

    fn ask(&mut self, wait: Wait, owner: PermitOwner) -> (PStatus, u64) {
        let request = Request::P { wait, owner, semaphore: &self.name };
        host::ask(&request, (PStatus::Cancelled, 0), |reader| {
            Ok((PStatus::decode(reader)?, reader.u64()?))
        })
    }

    /// Gives back an owned permit; false when nobody owns it any more.
    pub fn release(&mut self, permit: Permit) -> bool {
        host::flag(&Request::Release { permit: permit.0 })
    }

    /// Gives a permit: wakes the first waiter, or adds one to the count.
    pub fn v(&mut self) {
        self.v_n(1_u32);
    }

    /// Gives permits: wakes the first waiters, and adds what is left over to the count.
    pub fn v_n(&mut self, count: impl Into<u64>) {
        host::tell(&Request::V { count: count.into(), semaphore: &self.name });
    }

    /// Sets the count; in `init` only.
    pub fn set(&mut self, count: impl Into<u64>) {
        host::tell(&Request::SetCount { count: count.into(), semaphore: &self.name });
    }

    /// How many permits there are to take.
    #[must_use]
    pub fn value(&self) -> u64 {
        host::number(&Request::Count { semaphore: &self.name })
    }

    /// How many calls wait.
    #[must_use]
    pub fn waiters(&self) -> u64 {
        host::number(&Request::Waiters { semaphore: &self.name })
    }

    /// The owned permits, oldest first.
    #[must_use]
    pub fn owners(&self) -> Vec<Owner> {
        host::ask(&Request::Owners { semaphore: &self.name }, Vec::new(), |reader| {
            let count = reader.count(17)?;
            let mut owners = Vec::with_capacity(count);
            for _ in 0..count {
                let call::Owner { permit, holder } = call::Owner::decode(reader)?;
                let holder = match holder {
                    call::Holder::Invocation(number) => Holder::Invocation(number),
                    call::Holder::Session(number) => Holder::Session(Session(number)),
                };
                owners.push(Owner { permit: Permit(permit), holder });
            }
            Ok(owners)
        })
    }
}

impl From<Cancelled> for NotAcquired {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl Handle for Semaphore {
    const KIND: FieldKind = FieldKind::Semaphore;
    const KEY: Option<Type> = None;
    const VALUE: Option<Type> = None;

    fn open(name: &'static str) -> Self {
        Self { name: Cow::Borrowed(name.as_bytes()) }
    }
}

/// Semaphores that are named at run time: one for each waiter, say. One that is as a fresh one is
/// (count 0, nobody waits) takes no room.
#[derive(Debug)]
pub struct SemaphoreMap<K> {
    name: &'static str,
    key: PhantomData<fn() -> K>,
}

impl<K: Key> SemaphoreMap<K> {
    /// The semaphore of a key.
    #[must_use]
    pub fn at(&self, key: &K) -> Semaphore {
        let mut name = self.name.as_bytes().to_vec();
        name.push(0);
        key.encode_key(&mut name);
        Semaphore { name: Cow::Owned(name) }
    }
}

impl<K: Key> Handle for SemaphoreMap<K> {
    const KIND: FieldKind = FieldKind::SemaphoreMap;
    const KEY: Option<Type> = Some(K::TYPE);
    const VALUE: Option<Type> = None;

    fn open(name: &'static str) -> Self {
        Self { name, key: PhantomData }
    }
}
