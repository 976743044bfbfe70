//! Takes encoded bytes apart, and puts them together.
//!
//! Invariant: a [`Reader`] never reads past its input, and hands out lengths and counts only after
//! it has checked that the input can hold that much.

use alloc::vec::Vec;
use core::fmt;

/// Why bytes do not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for Malformed {}

/// Encoded bytes that have not been taken yet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Takes that many bytes.
    ///
    /// # Errors
    /// [`Malformed`] when fewer are left.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(Malformed("it ends too early"));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Takes a fixed number of bytes.
    ///
    /// # Errors
    /// [`Malformed`] when fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(Malformed("it ends too early"));
        };
        self.rest = rest;
        Ok(*taken)
    }

    /// Takes one byte.
    ///
    /// # Errors
    /// [`Malformed`] when none is left.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Takes a 32-bit number.
    ///
    /// # Errors
    /// [`Malformed`] when too few bytes are left.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes a 64-bit number.
    ///
    /// # Errors
    /// [`Malformed`] when too few bytes are left.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes a byte that is 0 or 1.
    ///
    /// # Errors
    /// [`Malformed`] for any other byte and when none is left.
    pub fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a flag is neither 0 nor 1")),
        }
    }

    /// Takes bytes led by their length.
    ///
    /// # Errors
    /// [`Malformed`] when fewer are left than the length says.
    pub fn led(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    /// Takes a text led by its length.
    ///
    /// # Errors
    /// [`Malformed`] when it is cut short or is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        utf8(self.led()?)
    }

    /// Takes a count of items of which each takes `least` bytes or more, so that a count that the
    /// input cannot hold is refused before anything is allocated for it.
    ///
    /// # Errors
    /// [`Malformed`] when the input cannot hold that many.
    pub fn count(&mut self, least: usize) -> Result<usize, Malformed> {
        let count = self.u32()? as usize;
        match count.checked_mul(least.max(1)) {
            Some(bytes) if bytes <= self.remaining() => Ok(count),
            _ => Err(Malformed("a count is greater than the input can hold")),
        }
    }

    /// Takes all that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// Takes all that is left as a text.
    ///
    /// # Errors
    /// [`Malformed`] when it is not UTF-8.
    pub fn rest_text(&mut self) -> Result<&'a str, Malformed> {
        utf8(self.rest())
    }

    /// Makes sure that nothing is left.
    ///
    /// # Errors
    /// [`Malformed`] when something is.
    pub const fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("bytes follow after its end")) }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Malformed> {
    core::str::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8"))
}

/// Appends encoded parts to a buffer.
pub trait Write {
    /// Appends bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    /// Appends one byte.
    fn put_u8(&mut self, byte: u8) {
        self.put(&[byte]);
    }

    /// Appends a 32-bit number.
    fn put_u32(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }

    /// Appends a 64-bit number.
    fn put_u64(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }

    /// Appends a length or count.
    ///
    /// # Panics
    /// When it does not fit into 32 bits, which no guest's memory can hold and no host accepts.
    fn put_count(&mut self, count: usize) {
        assert!(count <= u32::MAX as usize, "a length fits into 32 bits");
        self.put_u32(count as u32);
    }

    /// Appends bytes led by their length.
    fn put_led(&mut self, bytes: &[u8]) {
        self.put_count(bytes.len());
        self.put(bytes);
    }
}

impl Write for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
