//! A record: everything that one turn changed, under one checksum.
//!
//! Layout, little-endian: magic (4), body length (4), sequence number (8), body checksum (4),
//! header checksum (4), zeros (8), then the body, padded with zeros to a multiple of 16.
//! Both checksums are CRC32C and start from the seed of the file and the offset of the record;
//! the body's covers the padding. The header has a checksum of its own so that a search for later
//! records rejects a false header without reading the body it claims.
//!
//! Invariant: bytes that pass [`check`] were written at this offset of this file, as a whole.

/// Bytes before the body.
pub(crate) const RECORD_HEADER_BYTES: usize = 32;
/// Records begin at multiples of this.
pub(crate) const RECORD_ALIGNMENT: usize = 16;
/// The most bytes that one record may have: what one turn can hold, with room for a whole suffix
/// that a leader sends to a follower (the frame cap of `paxos` is a quarter of it).
pub(crate) const MAX_RECORD_BYTES: u64 = 256 << 20;

const MAGIC: [u8; 4] = [0xd7, b'T', b'R', 0x9e];

/// A valid record in the bytes of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordView<'a> {
    pub(crate) sequence: u64,
    /// The calls, without padding.
    pub(crate) body: &'a [u8],
    /// Bytes of the record in the file, header and padding included.
    pub(crate) total: usize,
}

/// Fills in the header of `record`, which holds room for it and then the body, and pads the end.
pub(crate) fn seal(record: &mut Vec<u8>, seed: u32, offset: u64, sequence: u64) {
    assert!(record.len() >= RECORD_HEADER_BYTES, "a record has room for its header");
    let body = u32::try_from(record.len() - RECORD_HEADER_BYTES).expect("checked by the caller");
    record.resize(record.len().next_multiple_of(RECORD_ALIGNMENT), 0);
    record[..RECORD_HEADER_BYTES].fill(0);
    record[0..4].copy_from_slice(&MAGIC);
    record[4..8].copy_from_slice(&body.to_le_bytes());
    record[8..16].copy_from_slice(&sequence.to_le_bytes());
    let start = start(seed, offset);
    let sum = crc32c::crc32c_append(start, &record[RECORD_HEADER_BYTES..]);
    record[16..20].copy_from_slice(&sum.to_le_bytes());
    let sum = header_checksum(start, &record[..RECORD_HEADER_BYTES]);
    record[20..24].copy_from_slice(&sum.to_le_bytes());
}

/// The record at `offset` of `file`, if a valid one begins there.
pub(crate) fn check(file: &[u8], seed: u32, offset: usize) -> Option<RecordView<'_>> {
    let header = file.get(offset..)?.get(..RECORD_HEADER_BYTES)?;
    if header[0..4] != MAGIC {
        return None;
    }
    let half = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let start = start(seed, offset as u64);
    if half(20) != header_checksum(start, header) {
        return None;
    }
    let length = half(4) as usize;
    let padded = length.next_multiple_of(RECORD_ALIGNMENT);
    let body = file.get(offset + RECORD_HEADER_BYTES..)?.get(..padded)?;
    if half(16) != crc32c::crc32c_append(start, body) {
        return None;
    }
    Some(RecordView {
        sequence: u64::from_le_bytes(header[8..16].try_into().expect("8 bytes")),
        body: &body[..length],
        total: RECORD_HEADER_BYTES + padded,
    })
}

fn start(seed: u32, offset: u64) -> u32 {
    crc32c::crc32c_append(seed, &offset.to_le_bytes())
}

fn header_checksum(start: u32, header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(start, &header[..20]), &header[24..])
}
