//! `Membership`: who is there, with what each says of itself, and news of changes.
//!
//! A member is there as long as its session lives, and leaves by itself when that is over. Each change has a
//! *version*, greater than every one before. Whoever wants to know of changes waits for the next with
//! `await_change`, or subscribes: then each change is an event of its session, numbered and kept until it
//! is acknowledged, and none is missed in silence.
//! A change costs a little for each subscriber and for each call that waits for it, whatever the number of
//! members; every other method costs the same but for the logarithm of an ordered map, and `members` goes
//! through them a page at a time.
//! Invariants: each member and each subscriber has a watch on its session; `news` counts no permit
//! while nobody waits for one.
//! Not here: roles, and who leads; that is what `Election` is for. An object exists from the first join
//! on, also without members, since versions go on rising.
//!
//! ```text
//! $ gesmas call Membership/workers join host-3 '{"text": "10.0.0.3:80"}' --hold
//! 17
//! $ gesmas call Membership/workers members '' 100
//! [{"name": "host-3", "metadata": {"text": "10.0.0.3:80"}, "token": 17, "session": 4, "since": "…"}]
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

use gesmas_sdk::prelude::*;

pub use change::{Change, Kind, NotAChange};

/// Members that `members` gives at once at most.
const PAGE: usize = 1_000;
/// Sessions that may be subscribed, since each change costs an event for each.
const SUBSCRIBERS: u64 = 1_000;

/// A group of members, each there as long as its session.
#[class]
pub struct Membership {
    members: Map<String, Kept>,
    version: Value<u64>,
    news: Semaphore,
    subscribers: Map<Session, Alarm>,
}

/// What is kept of a member.
#[derive(Value)]
struct Kept {
    metadata: Bytes,
    token: u64,
    session: Session,
    since: Time,
    watch: Alarm,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Member {
    /// Its name, which no other member has.
    pub name: String,
    /// What it says of itself.
    pub metadata: Bytes,
    /// What it changes and leaves with: a fencing token.
    pub token: u64,
    /// Its session.
    pub session: Session,
    /// Since when it is there.
    pub since: Time,
}

/// Why a group stays as it is.
#[error]
pub enum MembershipError {
    /// a member with this name is there
    NameTaken,
    /// no member has this name and this token (any more)
    NotAMember,
    /// so many sessions are subscribed that no more may be
    TooManySubscribers,
    /// members and subscribers are sessions, and this call has none
    NoSession,
}

#[methods]
impl Membership {
    /// A fresh group has no members.
    #[init]
    fn init(&mut self) {}

    /// The caller's session is a member from now on; returns its token.
    pub fn join(&mut self, name: String, metadata: Bytes) -> Result<u64, MembershipError> {
        let session = ctx::session().ok_or(MembershipError::NoSession)?;
        if self.members.contains_key(&name) {
            return Err(MembershipError::NameTaken);
        }
        let token = ctx::fencing_token();
        let watch = ctx::watch_session(session, Self::SESSION_OVER, (name.clone(), token));
        self.members.insert(&name, Kept { metadata, token, session, since: ctx::now(), watch });
        self.changed(token, Kind::Joined, name);
        Ok(token)
    }

    /// A member says something else of itself; returns the version of the change.
    pub fn update(
        &mut self,
        name: String,
        token: u64,
        metadata: Bytes,
    ) -> Result<u64, MembershipError> {
        let kept = self.kept(&name, token).ok_or(MembershipError::NotAMember)?;
        self.members.insert(&name, Kept { metadata, ..kept });
        let version = ctx::fencing_token();
        self.changed(version, Kind::Updated, name);
        Ok(version)
    }

    /// A member leaves. A token that is not its own (any more) changes nothing and is `NotAMember`.
    pub fn leave(&mut self, name: String, token: u64) -> Result<(), MembershipError> {
        let kept = self.kept(&name, token).ok_or(MembershipError::NotAMember)?;
        ctx::cancel(kept.watch);
        self.remove(name);
        Ok(())
    }

    /// The newest version, as soon as it is greater than `after`; 0 for any. What changed meanwhile,
    /// `members` tells.
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

    /// Each change is an event of the caller's session from now on: [`Change`] as a text. Returns the
    /// newest version, after which the first of them comes.
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
        let kept = self.members.get(&name);
        Ok(kept.map(|kept| member(name, kept)))
    }

    /// The members after this name, in the order of names, at most `limit` and at most 1,000.
    #[read]
    pub fn members(&self, after: String, limit: u32) -> Result<Vec<Member>> {
        let members = self.members.iter_after(&after).take(PAGE.min(limit as usize));
        Ok(members.map(|(name, kept)| member(name, kept)).collect())
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

    #[handler]
    fn session_over(&mut self, name: String, token: u64) {
        if self.kept(&name, token).is_some() {
            self.remove(name);
        }
    }

    #[handler]
    fn subscriber_over(&mut self, session: Session) {
        self.subscribers.remove(&session);
    }

    fn kept(&self, name: &String, token: u64) -> Option<Kept> {
        self.members.get(name).filter(|kept| kept.token == token)
    }

    fn remove(&mut self, name: String) {
        self.members.remove(&name);
        self.changed(ctx::fencing_token(), Kind::Left, name);
    }

    fn changed(&mut self, version: u64, kind: Kind, name: String) {
        self.version.set(version);
        self.news.v_n(self.news.waiters());
        let mut subscribers = self.subscribers.iter().peekable();
        if subscribers.peek().is_some() {
            let payload = Change { version, kind, name }.to_text();
            subscribers.for_each(|(session, _)| {
                ctx::notify(session, payload.as_bytes());
            });
        }
    }
}

fn member(name: String, Kept { metadata, token, session, since, .. }: Kept) -> Member {
    Member { name, metadata, token, session, since }
}
