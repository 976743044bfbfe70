//! `Membership`: who is there, with what each says of itself, and news of changes.
//!
//! A member is there as long as its session lives, and leaves by itself when that is over. Only its
//! session changes it or lets it leave: everybody can read the tokens. A session that joins again under
//! its name keeps its membership and says something else of itself, so that a retry succeeds. A name that
//! another session has is taken; `join_for` waits until it is free, as for the session that the same
//! program had before it was started again.
//! Each change has a *version*, greater than every one before. A caller that wants to know of changes
//! waits for the next with `await_change`, or subscribes: then changes are events of its session,
//! numbered and kept until they are acknowledged, and none is missed in silence.
//! A change costs a little for each subscriber, whatever the number of members; every other method costs
//! the same but for the logarithm of an ordered map. Calls that wait for a change are told a thousand at
//! a time. Members of one session that is over leave a hundred at a time, fewer where many subscribers are
//! told of long names, in one event; a session that joins meanwhile gets the name of one that has not
//! left yet.
//! Invariants: each member has an entry in `of_session`, each session in `watches` a watch and as many
//! members as are counted there, and each subscriber a watch; `news` counts no permit while nobody waits
//! for one; as many calls as `untold` says, from the head of its queue on, have not heard of the last
//! change. Calls wait for the end of the member that had their name when they looked.
//! Not here: roles, and leaders; that is what `Election` is for. An object exists from the first join
//! on, also without members, since versions go on rising.
//!
//! ```text
//! $ gesmas call Membership/workers join host-3 '{"text": "10.0.0.3:80"}' --hold
//! 17
//! $ gesmas call Membership/workers members '' 100
//! {"members": [{"name": "host-3", "metadata": {"text": "10.0.0.3:80"}, "token": 17, …}], "next": null}
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_membership::MembershipStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn follow(client: impl Invoke) {
//!     let workers = MembershipStub::new(client, "workers");
//!     let _ = workers.join("host-3".into(), "10.0.0.3:80".into()).await;
//!     let mut seen = 0;
//!     while let Ok(version) = workers.await_change(seen).await {
//!         seen = version;
//!         println!("{:?}", workers.members(String::new(), 100).await.ok());
//!     }
//! }
//! ```

mod change;
mod member;

use gesmas_sdk::prelude::*;

pub use change::{Change, Kind, NotAChange};
use member::{Kept, Watch};
pub use member::{Member, Members};

/// Members that `members` gives at once at most.
const PAGE: usize = 1_000;
/// Bytes of what members say of themselves that it gives at once, and what the last of them says.
const PAGE_BYTES: usize = 256 << 10;
/// Bytes of a name.
const NAME: usize = 255;
/// Bytes that a member may say of itself.
const METADATA: usize = 64 << 10;
/// Members that there may be.
const MEMBERS: u64 = 20_000;
/// Sessions that may be subscribed, since each change costs an event for each.
const SUBSCRIBERS: u64 = 1_000;
/// Calls that may wait for names: all that wait for one look when it is free.
const WAITING: u32 = 1_000;
/// Calls that wait for a change and are told in one step.
const PORTION: u64 = 250;
/// Members of a session that is over that leave in one step.
const LEAVING: usize = 100;
/// Bytes of events that tell all subscribers of one such step, at most, and what tells of the last member.
const TOLD: u64 = 512 << 10;
/// Events that joins may send in such a step, of calls that wait for the names.
const EVENTS: u64 = 1_000;

/// A group of members, each there as long as its session.
#[class]
pub struct Membership {
    members: Map<String, Kept>,
    of_session: Map<(Session, String), ()>,
    watches: Map<Session, Watch>,
    /// By the token of the member that has the name.
    free: SemaphoreMap<u64>,
    places: Semaphore,
    version: Value<u64>,
    news: Semaphore,
    untold: Value<u64>,
    subscribers: Map<Session, Alarm>,
}

/// Why a group stays as it is.
#[error]
pub enum MembershipError {
    /// another session has the member of this name
    NameTaken,
    /// a name has a byte at least, no line breaks, and not more bytes than it may
    BadName {
        /// how many bytes it may
        limit: u64,
    },
    /// the member says more of itself than it may
    MetadataTooLong {
        /// how many bytes it may
        limit: u64,
    },
    /// no member has this name and this token (any more)
    NotAMember,
    /// another session has the member with this token, and only that session changes it
    NotHolder,
    /// there are as many members as there may be
    TooManyMembers {
        /// how many that are
        limit: u64,
    },
    /// so many sessions are subscribed that no more may be
    TooManySubscribers,
    /// as many calls wait for the name as may wait
    TooManyWaiting {
        /// how many that are
        limit: u64,
    },
    /// members and subscribers are sessions, and this call has none
    NoSession,
    /// the call was cancelled
    Cancelled,
}

#[methods]
impl Membership {
    /// A fresh group has no members.
    #[init]
    fn init(&mut self) {
        self.places.set(WAITING);
    }

    /// The caller's session is a member from now on; returns its token. Where it is one already by this
    /// name, it says this of itself from now on, and its token stays.
    pub fn join(&mut self, name: String, metadata: Bytes) -> Result<u64, MembershipError> {
        self.try_join(&name, metadata)?.map_err(|_| MembershipError::NameTaken)
    }

    /// Like `join`, but while another session has the name it waits until that is over or leaves, at most
    /// that long, and returns nothing when the time was up.
    pub fn join_for(
        &mut self,
        name: String,
        metadata: Bytes,
        duration: Duration,
    ) -> Result<Option<u64>, MembershipError> {
        let end = ctx::now() + duration;
        let mut place = None;
        loop {
            let other = match self.try_join(&name, metadata.clone())? {
                Ok(token) => return Ok(Some(token)),
                Err(other) => other,
            };
            place = place.or_else(|| self.places.try_acquire());
            if place.is_none() {
                return Err(MembershipError::TooManyWaiting { limit: u64::from(WAITING) });
            }
            if !self.free.at(&other).p_until(end)? {
                return Ok(None);
            }
        }
    }

    /// A member says something else of itself; returns the version of the change. A token that is not
    /// its own (any more) changes nothing and is `NotAMember`; that of another session is `NotHolder`.
    pub fn update(
        &mut self,
        name: String,
        token: u64,
        metadata: Bytes,
    ) -> Result<u64, MembershipError> {
        check_metadata(&metadata)?;
        let kept = self.own(&name, token)?;
        Ok(self.say(name, Kept { metadata, ..kept }))
    }

    /// A member leaves. A token that is not its own (any more) changes nothing and is `NotAMember`; that
    /// of another session is `NotHolder`.
    pub fn leave(&mut self, name: String, token: u64) -> Result<(), MembershipError> {
        let kept = self.own(&name, token)?;
        let watch = self.watches.get(&kept.session).expect("each member is counted");
        if watch.members > 1 {
            self.watches.insert(&kept.session, Watch { members: watch.members - 1, ..watch });
        } else {
            self.watches.remove(&kept.session);
            ctx::cancel(watch.alarm);
        }
        self.remove(&name, &kept);
        self.changed(Kind::Left, ctx::fencing_token(), name);
        Ok(())
    }

    /// The newest version, as soon as it is greater than `after`; 0 for any. `members` tells the members
    /// of then.
    pub fn await_change(&mut self, after: u64) -> Result<u64> {
        loop {
            let version = self.version.get();
            if version > after {
                return Ok(version);
            }
            if let Err(cancelled) = self.news.p() {
                // A permit that was on its way to this call is of no use to the next.
                while self.news.try_p() {}
                return Err(cancelled);
            }
        }
    }

    /// Changes are events of the caller's session from now on: each a [`Change`] as a line of text, and
    /// those of one step lines of one event. Returns the newest version, after which the first of them
    /// comes.
    pub fn subscribe(&mut self) -> Result<u64, MembershipError> {
        let session = ctx::session().ok_or(MembershipError::NoSession)?;
        if !self.subscribers.contains_key(&session) {
            if self.subscribers.len() >= SUBSCRIBERS {
                return Err(MembershipError::TooManySubscribers);
            }
            let watch = ctx::watch_session(session, Self::SUBSCRIBER_OVER, (session,));
            self.subscribers.insert(&session, watch);
        }
        Ok(self.version.get())
    }

    /// No changes come to the caller's session any more; tells whether they did.
    pub fn unsubscribe(&mut self) -> Result<bool, MembershipError> {
        let session = ctx::session().ok_or(MembershipError::NoSession)?;
        let watch = self.subscribers.remove(&session);
        Ok(watch.is_some_and(ctx::cancel))
    }

    /// A member.
    #[read]
    pub fn member(&self, name: String) -> Result<Option<Member>> {
        Ok(self.members.get(&name).map(|kept| kept.member(name)))
    }

    /// The members after this name, '' for all, in the order of names, at most `limit` and at most 1,000,
    /// and fewer where they say much of themselves.
    #[read]
    pub fn members(&self, after: String, limit: u32) -> Result<Members> {
        let (mut members, mut bytes) = (Vec::new(), 0);
        let mut all = self.members.iter_after(&after);
        while members.len() < PAGE.min(limit as usize) && bytes < PAGE_BYTES {
            let Some((name, kept)) = all.next() else { break };
            bytes += name.len() + kept.metadata.len();
            members.push(kept.member(name));
        }
        let last = members.last().map_or(after, |member: &Member| member.name.clone());
        let next = all.next().map(|_| last);
        Ok(Members { members, next })
    }

    /// How many members there are.
    #[read]
    pub fn size(&self) -> Result<u64> {
        Ok(self.members.len())
    }

    /// The newest version, 0 before the first change.
    #[read]
    pub fn version(&self) -> Result<u64> {
        Ok(self.version.get())
    }

    /// A session with members is over: some of them leave, the others after them.
    #[handler]
    fn session_over(&mut self, session: Session) {
        let its = self.of_session.iter_after(&(session, String::new())).map(|(key, ())| key);
        let its = its.take_while(|(of, _)| *of == session).take(LEAVING);
        let its: Vec<_> = its.collect();
        let (mut left, mut events) = (String::new(), 0);
        let subscribers = self.subscribers.len();
        let mut all_left = its.len() < LEAVING;
        for (_, name) in &its {
            if events >= EVENTS || left.len() as u64 * subscribers >= TOLD {
                all_left = false;
                break;
            }
            let kept = self.members.get(name).expect("it is of the session");
            if self.remove(name, &kept) {
                events += subscribers;
            }
            let version = ctx::fencing_token();
            self.version.set(version);
            Change { version, kind: Kind::Left, name: name.clone() }.push_line(&mut left);
        }
        if all_left {
            self.watches.remove(&session);
        } else {
            let alarm = ctx::after(Duration::ZERO, Self::SESSION_OVER, (session,));
            self.watches.insert(&session, Watch { alarm, members: 0 });
        }
        if !left.is_empty() {
            self.tell(&left);
        }
    }

    #[handler]
    fn subscriber_over(&mut self, session: Session) {
        self.subscribers.remove(&session);
    }

    /// The next portion of the calls that wait for a change is told.
    #[handler]
    fn tell_more(&mut self) {
        let untold = self.untold.take().unwrap_or(0).min(self.news.waiters());
        self.wake(untold);
    }

    /// Joins; or gives the token of the other session's member that has the name.
    fn try_join(
        &mut self,
        name: &str,
        metadata: Bytes,
    ) -> Result<Result<u64, u64>, MembershipError> {
        let session = ctx::session().ok_or(MembershipError::NoSession)?;
        if name.is_empty() || name.len() > NAME || name.contains('\n') {
            return Err(MembershipError::BadName { limit: NAME as u64 });
        }
        check_metadata(&metadata)?;
        let name = name.to_owned();
        if let Some(kept) = self.members.get(&name) {
            if kept.session == session {
                let token = kept.token;
                if kept.metadata != metadata {
                    self.say(name, Kept { metadata, ..kept });
                }
                return Ok(Ok(token));
            }
            // While the members of a session that is over leave, none is counted there.
            let over = self.watches.get(&kept.session).is_some_and(|watch| watch.members == 0);
            if !over {
                return Ok(Err(kept.token));
            }
            self.remove(&name, &kept);
            self.changed(Kind::Left, ctx::fencing_token(), name.clone());
        }
        if self.members.len() >= MEMBERS {
            return Err(MembershipError::TooManyMembers { limit: MEMBERS });
        }
        Ok(Ok(self.add(session, name, metadata)))
    }

    fn add(&mut self, session: Session, name: String, metadata: Bytes) -> u64 {
        let token = ctx::fencing_token();
        let watch = self.watches.get(&session).unwrap_or_else(|| {
            let alarm = ctx::watch_session(session, Self::SESSION_OVER, (session,));
            Watch { alarm, members: 0 }
        });
        self.watches.insert(&session, Watch { members: watch.members + 1, ..watch });
        let key = (session, name);
        self.of_session.insert(&key, ());
        let (_, name) = key;
        self.members.insert(&name, Kept { metadata, token, session, since: ctx::now() });
        self.changed(Kind::Joined, token, name);
        token
    }

    /// A member of the caller's session.
    fn own(&self, name: &String, token: u64) -> Result<Kept, MembershipError> {
        let kept = self.members.get(name).filter(|kept| kept.token == token);
        let kept = kept.ok_or(MembershipError::NotAMember)?;
        let own = ctx::session() == Some(kept.session);
        own.then_some(kept).ok_or(MembershipError::NotHolder)
    }

    /// A member says what it says by now.
    fn say(&mut self, name: String, kept: Kept) -> u64 {
        self.members.insert(&name, kept);
        let version = ctx::fencing_token();
        self.changed(Kind::Updated, version, name);
        version
    }

    /// Takes a member out; all calls that wait for its name look again, in their order. Tells whether any
    /// does.
    fn remove(&mut self, name: &String, kept: &Kept) -> bool {
        self.members.remove(name);
        self.of_session.remove(&(kept.session, name.clone()));
        let mut free = self.free.at(&kept.token);
        let waiting = free.waiters();
        if waiting > 0 {
            free.v_n(waiting);
        }
        waiting > 0
    }

    fn changed(&mut self, kind: Kind, version: u64, name: String) {
        self.version.set(version);
        let mut line = String::new();
        Change { version, kind, name }.push_line(&mut line);
        self.tell(&line);
    }

    /// Tells of changes: all subscribers, and the first of the calls that wait at once.
    fn tell(&mut self, changes: &str) {
        self.subscribers.iter().for_each(|(session, _)| {
            ctx::notify(session, changes.as_bytes());
        });
        match self.news.waiters() {
            0 => {}
            waiting if self.untold.read().is_some() => self.untold.set(waiting),
            waiting => self.wake(waiting),
        }
    }

    /// Wakes a portion of so many calls; a timer, one at a time, wakes the others.
    fn wake(&mut self, calls: u64) {
        self.news.v_n(calls.min(PORTION));
        if calls > PORTION {
            self.untold.set(calls - PORTION);
            ctx::after(Duration::ZERO, Self::TELL_MORE, ());
        }
    }
}

fn check_metadata(metadata: &[u8]) -> Result<(), MembershipError> {
    let limit = METADATA as u64;
    if metadata.len() > METADATA {
        return Err(MembershipError::MetadataTooLong { limit });
    }
    Ok(())
}
