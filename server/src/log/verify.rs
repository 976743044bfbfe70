//! A look at a folder of log files, for `gesmas log verify`: reads everything, changes nothing.

use super::error::LogError;
use super::file_header::Identity;
use super::repo::Repo;
use super::{call, scan};

/// What follows the last record of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Zeros, as the file was made.
    Zeros,
    /// Bytes that are no record: what a crash left of a turn that was never acknowledged.
    Torn,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// Its number.
    pub file: u64,
    /// Its size in bytes.
    pub size: u64,
    /// How many valid records it has.
    pub records: u64,
    /// Where the last of them ends.
    pub end: u64,
    /// Records in which a single bit had flipped; a replica that starts mends them.
    pub mended: u64,
    /// What follows.
    pub tail: Tail,
}

/// The whole folder.
#[derive(Debug)]
pub struct Report {
    /// The files that were read, up to the first that cannot be used.
    pub files: Vec<FileReport>,
    /// Valid records in all.
    pub records: u64,
    /// Entries in the records, dropped ones included.
    pub entries: u64,
    /// Why a replica could not start from this folder, if it could not.
    pub problem: Option<LogError>,
}

/// Reads all files and checks every record. Without an identity, that of the first file counts.
pub fn verify(repo: &mut dyn Repo, identity: Option<Identity>) -> Report {
    let mut files = Vec::new();
    let (mut records, mut entries) = (0, 0);
    let outcome = scan::walk(repo, identity, &mut files, &mut |_, _, record| {
        records += 1;
        call::decode_all(record.body, |_, call| {
            if let call::CallView::Append(new) | call::CallView::AppendOnPrefix(_, new) = call {
                entries += new.len() as u64;
            }
            Ok(())
        })
    });
    Report { files, records, entries, problem: outcome.err() }
}
