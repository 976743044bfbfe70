//! What a guest is answered.
//!
//! Invariant: the call's number alone says which form its response has ([`Op::shape`]), so that a
//! response carries no tag of its own.

use alloc::{string::String, vec::Vec};

use super::Op;
use crate::{Malformed, Reader, Write};

/// The forms of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// No bytes.
    Unit,
    /// One byte, 0 or 1.
    Flag,
    /// `u64`.
    Number,
    /// A byte 0, or a byte 1 and `u64`.
    OptionalNumber,
    /// A byte 0, or a byte 1 and bytes to the end.
    Optional,
    /// UTF-8 to the end.
    Text,
    /// `u32` entries, each a key and a value, both led by their length.
    Entries,
    /// A status byte and a permit `u64`.
    P,
    /// `u32` owners, each `permit u64, kind u8, id u64`.
    Owners,
}

/// What became of a `P`; the number is the status byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PStatus {
    /// Granted, and nobody owns the permit.
    Granted = 0,
    /// Granted, and the permit has an owner.
    Owned = 1,
    /// It would have had to wait and was told not to.
    WouldBlock = 2,
    /// The time was up.
    TimedOut = 3,
    /// The invocation is cancelled.
    Cancelled = 4,
    /// The caller's session is over, so it can own nothing.
    SessionOver = 5,
    /// There is no session: this is a handler.
    NoSession = 6,
}

/// Who owns a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// An invocation, by its number (kind 1).
    Invocation(u64),
    /// A session, by its number (kind 2).
    Session(u64),
}

/// An owned permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The permit.
    pub permit: u64,
    /// Who owns it.
    pub holder: Holder,
}

/// The response to a host call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// Done.
    Unit,
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(u64),
    /// A number or none.
    OptionalNumber(Option<u64>),
    /// Bytes or none.
    Optional(Option<Vec<u8>>),
    /// A text.
    Text(String),
    /// Keys and values.
    Entries(Vec<(Vec<u8>, Vec<u8>)>),
    /// What became of a `P`.
    P {
        /// The status.
        status: PStatus,
        /// The permit when it is owned, else 0.
        permit: u64,
    },
    /// Owned permits, oldest first.
    Owners(Vec<Owner>),
}

impl Op {
    /// The form of this call's response.
    #[must_use]
    pub const fn shape(self) -> Shape {
        match self {
            Self::Get
            | Self::Remove
            | Self::PopBack
            | Self::PopFront
            | Self::DequeGet
            | Self::MapInsert
            | Self::MapGet
            | Self::MapRemove => Shape::Optional,
            Self::Scan => Shape::Entries,
            Self::Length
            | Self::Count
            | Self::Waiters
            | Self::Now
            | Self::Random
            | Self::Token
            | Self::WatchSession
            | Self::After => Shape::Number,
            Self::P => Shape::P,
            Self::Release | Self::CancelAlarm | Self::Notify => Shape::Flag,
            Self::Owners => Shape::Owners,
            Self::Session => Shape::OptionalNumber,
            Self::Principal | Self::Object => Shape::Text,
            Self::Set
            | Self::PushBack
            | Self::PushFront
            | Self::V
            | Self::SetCount
            | Self::Log
            | Self::Return
            | Self::Abort
            | Self::Continue
            | Self::Panic
            | Self::ArgumentsMalformed => Shape::Unit,
        }
    }
}

impl Response {
    /// Appends the bytes of a response of the form [`Shape::Optional`].
    pub fn encode_optional(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
        out.put_u8(u8::from(bytes.is_some()));
        bytes.iter().for_each(|bytes| out.put(bytes));
    }

    /// Appends the bytes of the response.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unit => {}
            Self::Flag(flag) => out.put_u8(u8::from(*flag)),
            Self::Number(number) => out.put_u64(*number),
            Self::OptionalNumber(number) => {
                out.put_u8(u8::from(number.is_some()));
                number.iter().for_each(|number| out.put_u64(*number));
            }
            Self::Optional(bytes) => Self::encode_optional(bytes.as_deref(), out),
            Self::Text(text) => out.put(text.as_bytes()),
            Self::Entries(entries) => {
                out.put_count(entries.len());
                for (key, value) in entries {
                    out.put_led(key);
                    out.put_led(value);
                }
            }
            Self::P { status, permit } => {
                out.put_u8(*status as u8);
                out.put_u64(*permit);
            }
            Self::Owners(owners) => {
                out.put_count(owners.len());
                owners.iter().for_each(|owner| owner.encode(out));
            }
        }
    }

    /// Takes the response to a call apart.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are not of the form of this call's response.
    pub fn decode(op: Op, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let response = match op.shape() {
            Shape::Unit => Self::Unit,
            Shape::Flag => Self::Flag(reader.flag()?),
            Shape::Number => Self::Number(reader.u64()?),
            Shape::OptionalNumber => {
                Self::OptionalNumber(if reader.flag()? { Some(reader.u64()?) } else { None })
            }
            Shape::Optional => {
                Self::Optional(if reader.flag()? { Some(reader.rest().into()) } else { None })
            }
            Shape::Text => Self::Text(reader.rest_text()?.into()),
            Shape::Entries => {
                let count = reader.count(8)?;
                let mut entries = Vec::with_capacity(count);
                for _ in 0..count {
                    entries.push((reader.led()?.into(), reader.led()?.into()));
                }
                Self::Entries(entries)
            }
            Shape::P => Self::P { status: PStatus::decode(&mut reader)?, permit: reader.u64()? },
            Shape::Owners => {
                let count = reader.count(17)?;
                let owners = (0..count).map(|_| Owner::decode(&mut reader));
                Self::Owners(owners.collect::<Result<_, _>>()?)
            }
        };
        reader.end()?;
        Ok(response)
    }
}

impl PStatus {
    /// Takes a status byte.
    ///
    /// # Errors
    /// [`Malformed`] when there is no such status.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match reader.u8()? {
            0 => Self::Granted,
            1 => Self::Owned,
            2 => Self::WouldBlock,
            3 => Self::TimedOut,
            4 => Self::Cancelled,
            5 => Self::SessionOver,
            6 => Self::NoSession,
            _ => return Err(Malformed("there is no such status of a P")),
        })
    }
}

impl Owner {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.permit);
        let (kind, id) = match self.holder {
            Holder::Invocation(id) => (1, id),
            Holder::Session(id) => (2, id),
        };
        out.put_u8(kind);
        out.put_u64(id);
    }

    /// Takes one owner.
    ///
    /// # Errors
    /// [`Malformed`] when it is cut short or of no known kind.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let permit = reader.u64()?;
        let holder = match (reader.u8()?, reader.u64()?) {
            (1, id) => Holder::Invocation(id),
            (2, id) => Holder::Session(id),
            _ => return Err(Malformed("there is no such kind of owner")),
        };
        Ok(Self { permit, holder })
    }
}
