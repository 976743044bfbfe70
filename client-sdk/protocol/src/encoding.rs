//! Bodies of frames as bytes: the one module of this crate that knows bincode.
//!
//! Invariants: a body is decoded whole or not at all (trailing bytes are an error); decoding a body
//! of n bytes allocates O(n), also when the lengths in it lie.
//! Deliberately absent: any hash of an encoding; what is hashed is hashed from bytes as received.

use std::{fmt, marker::PhantomData};

use bincode::{
    config::{self, Config},
    enc::write::Writer,
    error::{DecodeError, EncodeError},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _, SeqAccess, Visitor},
};

use crate::{BODY_MAX, frame::FrameError};

/// Bincode counts a number of 16 bytes against its limit when one byte stood for it.
const CLAIM_PER_BYTE: usize = 16;
/// Bodies up to this many bytes are decoded under a limit made for them: most are this small, and a
/// lie in one of them must not buy megabytes.
const SMALL: usize = 4 << 10;
/// The same for bodies of middle size.
const MIDDLE: usize = 256 << 10;

struct Appender<'a>(&'a mut Vec<u8>);

impl Writer for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Appends a value.
pub(crate) fn append<T: Serialize>(value: &T, output: &mut Vec<u8>) {
    bincode::serde::encode_into_writer(value, Appender(output), config::standard())
        .expect("messages are plain values, and appending to a vector does not fail");
}

/// Reads a value that takes all of the bytes.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    const LARGE: usize = BODY_MAX as usize;
    let length = bytes.len();
    if length <= SMALL {
        decode(bytes, config::standard().with_limit::<{ SMALL * CLAIM_PER_BYTE }>())
    } else if length <= MIDDLE {
        decode(bytes, config::standard().with_limit::<{ MIDDLE * CLAIM_PER_BYTE }>())
    } else if length <= LARGE {
        decode(bytes, config::standard().with_limit::<{ LARGE * CLAIM_PER_BYTE }>())
    } else {
        Err(FrameError::TooLarge { length: length as u64, limit: BODY_MAX.into() })
    }
}

/// Decodes a list of at most `MOST` elements, and refuses a longer one before it takes its elements.
pub(crate) fn bounded<'de, const MOST: usize, T, D>(decoder: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Bounded<const MOST: usize, T>(PhantomData<T>);

    impl<'de, const MOST: usize, T: Deserialize<'de>> Visitor<'de> for Bounded<MOST, T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = list.next_element()? {
                if elements.len() == MOST {
                    return Err(A::Error::custom(format_args!("a list has more than {MOST}")));
                }
                elements.push(element);
            }
            Ok(elements)
        }
    }

    decoder.deserialize_seq(Bounded::<MOST, T>(PhantomData))
}

fn decode<T: DeserializeOwned>(bytes: &[u8], rules: impl Config) -> Result<T, FrameError> {
    match bincode::serde::decode_from_slice(bytes, rules) {
        Ok((value, read)) if read == bytes.len() => Ok(value),
        Ok((_, read)) => Err(FrameError::TrailingBytes { trailing: (bytes.len() - read) as u64 }),
        Err(DecodeError::UnexpectedEnd { .. }) => Err(FrameError::Truncated),
        Err(DecodeError::LimitExceeded) => Err(FrameError::Overstated),
        Err(error) => Err(FrameError::Malformed { reason: error.to_string() }),
    }
}
