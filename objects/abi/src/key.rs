//! Keys of maps and sets: an encoding whose bytes sort as the keys do.
//!
//! Unsigned numbers are big-endian; signed ones too, with their sign bit flipped; texts and byte
//! strings have each zero byte written as `00 FF` and end with `00 00`, so that a prefix sorts
//! first and a key may follow; tuples are their parts in a row; an option is a byte 0, or a byte 1
//! and the key.
//! Invariant: `a < b` exactly when `bytes(a) < bytes(b)`, and every key has exactly one encoding.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use crate::{
    Malformed, Reader,
    value::{Bytes, Time, Value, nanoseconds},
};

/// A value that can be the key of a map or set.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "has no order-preserving encoding",
    note = "use integers, bool, String, Bytes, [u8; N], Duration, Time, Option of those, or tuples"
)]
pub trait Key: Value + Ord {
    /// Appends the key's bytes.
    fn encode_key(&self, out: &mut Vec<u8>);

    /// Takes a key's bytes.
    ///
    /// # Errors
    /// [`Malformed`] when they are cut short or are not those of a key of this type.
    fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// The bytes of a key.
#[must_use]
pub fn to_key<K: Key>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_key(&mut out);
    out
}

/// The key of these bytes, all of them.
///
/// # Errors
/// [`Malformed`] when they are not exactly those of a key of this type.
pub fn from_key<K: Key>(bytes: &[u8]) -> Result<K, Malformed> {
    let mut reader = Reader::new(bytes);
    let key = K::decode_key(&mut reader)?;
    reader.end()?;
    Ok(key)
}

macro_rules! unsigned {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn encode_key(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                reader.array().map(Self::from_be_bytes)
            }
        }
    )*};
}

macro_rules! signed {
    ($($name:ident $raw:ident),*) => {$(
        impl Key for $name {
            fn encode_key(&self, out: &mut Vec<u8>) {
                (self.cast_unsigned() ^ (1 << ($raw::BITS - 1))).encode_key(out);
            }

            fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                $raw::decode_key(reader).map(|raw| (raw ^ (1 << ($raw::BITS - 1))).cast_signed())
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64, u128);
signed!(i8 u8, i16 u16, i32 u32, i64 u64, i128 u128);

impl Key for bool {
    fn encode_key(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.flag()
    }
}

impl Key for () {
    fn encode_key(&self, _: &mut Vec<u8>) {}

    fn decode_key(_: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn unescape(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::new();
    loop {
        match reader.u8()? {
            0 => match reader.u8()? {
                0 => return Ok(bytes),
                0xff => bytes.push(0),
                _ => return Err(Malformed("a zero byte in a key is not escaped")),
            },
            byte => bytes.push(byte),
        }
    }
}

impl Key for String {
    fn encode_key(&self, out: &mut Vec<u8>) {
        escape(self.as_bytes(), out);
    }

    fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::from_utf8(unescape(reader)?).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

impl Key for Bytes {
    fn encode_key(&self, out: &mut Vec<u8>) {
        escape(self, out);
    }

    fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        unescape(reader).map(Self)
    }
}

impl<const N: usize> Key for [u8; N] {
    fn encode_key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.array()
    }
}

impl Key for Time {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.0.encode_key(out);
    }

    fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        u64::decode_key(reader).map(Self)
    }
}

impl Key for Duration {
    fn encode_key(&self, out: &mut Vec<u8>) {
        nanoseconds(*self).encode_key(out);
    }

    fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        u64::decode_key(reader).map(Self::from_nanos)
    }
}

impl<K: Key> Key for Option<K> {
    fn encode_key(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        self.iter().for_each(|key| key.encode_key(out));
    }

    fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if reader.flag()? { K::decode_key(reader).map(Some) } else { Ok(None) }
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Key),*> Key for ($($name,)*) {
            fn encode_key(&self, out: &mut Vec<u8>) {
                $(self.$index.encode_key(out);)*
            }

            fn decode_key(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(($($name::decode_key(reader)?,)*))
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);

#[cfg(test)]
mod tests;
