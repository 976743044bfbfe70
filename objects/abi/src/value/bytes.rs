//! Byte strings.

use alloc::{string::String, vec::Vec};
use core::{borrow::Borrow, fmt, ops::Deref};

use super::{LENGTH, Malformed, Reader, Type, Value, Write};

/// A byte string. `Vec<u8>` has the same type and the same bytes; this one says what it is.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub Vec<u8>);

impl Value for Bytes {
    const TYPE: Type = Type::Bytes;

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_led(&self.0);
    }

    fn encoded_len(&self) -> usize {
        LENGTH + self.0.len()
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        reader.led().map(Self::from)
    }

    fn skip(reader: &mut Reader<'_>) -> Result<(), Malformed> {
        reader.led().map(drop)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Self {
        bytes.0
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl<const N: usize> From<&[u8; N]> for Bytes {
    fn from(bytes: &[u8; N]) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Bytes {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}
