//! The bytes of a snapshot: head, chunks, end.
//!
//! A chunk is length (4), CRC32C (4), bytes; the checksum starts from that of the head and of where
//! the chunk lies, so that a chunk of another file or place is none. The end is a chunk of length 0
//! whose checksum covers the head's and its place, and nothing follows it.
//! Not here: the image that the chunks make up, which ends with a hash of its own.

use super::{
    SnapshotError,
    head::{HEAD_BYTES, Head},
};

/// Bytes of an image in one chunk.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNK_HEAD_BYTES: usize = 8;

/// Turns pieces of an image into the bytes of a file, which go to a sink.
pub(super) struct FileWriter<'a, E> {
    sink: &'a mut dyn FnMut(&[u8]) -> Result<(), E>,
    seed: u32,
    offset: u64,
    /// Room for the head of the chunk, then its bytes.
    chunk: Vec<u8>,
}

impl<'a, E> FileWriter<'a, E> {
    pub(super) fn begin(
        head: &Head,
        sink: &'a mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let bytes = head.encode();
        sink(&bytes)?;
        let chunk = Vec::with_capacity(CHUNK_HEAD_BYTES + CHUNK_BYTES);
        let mut writer =
            Self { sink, seed: crc32c::crc32c(&bytes), offset: HEAD_BYTES as u64, chunk };
        writer.chunk.resize(CHUNK_HEAD_BYTES, 0);
        Ok(writer)
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), E> {
        while !bytes.is_empty() {
            let room = CHUNK_HEAD_BYTES + CHUNK_BYTES - self.chunk.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if now.len() == room {
                self.put_chunk()?;
            }
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<(), E> {
        if self.chunk.len() > CHUNK_HEAD_BYTES {
            self.put_chunk()?;
        }
        self.put_chunk()
    }

    fn put_chunk(&mut self) -> Result<(), E> {
        let body = &self.chunk[CHUNK_HEAD_BYTES..];
        let length = u32::try_from(body.len()).expect("a chunk is small");
        let sum = checksum(self.seed, self.offset, body);
        self.chunk[0..4].copy_from_slice(&length.to_le_bytes());
        self.chunk[4..8].copy_from_slice(&sum.to_le_bytes());
        (self.sink)(&self.chunk)?;
        self.offset += self.chunk.len() as u64;
        self.chunk.truncate(CHUNK_HEAD_BYTES);
        Ok(())
    }
}

/// Checks the bytes of a whole file and gives its head and image.
pub(super) fn decode(bytes: &[u8], index: u64) -> Result<(Head, Vec<u8>), SnapshotError> {
    let head = Head::decode(bytes, index)?;
    let seed = crc32c::crc32c(&bytes[..HEAD_BYTES]);
    let mut image = Vec::with_capacity(bytes.len());
    let mut at = HEAD_BYTES;
    loop {
        let damaged = |reason| SnapshotError::Damaged { index, offset: at as u64, reason };
        let rest = &bytes[at..];
        let Some((chunk, rest)) = rest.split_first_chunk::<CHUNK_HEAD_BYTES>() else {
            return Err(damaged("it ends too early"));
        };
        let half = |at: usize| u32::from_le_bytes(*chunk[at..].first_chunk().expect("4 bytes"));
        let length = half(0) as usize;
        let Some(body) = rest.get(..length).filter(|_| length <= CHUNK_BYTES) else {
            return Err(damaged("a chunk is longer than what is left"));
        };
        if half(4) != checksum(seed, at as u64, body) {
            return Err(damaged("a chunk has another checksum"));
        }
        at += CHUNK_HEAD_BYTES + length;
        image.extend_from_slice(body);
        if length == 0 {
            break;
        }
    }
    if at < bytes.len() {
        let offset = at as u64;
        return Err(SnapshotError::Damaged { index, offset, reason: "bytes follow its end" });
    }
    Ok((head, image))
}

fn checksum(seed: u32, offset: u64, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &offset.to_le_bytes()), body)
}
