//! Reading all files of a log in order, for recovery and for verification.
//!
//! The walk hands out every valid record once, in sequence, and finds where the next one belongs.
//! It tells the torn end of a crash, after which nothing valid follows, from a corrupt middle,
//! which it refuses. A record in which a single bit has flipped is mended, wherever it is: the last
//! one could otherwise not be told from a torn write, and a vote would be forgotten.
//! Not here: what records mean, and any change to the files.

use super::error::LogError;
use super::file_header::{FileHeader, HEADER_BYTES, Identity};
use super::record::{self, RECORD_ALIGNMENT, RecordView};
use super::repo::Repo;
use super::verify::{FileReport, Tail};

/// Where the log ends.
#[derive(Debug)]
pub(crate) struct Walked {
    /// The headers of the files that count, by number.
    pub(crate) headers: Vec<FileHeader>,
    /// The first file that counts: the first that was not given back.
    pub(crate) oldest: u64,
    /// Files before it, which a crash kept from being removed.
    pub(crate) leftovers: Vec<u64>,
    /// The file in which the last record is, or the first file.
    pub(crate) active: u64,
    /// Where in the active file the next record goes.
    pub(crate) offset: u64,
    /// The sequence number of the next record.
    pub(crate) sequence: u64,
    /// Per file from the active one on: the range that holds bytes of no record, if any.
    pub(crate) debris: Vec<(u64, std::ops::Range<u64>)>,
    /// Bytes of records in which one bit had flipped: file, offset, and what the byte has to be.
    pub(crate) mended: Vec<(u64, u64, u8)>,
}

/// Gives every record to `apply`, and a report on every file read to `reports`.
pub(crate) fn walk(
    repo: &mut dyn Repo,
    identity: Option<Identity>,
    reports: &mut Vec<FileReport>,
    apply: &mut dyn FnMut(&FileHeader, u64, RecordView<'_>) -> Result<(), &'static str>,
) -> Result<Walked, LogError> {
    let numbers = repo.list()?;
    if numbers.is_empty() {
        return Err(LogError::Missing);
    }
    // Files are given back in order, so that only the last unbroken run of numbers counts.
    let gap = (1..numbers.len()).rev().find(|at| numbers[*at] != numbers[at - 1] + 1);
    let (leftovers, numbers) = numbers.split_at(gap.unwrap_or(0));
    let oldest = numbers[0];
    let mut walked = Walked {
        headers: vec![],
        oldest,
        leftovers: leftovers.to_vec(),
        active: oldest,
        offset: HEADER_BYTES,
        sequence: 1,
        debris: vec![],
        mended: vec![],
    };
    let mut identity = identity;
    for &number in numbers {
        let (header, mut bytes) = read_file(repo, number)?;
        header.check_owner(*identity.get_or_insert(header.identity))?;
        let report = walk_file(&mut walked, &header, &mut bytes, apply)?;
        walked.headers.push(header);
        reports.push(report);
    }
    Ok(walked)
}

fn read_file(repo: &mut dyn Repo, number: u64) -> Result<(FileHeader, Vec<u8>), LogError> {
    let length = repo.length(number)?;
    let mut head = vec![0; usize::try_from(length.min(HEADER_BYTES)).expect("a header's length")];
    repo.read(number, 0, &mut head)?;
    let header = FileHeader::decode(&head, number)?;
    if header.size != length {
        return Err(LogError::WrongLength { file: number, found: length, expected: header.size });
    }
    let mut bytes = vec![0; usize::try_from(length).expect("a file fits into memory")];
    repo.read(number, 0, &mut bytes)?;
    Ok((header, bytes))
}

fn walk_file(
    walked: &mut Walked,
    header: &FileHeader,
    bytes: &mut [u8],
    apply: &mut dyn FnMut(&FileHeader, u64, RecordView<'_>) -> Result<(), &'static str>,
) -> Result<FileReport, LogError> {
    let file = header.number;
    let seed = header.checksum_seed();
    let mut offset = HEADER_BYTES as usize;
    let mut records = 0;
    let mut mended = 0;
    loop {
        if record::check(bytes, seed, offset).is_none() {
            let Some(at) = record::mend(bytes, seed, offset) else { break };
            walked.mended.push((file, at as u64, bytes[at]));
            mended += 1;
        }
        let record = record::check(bytes, seed, offset).expect("it is valid, or was made so");
        let nonsense = |reason| LogError::Nonsense { file, offset: offset as u64, reason };
        if walked.sequence == 1 && file == walked.oldest {
            // The records before it were given back with their files.
            walked.sequence = record.sequence;
        }
        if record.sequence < walked.sequence {
            return Err(nonsense("its sequence number was used before"));
        }
        if record.sequence > walked.sequence {
            // What should come before it is gone: it was expected at the end found so far.
            return Err(LogError::CorruptMiddle {
                file: walked.active,
                offset: walked.offset,
                later_file: file,
                later_offset: offset as u64,
            });
        }
        apply(header, offset as u64, record).map_err(nonsense)?;
        offset += record.total;
        records += 1;
        if records == 1 {
            walked.debris.clear();
        }
        walked.active = file;
        walked.offset = offset as u64;
        walked.sequence += 1;
    }
    if let Some(later) = find_record(bytes, seed, offset) {
        return Err(LogError::CorruptMiddle {
            file,
            offset: offset as u64,
            later_file: file,
            later_offset: later as u64,
        });
    }
    let nonzero = bytes[offset..].iter().rposition(|byte| *byte != 0);
    if let Some(last) = nonzero {
        walked.debris.push((file, offset as u64..(offset + last + 1) as u64));
    }
    Ok(FileReport {
        file,
        size: header.size,
        records,
        end: offset as u64,
        mended,
        tail: if nonzero.is_some() { Tail::Torn } else { Tail::Zeros },
    })
}

/// The first offset after `from` at which a valid record begins.
fn find_record(bytes: &[u8], seed: u32, from: usize) -> Option<usize> {
    let mut at = from + RECORD_ALIGNMENT;
    while at < bytes.len() {
        if record::check(bytes, seed, at).is_some() {
            return Some(at);
        }
        at += RECORD_ALIGNMENT;
    }
    None
}
