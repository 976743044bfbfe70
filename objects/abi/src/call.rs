//! Host calls: their numbers, and the bytes of their requests and responses.
//!
//! A guest makes a host call through one import, `gesmas1.call(op, in, in_len, out, out_cap)`, which
//! returns the length of the response. A response that does not fit into `out_cap` bytes is kept,
//! and `gesmas1.fetch(out, len)` copies it. The same encoding serves native classes.
//! Integers are fixed-width little-endian; a byte string that is not last is led by its length as
//! `u32`; the last one of a request takes the rest of the input.
//! Not here: what the calls do; that is the machine's.

mod request;
mod response;
#[cfg(test)]
mod tests;

pub use request::{PermitOwner, Request, ReturnKind, Wait};
pub use response::{Holder, Owner, PStatus, Response, Shape};

/// Number of a host call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Op {
    /// `key` → optional bytes.
    Get = 1,
    /// `key, value` → nothing.
    Set = 2,
    /// `key` → optional bytes.
    Remove = 3,
    /// `collection, after (tag u8, then bytes led by their length when 1), reverse u8, entries u32`
    /// → entries.
    Scan = 4,
    /// `deque, value` → nothing.
    PushBack = 5,
    /// `deque, value` → nothing.
    PushFront = 6,
    /// `deque` → optional bytes.
    PopBack = 7,
    /// `deque` → optional bytes.
    PopFront = 8,
    /// `index u64, deque` → optional bytes.
    DequeGet = 9,
    /// `collection` → u64.
    Length = 10,
    /// `map, key, value` → optional bytes.
    MapInsert = 11,
    /// `map, key` → optional bytes.
    MapGet = 12,
    /// `map, key` → optional bytes.
    MapRemove = 13,
    /// `wait u8 (0 forever, 1 never, 2 for, 3 until), time u64, owner u8 (0 nobody, 1 invocation,
    /// 2 session), semaphore` → `status u8, permit u64`.
    P = 20,
    /// `count u64, semaphore` → nothing.
    V = 21,
    /// `permit u64` → flag.
    Release = 22,
    /// `count u64, semaphore` → nothing.
    SetCount = 23,
    /// `semaphore` → u64.
    Count = 24,
    /// `semaphore` → u64.
    Waiters = 25,
    /// `semaphore` → `u32` owners, each `permit u64, kind u8 (1 invocation, 2 session), id u64`.
    Owners = 26,
    /// nothing → u64.
    Now = 30,
    /// nothing → u64.
    Random = 31,
    /// nothing → optional u64.
    Session = 32,
    /// nothing → text.
    Principal = 33,
    /// nothing → text.
    Object = 34,
    /// nothing → u64.
    Token = 35,
    /// `level u8, text` → nothing.
    Log = 36,
    /// `session u64, handler, arguments` → u64.
    WatchSession = 40,
    /// `duration u64, handler, arguments` → u64.
    After = 41,
    /// `alarm u64` → flag.
    CancelAlarm = 42,
    /// `session u64, payload` → flag.
    Notify = 43,
    /// `kind u8 (0 ok, 1 error of the class, 2 cancelled), payload` → nothing. The method's result;
    /// it must return right after.
    Return = 50,
    /// `payload`; does not return.
    Abort = 51,
    /// `method, arguments`; does not return.
    Continue = 52,
    /// `message`; does not return.
    Panic = 53,
    /// `message`; does not return.
    ArgumentsMalformed = 54,
}

impl Op {
    /// Every host call, in the order of their numbers.
    pub const ALL: [Self; 36] = [
        Self::Get,
        Self::Set,
        Self::Remove,
        Self::Scan,
        Self::PushBack,
        Self::PushFront,
        Self::PopBack,
        Self::PopFront,
        Self::DequeGet,
        Self::Length,
        Self::MapInsert,
        Self::MapGet,
        Self::MapRemove,
        Self::P,
        Self::V,
        Self::Release,
        Self::SetCount,
        Self::Count,
        Self::Waiters,
        Self::Owners,
        Self::Now,
        Self::Random,
        Self::Session,
        Self::Principal,
        Self::Object,
        Self::Token,
        Self::Log,
        Self::WatchSession,
        Self::After,
        Self::CancelAlarm,
        Self::Notify,
        Self::Return,
        Self::Abort,
        Self::Continue,
        Self::Panic,
        Self::ArgumentsMalformed,
    ];

    /// The host call of this number, if there is one.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|op| *op as u32 == number)
    }

    /// Whether the call ends the method, so that the host does not answer it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Abort | Self::Continue | Self::Panic | Self::ArgumentsMalformed)
    }
}
