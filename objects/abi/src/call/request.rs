//! What a guest asks, taken apart.
//!
//! Invariant: `decode` accepts exactly what `encode` writes, with no byte left over.

use super::Op;
use crate::{Malformed, Reader, Write};

/// How long a `P` waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As long as it takes.
    Forever,
    /// Not at all.
    Never,
    /// At most that many nanoseconds.
    For(u64),
    /// At most until that time, nanoseconds since the Unix epoch.
    Until(u64),
}

/// Who owns the permit that a `P` gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitOwner {
    /// Nobody: only a `V` gives it back.
    Nobody,
    /// The invocation: given back when it ends.
    Invocation,
    /// The caller's session: given back when it is over.
    Session,
}

/// How a method returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnKind {
    /// With a result.
    Ok,
    /// With an error of its class.
    Error,
    /// With its cancellation.
    Cancelled,
}

/// A host call with its arguments, borrowed from the bytes it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table of `Op` documents each call and its parts")]
pub enum Request<'a> {
    Get { key: &'a [u8] },
    Set { key: &'a [u8], value: &'a [u8] },
    Remove { key: &'a [u8] },
    Scan { collection: &'a [u8], after: Option<&'a [u8]>, reverse: bool, entries: u32 },
    PushBack { deque: &'a [u8], value: &'a [u8] },
    PushFront { deque: &'a [u8], value: &'a [u8] },
    PopBack { deque: &'a [u8] },
    PopFront { deque: &'a [u8] },
    DequeGet { index: u64, deque: &'a [u8] },
    Length { collection: &'a [u8] },
    MapInsert { map: &'a [u8], key: &'a [u8], value: &'a [u8] },
    MapGet { map: &'a [u8], key: &'a [u8] },
    MapRemove { map: &'a [u8], key: &'a [u8] },
    P { wait: Wait, owner: PermitOwner, semaphore: &'a [u8] },
    V { count: u64, semaphore: &'a [u8] },
    Release { permit: u64 },
    SetCount { count: u64, semaphore: &'a [u8] },
    Count { semaphore: &'a [u8] },
    Waiters { semaphore: &'a [u8] },
    Owners { semaphore: &'a [u8] },
    Now,
    Random,
    Session,
    Principal,
    Object,
    Token,
    Log { level: u8, text: &'a str },
    WatchSession { session: u64, handler: &'a str, arguments: &'a [u8] },
    After { duration: u64, handler: &'a str, arguments: &'a [u8] },
    CancelAlarm { alarm: u64 },
    Notify { session: u64, payload: &'a [u8] },
    Return { kind: ReturnKind, payload: &'a [u8] },
    Abort { payload: &'a [u8] },
    Continue { method: &'a str, arguments: &'a [u8] },
    Panic { message: &'a str },
    ArgumentsMalformed { message: &'a str },
}

impl<'a> Request<'a> {
    /// The number of this call.
    #[inline]
    #[must_use]
    pub const fn op(&self) -> Op {
        match self {
            Self::Get { .. } => Op::Get,
            Self::Set { .. } => Op::Set,
            Self::Remove { .. } => Op::Remove,
            Self::Scan { .. } => Op::Scan,
            Self::PushBack { .. } => Op::PushBack,
            Self::PushFront { .. } => Op::PushFront,
            Self::PopBack { .. } => Op::PopBack,
            Self::PopFront { .. } => Op::PopFront,
            Self::DequeGet { .. } => Op::DequeGet,
            Self::Length { .. } => Op::Length,
            Self::MapInsert { .. } => Op::MapInsert,
            Self::MapGet { .. } => Op::MapGet,
            Self::MapRemove { .. } => Op::MapRemove,
            Self::P { .. } => Op::P,
            Self::V { .. } => Op::V,
            Self::Release { .. } => Op::Release,
            Self::SetCount { .. } => Op::SetCount,
            Self::Count { .. } => Op::Count,
            Self::Waiters { .. } => Op::Waiters,
            Self::Owners { .. } => Op::Owners,
            Self::Now => Op::Now,
            Self::Random => Op::Random,
            Self::Session => Op::Session,
            Self::Principal => Op::Principal,
            Self::Object => Op::Object,
            Self::Token => Op::Token,
            Self::Log { .. } => Op::Log,
            Self::WatchSession { .. } => Op::WatchSession,
            Self::After { .. } => Op::After,
            Self::CancelAlarm { .. } => Op::CancelAlarm,
            Self::Notify { .. } => Op::Notify,
            Self::Return { .. } => Op::Return,
            Self::Abort { .. } => Op::Abort,
            Self::Continue { .. } => Op::Continue,
            Self::Panic { .. } => Op::Panic,
            Self::ArgumentsMalformed { .. } => Op::ArgumentsMalformed,
        }
    }

    /// The bytes of the request, where they are those of its one part: then there is nothing to write.
    #[inline(always)]
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Get { key: bytes }
            | Self::Remove { key: bytes }
            | Self::PopBack { deque: bytes }
            | Self::PopFront { deque: bytes }
            | Self::Length { collection: bytes }
            | Self::Count { semaphore: bytes }
            | Self::Waiters { semaphore: bytes }
            | Self::Owners { semaphore: bytes }
            | Self::Abort { payload: bytes } => Some(bytes),
            Self::Panic { message } | Self::ArgumentsMalformed { message } => {
                Some(message.as_bytes())
            }
            Self::Now
            | Self::Random
            | Self::Session
            | Self::Principal
            | Self::Object
            | Self::Token => Some(&[]),
            _ => None,
        }
    }

    /// Appends the bytes of the request. Inlined, so that a guest carries only the arms it uses.
    #[inline(always)]
    pub fn encode(&self, out: &mut impl Write) {
        match *self {
            Self::Scan { collection, after, reverse, entries } => {
                out.put_led(collection);
                out.put_u8(u8::from(after.is_some()));
                after.into_iter().for_each(|key| out.put_led(key));
                out.put_u8(u8::from(reverse));
                out.put_u32(entries);
            }
            Self::MapInsert { map, key, value } => {
                out.put_led(map);
                out.put_led(key);
                out.put(value);
            }
            Self::P { wait, owner, semaphore } => {
                wait.encode(out);
                out.put_u8(owner as u8);
                out.put(semaphore);
            }
            Self::Log { level, text } => {
                out.put_u8(level);
                out.put(text.as_bytes());
            }
            Self::WatchSession { session: number, handler, arguments }
            | Self::After { duration: number, handler, arguments } => {
                out.put_u64(number);
                out.put_led(handler.as_bytes());
                out.put(arguments);
            }
            Self::Return { kind, payload } => {
                out.put_u8(kind as u8);
                out.put(payload);
            }
            _ => match self.as_bytes() {
                Some(bytes) => out.put(bytes),
                None => self.encode_simple(out),
            },
        }
    }

    /// The requests that share a form: two byte strings, a number, a number and a byte string.
    #[inline(always)]
    fn encode_simple(&self, out: &mut impl Write) {
        match *self {
            Self::Set { key: first, value: second }
            | Self::PushBack { deque: first, value: second }
            | Self::PushFront { deque: first, value: second }
            | Self::MapGet { map: first, key: second }
            | Self::MapRemove { map: first, key: second } => {
                out.put_led(first);
                out.put(second);
            }
            Self::Continue { method, arguments } => {
                out.put_led(method.as_bytes());
                out.put(arguments);
            }
            Self::Release { permit: number } | Self::CancelAlarm { alarm: number } => {
                out.put_u64(number);
            }
            Self::DequeGet { index: number, deque: bytes }
            | Self::V { count: number, semaphore: bytes }
            | Self::SetCount { count: number, semaphore: bytes }
            | Self::Notify { session: number, payload: bytes } => {
                out.put_u64(number);
                out.put(bytes);
            }
            _ => {}
        }
    }

    /// Takes the bytes of a request apart.
    ///
    /// # Errors
    /// [`Malformed`] when there is no such call, or its bytes are cut short, too long or not of its
    /// form.
    pub fn decode(op: u32, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let op = Op::from_number(op).ok_or(Malformed("there is no host call of this number"))?;
        let mut reader = Reader::new(bytes);
        let request = match op as u32 {
            0..20 => Self::decode_state(op, &mut reader),
            20..30 => Self::decode_semaphore(op, &mut reader),
            _ => Self::decode_context(op, &mut reader),
        }?;
        reader.end()?;
        Ok(request)
    }

    fn decode_state(op: Op, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match op {
            Op::Get => Self::Get { key: reader.rest() },
            Op::Set => Self::Set { key: reader.led()?, value: reader.rest() },
            Op::Remove => Self::Remove { key: reader.rest() },
            Op::Scan => Self::Scan {
                collection: reader.led()?,
                after: if reader.flag()? { Some(reader.led()?) } else { None },
                reverse: reader.flag()?,
                entries: reader.u32()?,
            },
            Op::PushBack => Self::PushBack { deque: reader.led()?, value: reader.rest() },
            Op::PushFront => Self::PushFront { deque: reader.led()?, value: reader.rest() },
            Op::PopBack => Self::PopBack { deque: reader.rest() },
            Op::PopFront => Self::PopFront { deque: reader.rest() },
            Op::DequeGet => Self::DequeGet { index: reader.u64()?, deque: reader.rest() },
            Op::Length => Self::Length { collection: reader.rest() },
            Op::MapInsert => {
                Self::MapInsert { map: reader.led()?, key: reader.led()?, value: reader.rest() }
            }
            Op::MapGet => Self::MapGet { map: reader.led()?, key: reader.rest() },
            Op::MapRemove => Self::MapRemove { map: reader.led()?, key: reader.rest() },
            _ => unreachable!("calls below 20 are about the store"),
        })
    }

    fn decode_semaphore(op: Op, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match op {
            Op::P => Self::P {
                wait: Wait::decode(reader)?,
                owner: PermitOwner::decode(reader)?,
                semaphore: reader.rest(),
            },
            Op::V => Self::V { count: reader.u64()?, semaphore: reader.rest() },
            Op::Release => Self::Release { permit: reader.u64()? },
            Op::SetCount => Self::SetCount { count: reader.u64()?, semaphore: reader.rest() },
            Op::Count => Self::Count { semaphore: reader.rest() },
            Op::Waiters => Self::Waiters { semaphore: reader.rest() },
            Op::Owners => Self::Owners { semaphore: reader.rest() },
            _ => unreachable!("calls from 20 to 29 are about semaphores"),
        })
    }

    fn decode_context(op: Op, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match op {
            Op::Now => Self::Now,
            Op::Random => Self::Random,
            Op::Session => Self::Session,
            Op::Principal => Self::Principal,
            Op::Object => Self::Object,
            Op::Token => Self::Token,
            Op::Log => Self::Log { level: reader.u8()?, text: reader.rest_text()? },
            Op::WatchSession => Self::WatchSession {
                session: reader.u64()?,
                handler: reader.text()?,
                arguments: reader.rest(),
            },
            Op::After => Self::After {
                duration: reader.u64()?,
                handler: reader.text()?,
                arguments: reader.rest(),
            },
            Op::CancelAlarm => Self::CancelAlarm { alarm: reader.u64()? },
            Op::Notify => Self::Notify { session: reader.u64()?, payload: reader.rest() },
            Op::Return => {
                Self::Return { kind: ReturnKind::decode(reader)?, payload: reader.rest() }
            }
            Op::Abort => Self::Abort { payload: reader.rest() },
            Op::Continue => Self::Continue { method: reader.text()?, arguments: reader.rest() },
            Op::Panic => Self::Panic { message: reader.rest_text()? },
            Op::ArgumentsMalformed => Self::ArgumentsMalformed { message: reader.rest_text()? },
            _ => unreachable!("calls from 30 on are about the context and the end"),
        })
    }
}

impl Wait {
    fn encode(self, out: &mut impl Write) {
        let (tag, time) = match self {
            Self::Forever => (0, 0),
            Self::Never => (1, 0),
            Self::For(duration) => (2, duration),
            Self::Until(time) => (3, time),
        };
        out.put_u8(tag);
        out.put_u64(time);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match (reader.u8()?, reader.u64()?) {
            (0, 0) => Ok(Self::Forever),
            (1, 0) => Ok(Self::Never),
            (2, duration) => Ok(Self::For(duration)),
            (3, time) => Ok(Self::Until(time)),
            (0 | 1, _) => Err(Malformed("a wait without a time has one")),
            _ => Err(Malformed("there is no such wait")),
        }
    }
}

impl PermitOwner {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match reader.u8()? {
            0 => Ok(Self::Nobody),
            1 => Ok(Self::Invocation),
            2 => Ok(Self::Session),
            _ => Err(Malformed("there is no such owner of a permit")),
        }
    }
}

impl ReturnKind {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match reader.u8()? {
            0 => Ok(Self::Ok),
            1 => Ok(Self::Error),
            2 => Ok(Self::Cancelled),
            _ => Err(Malformed("there is no such way to return")),
        }
    }
}
