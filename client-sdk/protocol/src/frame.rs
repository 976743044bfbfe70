//! Frames: how messages lie on a stream of bytes.
//!
//! ```text
//! length u32 | version u16 | kind u16 | checksum u32 | body (length bytes)
//! ```
//!
//! All numbers are little-endian. The checksum is CRC32C over the first eight bytes and the body.
//! Invariants: a length beyond the cap is refused when the header is there, before any of the body
//! is read or room is made for it; after an error a decoder gives nothing but that error, because
//! the stream has lost its frames and the connection must be closed.
//! Not here: what bodies mean (`message.rs`).

use bytes::{Buf, Bytes, BytesMut};
use serde::Serialize;

use crate::{BODY_MAX, VERSION, encoding};

/// Length of what comes before a body, bytes.
const HEADER: usize = 12;

/// Why bytes are not a frame, or a frame is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The body is longer than this side takes.
    #[error("a frame's body of {length} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its length, bytes.
        length: u64,
        /// The greatest length, bytes.
        limit: u64,
    },
    /// The bytes are not those that were sent.
    #[error("a frame's checksum is {stated:08x} but its bytes give {computed:08x}")]
    BadChecksum {
        /// What the frame says.
        stated: u32,
        /// What its bytes say.
        computed: u32,
    },
    /// The peer speaks another version.
    #[error("a frame has protocol version {version}, this side speaks {VERSION}")]
    UnknownVersion {
        /// The frame's version.
        version: u16,
    },
    /// This side takes no message of this kind.
    #[error("a frame has the unknown kind {kind}")]
    UnknownKind {
        /// The frame's kind.
        kind: u16,
    },
    /// The body goes on after its message.
    #[error("a frame has {trailing} bytes after its message")]
    TrailingBytes {
        /// How many bytes are left over.
        trailing: u64,
    },
    /// The body ends before its message does.
    #[error("a frame's body ends in the middle of its message")]
    Truncated,
    /// A length within the body is greater than the body can hold.
    #[error("a frame's body states a length that it cannot hold")]
    Overstated,
    /// The body is not a message of its kind.
    #[error("a frame's body is not a message of its kind: {reason}")]
    Malformed {
        /// What the decoder ran into.
        reason: String,
    },
}

/// One frame, its checksum verified, its body not yet decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Kind of the message.
    pub kind: u16,
    /// The encoded message.
    pub body: Bytes,
}

/// Appends a frame with `message` as its body. On an error nothing is appended.
pub(crate) fn append<T: Serialize>(
    kind: u16,
    message: &T,
    output: &mut Vec<u8>,
) -> Result<(), FrameError> {
    let start = output.len();
    output.extend_from_slice(&[0; HEADER]);
    encoding::append(message, output);
    let length = output.len() - start - HEADER;
    let Some(stated) = u32::try_from(length).ok().filter(|&length| length <= BODY_MAX) else {
        output.truncate(start);
        return Err(FrameError::TooLarge { length: length as u64, limit: BODY_MAX.into() });
    };
    let header = &mut output[start..start + HEADER];
    header[0..4].copy_from_slice(&stated.to_le_bytes());
    header[4..6].copy_from_slice(&VERSION.to_le_bytes());
    header[6..8].copy_from_slice(&kind.to_le_bytes());
    let checksum = checksum(&output[start..start + 8], &output[start + HEADER..]);
    output[start + 8..start + HEADER].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

fn checksum(header: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), body)
}

/// Cuts a stream of bytes into frames.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    limit: u32,
    failed: Option<FrameError>,
}

impl FrameDecoder {
    /// A decoder that takes bodies up to `limit` bytes, and never more than [`BODY_MAX`].
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self { buffer: BytesMut::new(), limit: limit.min(BODY_MAX), failed: None }
    }

    /// Adds bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Where bytes may be read into directly; the reader only appends. Poll all frames between two
    /// reads, so that no more than one frame and one read lie here.
    pub const fn buffer_mut(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next frame, or none until more bytes come.
    ///
    /// # Errors
    /// [`FrameError`] when the bytes are not a frame. It is final.
    pub fn poll(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.cut().inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn cut(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(mut header) = self.buffer.get(..HEADER) else { return Ok(None) };
        let length = header.get_u32_le();
        let version = header.get_u16_le();
        let kind = header.get_u16_le();
        let stated = header.get_u32_le();
        if version != VERSION {
            return Err(FrameError::UnknownVersion { version });
        }
        if length > self.limit {
            return Err(FrameError::TooLarge { length: length.into(), limit: self.limit.into() });
        }
        let whole = HEADER + length as usize;
        if self.buffer.len() < whole {
            self.buffer.reserve(whole - self.buffer.len());
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(whole).freeze();
        let computed = checksum(&frame[..8], &frame[HEADER..]);
        if stated != computed {
            return Err(FrameError::BadChecksum { stated, computed });
        }
        Ok(Some(Frame { kind, body: frame.split_off(HEADER) }))
    }
}
