//! Spans and points of time: nanoseconds in 64 bits.

use alloc::vec::Vec;
use core::{
    ops::{Add, Sub},
    time::Duration,
};

use super::{Malformed, Reader, Type, Value, Write};

/// A point of ordered time: nanoseconds since the Unix epoch, as the leader stamped it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// How long after `earlier` this is, nothing if it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A span as its nanoseconds, at most 584 years.
#[must_use]
pub const fn nanoseconds(duration: Duration) -> u64 {
    let nanoseconds = duration.as_nanos();
    if nanoseconds > u64::MAX as u128 { u64::MAX } else { nanoseconds as u64 }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(duration)))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanoseconds(duration)))
    }
}

impl Value for Time {
    const TYPE: Type = Type::Time;

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.0);
    }

    fn encoded_len(&self) -> usize {
        size_of::<u64>()
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.u64().map(Self)
    }
}

/// A span longer than 584 years is encoded as the longest that fits.
impl Value for Duration {
    const TYPE: Type = Type::Duration;

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(nanoseconds(*self));
    }

    fn encoded_len(&self) -> usize {
        size_of::<u64>()
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.u64().map(Self::from_nanos)
    }
}
