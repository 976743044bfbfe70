//! The one module of the machine that touches bincode.
//!
//! Invariants: equal values have equal bytes; decoding is bounded and rejects trailing bytes.
//! Not here: any hash of an encoding that came from outside. A hash is taken of bytes that this
//! module wrote.

use bincode::{enc::write::Writer, error::EncodeError};
use serde::{Serialize, de::DeserializeOwned};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Why bytes do not decode.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not an encoding of the type.
    #[error("the encoding is malformed: {0}")]
    Malformed(String),
    /// There are bytes left after the value.
    #[error("{0} bytes follow the value")]
    Trailing(usize),
}

/// Bytes that decoding may claim in all: more than any state that fits into memory here.
const DECODE_LIMIT: usize = if usize::BITS > 36 { 1_usize.wrapping_shl(36) } else { usize::MAX };

const fn configuration() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<DECODE_LIMIT>()
}

/// What is hashed has its numbers in full width: writing one is a store of known size.
const fn hashed() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding()
}

/// The encoding of a value.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(value, &mut bytes);
    bytes
}

/// Appends the encoding of a value.
pub(crate) fn encode_into(value: &impl Serialize, target: &mut Vec<u8>) {
    write(value, Appending(target));
}

/// Bytes of the encoding of a value.
pub(crate) fn length(value: &impl Serialize) -> usize {
    let mut counting = Counting(0);
    write(value, &mut counting);
    counting.0
}

struct Counting(usize);

impl Writer for &mut Counting {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0 += bytes.len();
        Ok(())
    }
}

/// Gives the encoding of a value to `sink`, in pieces of any size. Stops at its first error.
pub(crate) fn encode_to<E>(
    value: &impl Serialize,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut giving = Giving { sink, error: None };
    let outcome = bincode::serde::encode_into_writer(value, &mut giving, configuration());
    match giving.error {
        Some(error) => Err(error),
        None => {
            outcome.expect("the machine's types have encodings");
            Ok(())
        }
    }
}

/// Hash of the encoding of a value, without the encoding itself. It tells values apart that differ by
/// accident; who chooses values can make two with one hash.
pub(crate) fn hash(value: &impl Serialize) -> u128 {
    let mut hashing = Hashing::default();
    bincode::serde::encode_into_writer(value, &mut hashing, hashed())
        .expect("the machine's types have encodings");
    hashing.finish()
}

/// Hash of the encoding of a value as it is stored, where that hash is stored too and is to stay what it
/// is.
pub(crate) fn hash_as_stored(value: &impl Serialize) -> u128 {
    let mut hashing = Hashing::default();
    write(value, &mut hashing);
    hashing.finish()
}

fn write(value: &impl Serialize, target: impl Writer) {
    bincode::serde::encode_into_writer(value, target, configuration())
        .expect("the machine's types have encodings, and memory is there or the replica stops");
}

struct Appending<'a>(&'a mut Vec<u8>);

impl Writer for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

struct Giving<'a, E> {
    sink: &'a mut dyn FnMut(&[u8]) -> Result<(), E>,
    error: Option<E>,
}

impl<E> Writer for &mut Giving<'_, E> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        (self.sink)(bytes).map_err(|error| {
            self.error = Some(error);
            EncodeError::Other("the sink takes no more")
        })
    }
}

/// Bytes that are collected before they are hashed: a hash of few bytes is the cheapest, and encodings
/// come in pieces of a few.
const BLOCK: usize = 240;

/// Hashes what is written to it, by XXH3. Most records fit into one block and are hashed in one piece.
pub(crate) struct Hashing {
    block: [u8; BLOCK],
    used: usize,
    hasher: Option<Box<Xxh3>>,
}

impl Default for Hashing {
    fn default() -> Self {
        Self { block: [0; BLOCK], used: 0, hasher: None }
    }
}

impl Hashing {
    /// Takes the next bytes.
    #[inline(always)]
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        if let Some(room) = self.block.get_mut(self.used..end) {
            room.copy_from_slice(bytes);
            self.used = end;
        } else {
            self.overflow(bytes);
        }
    }

    /// Goes on with a hasher, since the bytes do not fit into the block.
    #[cold]
    fn overflow(&mut self, bytes: &[u8]) {
        let hasher = self.hasher.get_or_insert_with(|| Box::new(Xxh3::new()));
        hasher.update(&self.block[..self.used]);
        self.used = 0;
        hasher.update(bytes);
    }

    /// Hash of all of them.
    pub(crate) fn finish(&mut self) -> u128 {
        let rest = &self.block[..self.used];
        match &mut self.hasher {
            None => xxh3_128(rest),
            Some(hasher) => {
                hasher.update(rest);
                hasher.digest128()
            }
        }
    }
}

impl Writer for Hashing {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.update(bytes);
        Ok(())
    }
}

/// The value of an encoding.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let (value, used) = decode_prefix(bytes)?;
    if used == bytes.len() { Ok(value) } else { Err(DecodeError::Trailing(bytes.len() - used)) }
}

/// The value at the head of `bytes`, and how many bytes it takes.
pub(crate) fn decode_prefix<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), DecodeError> {
    bincode::serde::decode_from_slice(bytes, configuration())
        .map_err(|error| DecodeError::Malformed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashing_in_pieces_is_hashing_the_whole() {
        for pieces in
            [vec![0], vec![3, 237], vec![239, 1, 1], vec![240], vec![241], vec![9, 2_000, 7]]
        {
            let mut hashing = Hashing::default();
            let mut whole = Vec::new();
            for (index, length) in pieces.into_iter().enumerate() {
                let piece = vec![u8::try_from(index).expect("few pieces"); length];
                hashing.update(&piece);
                whole.extend_from_slice(&piece);
            }
            assert_eq!(hashing.finish(), xxh3_128(&whole), "{} bytes", whole.len());
        }
    }

    #[test]
    fn what_follows_a_value_is_refused() {
        let mut bytes = encode(&(7_u64, "seven"));
        assert_eq!(decode::<(u64, String)>(&bytes).expect("it is whole"), (7, "seven".into()));
        bytes.push(0);
        assert!(matches!(decode::<(u64, String)>(&bytes), Err(DecodeError::Trailing(1))));
        assert!(matches!(decode::<(u64, String)>(&bytes[..3]), Err(DecodeError::Malformed(_))));
    }

    #[test]
    fn a_length_beyond_the_input_claims_no_memory() {
        let bytes = encode(&(1_u64 << 35));
        assert!(matches!(decode::<Vec<u8>>(&bytes), Err(DecodeError::Malformed(_))));
    }
}
