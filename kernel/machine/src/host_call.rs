//! What the body of a method may ask of the machine, and what it is answered.
//!
//! A body is a generator of host calls: it runs until it makes one, and goes on with the answer.
//! So the machine owns its state alone; no engine holds a reference into it.
//! Invariant: calls and answers are plain values with one encoding (`encoding.rs`), since journals
//! store answers and checksums of calls.
//! Not here: how a guest's bytes become these values; that is the engines' ABI (`objects/abi`).

use serde::{Deserialize, Serialize};

use crate::names::{AlarmId, InvocationId, MethodName, PermitId, SessionId, Time};

/// One request of a body to the machine.
///
/// Collections are named by their field. The header of a collection lies at the field's name in
/// the object's store, an entry at the name, a zero byte and the entry's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostCall {
    /// Reads a key. Answer: [`Answer::Optional`].
    Get {
        /// Key in the object's store.
        #[serde(with = "serde_bytes")]
        key: Vec<u8>,
    },
    /// Writes a key. Answer: [`Answer::Unit`].
    Set {
        /// Key in the object's store.
        #[serde(with = "serde_bytes")]
        key: Vec<u8>,
        /// New value.
        #[serde(with = "serde_bytes")]
        value: Vec<u8>,
    },
    /// Removes a key. Answer: the old value, [`Answer::Optional`].
    Remove {
        /// Key in the object's store.
        #[serde(with = "serde_bytes")]
        key: Vec<u8>,
    },
    /// Lists entries of a collection in the order of their keys. Answer: [`Answer::Entries`], the
    /// keys without the collection's prefix.
    Scan {
        /// The collection.
        #[serde(with = "serde_bytes")]
        collection: Vec<u8>,
        /// Lists only keys after this one (before it when `reverse`).
        #[serde(with = "serde_bytes")]
        after: Option<Vec<u8>>,
        /// From the greatest key down.
        reverse: bool,
        /// Greatest number of entries; the limit of the machine caps it.
        entries: u32,
    },
    /// Appends to a deque. Answer: [`Answer::Unit`].
    PushBack {
        /// The deque.
        #[serde(with = "serde_bytes")]
        deque: Vec<u8>,
        /// The item.
        #[serde(with = "serde_bytes")]
        value: Vec<u8>,
    },
    /// Prepends to a deque. Answer: [`Answer::Unit`].
    PushFront {
        /// The deque.
        #[serde(with = "serde_bytes")]
        deque: Vec<u8>,
        /// The item.
        #[serde(with = "serde_bytes")]
        value: Vec<u8>,
    },
    /// Takes the last item of a deque. Answer: [`Answer::Optional`].
    PopBack {
        /// The deque.
        #[serde(with = "serde_bytes")]
        deque: Vec<u8>,
    },
    /// Takes the first item of a deque. Answer: [`Answer::Optional`].
    PopFront {
        /// The deque.
        #[serde(with = "serde_bytes")]
        deque: Vec<u8>,
    },
    /// Reads an item of a deque by its place. Answer: [`Answer::Optional`].
    DequeGet {
        /// The deque.
        #[serde(with = "serde_bytes")]
        deque: Vec<u8>,
        /// Place, from 0 at the front.
        index: u64,
    },
    /// Length of a deque or map. Answer: [`Answer::Number`].
    Length {
        /// The collection.
        #[serde(with = "serde_bytes")]
        collection: Vec<u8>,
    },
    /// Writes an entry of a map and counts it. Answer: the old value, [`Answer::Optional`].
    MapInsert {
        /// The map.
        #[serde(with = "serde_bytes")]
        map: Vec<u8>,
        /// The entry's key.
        #[serde(with = "serde_bytes")]
        key: Vec<u8>,
        /// The entry's value.
        #[serde(with = "serde_bytes")]
        value: Vec<u8>,
    },
    /// Reads an entry of a map. Answer: [`Answer::Optional`].
    MapGet {
        /// The map.
        #[serde(with = "serde_bytes")]
        map: Vec<u8>,
        /// The entry's key.
        #[serde(with = "serde_bytes")]
        key: Vec<u8>,
    },
    /// Removes an entry of a map and counts it. Answer: the old value, [`Answer::Optional`].
    MapRemove {
        /// The map.
        #[serde(with = "serde_bytes")]
        map: Vec<u8>,
        /// The entry's key.
        #[serde(with = "serde_bytes")]
        key: Vec<u8>,
    },
    /// Asks for a permit of a semaphore. Answer: [`Answer::P`]. The one call that may suspend.
    P {
        /// The semaphore.
        #[serde(with = "serde_bytes")]
        semaphore: Vec<u8>,
        /// How long to wait for it.
        wait: Wait,
        /// Who is to own the permit.
        owner: PermitOwner,
    },
    /// Gives `count` permits. Answer: [`Answer::Unit`].
    V {
        /// The semaphore.
        #[serde(with = "serde_bytes")]
        semaphore: Vec<u8>,
        /// How many.
        count: u64,
    },
    /// Gives back an owned permit. Answer: [`Answer::Flag`], false when nobody owned it (any more).
    Release {
        /// The permit.
        permit: PermitId,
    },
    /// Sets the count of a semaphore; in `init` only. Answer: [`Answer::Unit`].
    SetCount {
        /// The semaphore.
        #[serde(with = "serde_bytes")]
        semaphore: Vec<u8>,
        /// Its count.
        count: u64,
    },
    /// The count of a semaphore. Answer: [`Answer::Number`].
    Count {
        /// The semaphore.
        #[serde(with = "serde_bytes")]
        semaphore: Vec<u8>,
    },
    /// How many wait for a semaphore. Answer: [`Answer::Number`].
    Waiters {
        /// The semaphore.
        #[serde(with = "serde_bytes")]
        semaphore: Vec<u8>,
    },
    /// Who owns permits of a semaphore, oldest first. Answer: [`Answer::Owners`].
    Owners {
        /// The semaphore.
        #[serde(with = "serde_bytes")]
        semaphore: Vec<u8>,
    },
    /// Ordered time. Answer: [`Answer::Number`], nanoseconds since the Unix epoch.
    Now,
    /// A number drawn from the cluster's seed, the step, the invocation and the call. Answer:
    /// [`Answer::Number`].
    Random,
    /// The caller's session. Answer: [`Answer::OptionalNumber`], none in a handler.
    Session,
    /// Who calls. Answer: [`Answer::Text`].
    Principal,
    /// The object's name within its class. Answer: [`Answer::Text`].
    Object,
    /// Draws a fencing token. Answer: [`Answer::Number`], greater than every one drawn before.
    Token,
    /// Writes a line to the operators' log. Answer: [`Answer::Unit`].
    Log {
        /// 1 error, 2 warning, 3 information, 4 debugging; others count as 4.
        level: u8,
        /// The line.
        text: String,
    },
    /// Invokes a handler once when a session is over. Answer: [`Answer::Number`], an [`AlarmId`].
    WatchSession {
        /// The session to watch.
        session: SessionId,
        /// The handler.
        handler: MethodName,
        /// Its encoded arguments.
        #[serde(with = "serde_bytes")]
        arguments: Vec<u8>,
    },
    /// Invokes a handler once after a while. Answer: [`Answer::Number`], an [`AlarmId`].
    After {
        /// The while, nanoseconds.
        duration: u64,
        /// The handler.
        handler: MethodName,
        /// Its encoded arguments.
        #[serde(with = "serde_bytes")]
        arguments: Vec<u8>,
    },
    /// Cancels a timer or watch of this object. Answer: [`Answer::Flag`], false when there is none.
    CancelAlarm {
        /// Timer or watch.
        alarm: AlarmId,
    },
    /// Sends an event to a session. Answer: [`Answer::Flag`], false when the session is over.
    Notify {
        /// The receiver.
        session: SessionId,
        /// What it receives.
        #[serde(with = "serde_bytes")]
        payload: Vec<u8>,
    },
}

/// How long a `P` waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// As long as it takes.
    Forever,
    /// Not at all.
    Never,
    /// At most this long, nanoseconds.
    For(u64),
    /// At most until this time.
    Until(Time),
}

/// Who owns the permit that a `P` gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PermitOwner {
    /// Nobody: only a `V` gives it back.
    Nobody,
    /// The invocation: given back when it ends.
    Invocation,
    /// The caller's session: given back when it is over.
    Session,
}

/// The machine's answer to a [`HostCall`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Done.
    Unit,
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(u64),
    /// A number or none.
    OptionalNumber(Option<u64>),
    /// Bytes or none.
    Optional(#[serde(with = "serde_bytes")] Option<Vec<u8>>),
    /// A text.
    Text(String),
    /// Keys and values.
    Entries(Vec<(Vec<u8>, Vec<u8>)>),
    /// What became of a `P`.
    P(PAnswer),
    /// Owned permits, oldest first.
    Owners(Vec<Owner>),
}

/// What became of a `P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PAnswer {
    /// A permit nobody owns.
    Granted,
    /// A permit with an owner.
    Owned(PermitId),
    /// `Never` would have had to wait.
    WouldBlock,
    /// The time was up.
    TimedOut,
    /// The invocation is cancelled.
    Cancelled,
    /// The caller's session is over, so it can own nothing.
    SessionOver,
    /// There is no session: this is a handler.
    NoSession,
}

/// An owned permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The permit.
    pub permit: PermitId,
    /// Who owns it.
    pub holder: Holder,
}

/// The owner of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    /// An invocation.
    Invocation(InvocationId),
    /// A session.
    Session(SessionId),
}
