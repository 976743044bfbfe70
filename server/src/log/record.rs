//! A record: everything that one turn changed, under one checksum.
//!
//! Layout, little-endian: magic (4), body length (4), sequence number (8), body checksum (4),
//! header checksum (4), digest of the body (8), then the body, padded with zeros to a multiple of 16.
//! Both checksums are CRC32C and start from the seed of the file and the offset of the record;
//! the body's covers the padding. The header has a checksum of its own so that a search for later
//! records rejects a false header without reading the body it claims. The digest is BLAKE3's, cut
//! short. It is what makes [`mend`] safe: a checksum says which single bit would have to be flipped
//! back to make a record valid, and for a long body that was torn there may be one by chance.
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
    let digest = digest(&record[RECORD_HEADER_BYTES..]);
    record[24..32].copy_from_slice(&digest);
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
    if half(16) != crc32c::crc32c_append(start, body) || header[24..32] != digest(body) {
        return None;
    }
    Some(RecordView {
        sequence: u64::from_le_bytes(header[8..16].try_into().expect("8 bytes")),
        body: &body[..length],
        total: RECORD_HEADER_BYTES + padded,
    })
}

/// Makes the record at `offset` valid again by flipping back one bit, if that is all that is wrong
/// with it. Returns the place of the byte that was changed; otherwise nothing is changed.
pub(crate) fn mend(file: &mut [u8], seed: u32, offset: usize) -> Option<usize> {
    let at = flipped_in_header(file, seed, offset).or_else(|| flipped_in_body(file, seed, offset));
    let (at, mask) = at?;
    file[at] ^= mask;
    if check(file, seed, offset).is_some() {
        return Some(at);
    }
    file[at] ^= mask;
    None
}

/// The bit without which the header would be valid.
fn flipped_in_header(file: &[u8], seed: u32, offset: usize) -> Option<(usize, u8)> {
    let found = file.get(offset..)?.get(..RECORD_HEADER_BYTES)?;
    let mut header: [u8; RECORD_HEADER_BYTES] = found.try_into().expect("its length was chosen");
    let start = start(seed, offset as u64);
    for bit in 0..RECORD_HEADER_BYTES * 8 {
        let mask = 1 << (bit % 8);
        header[bit / 8] ^= mask;
        let sum = u32::from_le_bytes(header[20..24].try_into().expect("4 bytes"));
        if header[0..4] == MAGIC && sum == header_checksum(start, &header) {
            return Some((offset + bit / 8, mask));
        }
        header[bit / 8] ^= mask;
    }
    None
}

/// The bit without which the body would have its checksum, under a header that is valid.
fn flipped_in_body(file: &[u8], seed: u32, offset: usize) -> Option<(usize, u8)> {
    let header = file.get(offset..)?.get(..RECORD_HEADER_BYTES)?;
    let half = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let start = start(seed, offset as u64);
    if header[0..4] != MAGIC || half(20) != header_checksum(start, header) {
        return None;
    }
    let padded = (half(4) as usize).next_multiple_of(RECORD_ALIGNMENT);
    let from = offset + RECORD_HEADER_BYTES;
    let body = file.get(from..)?.get(..padded)?;
    let wrong = half(16) ^ crc32c::crc32c_append(start, body);
    // What a flipped bit does to the checksum depends only on how many bytes come after it. Each
    // further byte shifts the difference on by eight zero bits.
    let mut differences: [u32; 8] = std::array::from_fn(|bit| shift_byte(1 << bit));
    for at in (0..padded).rev() {
        if let Some(bit) = differences.iter().position(|difference| *difference == wrong) {
            return Some((from + at, 1 << bit));
        }
        differences = differences.map(shift_byte);
    }
    None
}

/// What eight further bits of zeros make of a difference between two checksums.
fn shift_byte(difference: u32) -> u32 {
    /// The polynomial of CRC32C, reflected.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    (0..8).fold(difference, |difference, _| {
        (difference >> 1) ^ if difference & 1 == 1 { POLYNOMIAL } else { 0 }
    })
}

fn digest(body: &[u8]) -> [u8; 8] {
    *blake3::hash(body).as_bytes().first_chunk().expect("a digest has 32 bytes")
}

fn start(seed: u32, offset: u64) -> u32 {
    crc32c::crc32c_append(seed, &offset.to_le_bytes())
}

fn header_checksum(start: u32, header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(start, &header[..20]), &header[24..])
}
