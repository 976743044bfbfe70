//! Values: arguments, results, errors, and what lies in an object's store.
//!
//! Fixed-width little-endian, no padding, no tags for what the type already says.
//! Invariants: every value has exactly one encoding and no other decodes to it (maps and sets are
//! in the order of their keys); nothing is allocated for a length that the input cannot hold; types
//! do not contain themselves, so decoding does not recurse deeper than the type does.
//! Floats have no encoding: their arithmetic is not equal enough everywhere to be state.

mod bytes;
mod collection;
mod scalar;
#[cfg(test)]
mod tests;
mod time;

use alloc::vec::Vec;

pub use bytes::Bytes;
pub use time::{Time, nanoseconds};

pub use crate::interface::{Named, Type, Variant};
use crate::{Malformed, Reader, Write};

/// Bytes of a length or count.
const LENGTH: usize = size_of::<u32>();

/// A value that can cross the boundary of a class.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot cross the boundary of a class",
    label = "has no encoding",
    note = "use integers, bool, String, Bytes, Vec, Option, tuples, BTreeMap, BTreeSet, Duration, \
            Time, or a struct or enum with `#[derive(Value)]`",
    note = "floats and HashMap are left out because replicas must compute equal bytes: use scaled \
            integers and BTreeMap"
)]
pub trait Value: Sized {
    /// Its type, for the interface of the class.
    const TYPE: Type;

    /// Appends its bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// How many bytes `encode` appends. A buffer that is made for them holds a large value once, where one
    /// that grows as it is written holds it up to three times.
    fn encoded_len(&self) -> usize;

    /// Takes its bytes.
    ///
    /// # Errors
    /// [`Malformed`] when they are cut short or are not those of a value of this type.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Takes its bytes and makes nothing of them. They may be of no value: what holds them is refused.
    #[doc(hidden)]
    fn skip(reader: &mut Reader<'_>) -> Result<(), Malformed> {
        Self::decode(reader).map(drop)
    }

    /// Appends the bytes of items in a row. A hook for types whose items lie in memory as they are
    /// encoded.
    #[doc(hidden)]
    fn encode_items(items: &[Self], out: &mut Vec<u8>) {
        items.iter().for_each(|item| item.encode(out));
    }

    /// How many bytes `encode_items` appends.
    #[doc(hidden)]
    fn items_len(items: &[Self]) -> usize {
        items.iter().map(Self::encoded_len).sum()
    }

    /// Takes the bytes of items in a row.
    #[doc(hidden)]
    fn decode_items(count: usize, reader: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(Self::decode(reader)?);
        }
        Ok(items)
    }
}

/// Takes the bytes of items in a row, all of them, and keeps the first `most`: a longer list needs no more
/// memory than one of `most` items.
///
/// # Errors
/// [`Malformed`] when they are cut short, or the first are not those of items.
#[doc(hidden)]
pub fn first_items<T: Value>(
    most: usize,
    count: usize,
    reader: &mut Reader<'_>,
) -> Result<Vec<T>, Malformed> {
    let kept = count.min(most);
    let mut items = Vec::with_capacity(kept);
    for _ in 0..kept {
        items.push(T::decode(reader)?);
    }
    for _ in kept..count {
        T::skip(reader)?;
    }
    Ok(items)
}

/// The bytes of a value.
#[must_use]
pub fn to_bytes<T: Value>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.encoded_len());
    value.encode(&mut out);
    out
}

/// The value of these bytes, all of them.
///
/// # Errors
/// [`Malformed`] when they are not exactly those of a value of this type.
pub fn from_bytes<T: Value>(bytes: &[u8]) -> Result<T, Malformed> {
    let mut reader = Reader::new(bytes);
    let value = T::decode(&mut reader)?;
    reader.end()?;
    Ok(value)
}
