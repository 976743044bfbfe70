//! What can go wrong with the log, said to the operator who has to act on it.
//!
//! Every variant that comes from the files names the file and, where it has one, the offset, and
//! ends in what to do. None of them is repaired by the program itself.

use super::repo::RepoError;

/// Why the log cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The folder or the disk failed.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The configured size of a file is too small to be of use.
    #[error("a log file has at least {least} bytes, {bytes} are configured")]
    FileTooSmall {
        /// What is configured.
        bytes: u64,
        /// The least.
        least: u64,
    },
    /// A log was to be opened, but there is none.
    #[error(
        "the folder holds no log; a new replica must be created as such, and a replica that lost \
         its disk must not vote again: see docs/operations.md"
    )]
    Missing,
    /// A log was to be created, but there is one.
    #[error(
        "the folder already holds a log that begins with file {file}; open it, or choose another \
         folder for the new replica"
    )]
    AlreadyExists {
        /// The first file found.
        file: u64,
    },
    /// A file of the sequence is not there.
    #[error(
        "log file {file} is missing although file {later} exists; treat the disk as lost, as docs/operations.md says, and never put an older copy back"
    )]
    FileMissing {
        /// The file that is not there.
        file: u64,
        /// A later file that is.
        later: u64,
    },
    /// The header of a file cannot be trusted.
    #[error(
        "the header of log file {file} is corrupt ({reason}); treat the disk as lost, as docs/operations.md says, and never put an older copy back"
    )]
    HeaderCorrupt {
        /// The file.
        file: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file was written by another version of the format.
    #[error(
        "log file {file} has format version {found}, this program reads version {known}; run the \
         version of the program that wrote it"
    )]
    UnknownVersion {
        /// The file.
        file: u64,
        /// The version it has.
        found: u32,
        /// The version that this program knows.
        known: u32,
    },
    /// The file belongs to another replica or cluster.
    #[error(
        "log file {file} belongs to replica {found_replica} of cluster {found_cluster:032x}, not \
         to replica {replica} of cluster {cluster:032x}; check the configured folder and ids"
    )]
    WrongOwner {
        /// The file.
        file: u64,
        /// The cluster in the file.
        found_cluster: u128,
        /// The replica in the file.
        found_replica: u64,
        /// The cluster that was expected.
        cluster: u128,
        /// The replica that was expected.
        replica: u64,
    },
    /// The file is not as long as it was made.
    #[error(
        "log file {file} has {found} bytes and should have {expected}; treat the disk as lost, as docs/operations.md says, and never put an older copy back"
    )]
    WrongLength {
        /// The file.
        file: u64,
        /// Its length.
        found: u64,
        /// The length its header states.
        expected: u64,
    },
    /// A record is corrupt and later ones are not: no crash does that.
    #[error(
        "log file {file} is corrupt at offset {offset}, and a valid record follows in file \
         {later_file} at offset {later_offset}: this is not the torn end that a crash leaves; \
         treat the disk as lost, as docs/operations.md says, and never put an older copy back"
    )]
    CorruptMiddle {
        /// The file with the corrupt record.
        file: u64,
        /// Where the corrupt record begins.
        offset: u64,
        /// The file with a valid later record.
        later_file: u64,
        /// Where the later record begins.
        later_offset: u64,
    },
    /// A record is intact but says what cannot be.
    #[error(
        "the record at offset {offset} of log file {file} is intact but makes no sense ({reason}); \
         this is a fault of the program that wrote it: keep the folder and report it"
    )]
    Nonsense {
        /// The file.
        file: u64,
        /// Where the record begins.
        offset: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An entry that is read back differs from what was written.
    #[error(
        "the entry at offset {offset} of log file {file} was read back corrupt; the disk fails: \
         replace it, and treat it as lost, as docs/operations.md says"
    )]
    EntryCorrupt {
        /// The file.
        file: u64,
        /// Where the entry begins.
        offset: u64,
    },
    /// The caller asked for entries that the log has compacted away.
    #[error("entry {index} was asked for, but the log begins at {first}")]
    Compacted {
        /// The index asked for.
        index: u64,
        /// The first index kept.
        first: u64,
    },
    /// A call would leave a hole between entries.
    #[error("an entry was to be put at {index}, but the log ends at {end}")]
    Hole {
        /// Where the entry was to be put.
        index: u64,
        /// One past the last entry.
        end: u64,
    },
    /// The disk is too full for the next file. Nothing is lost, and another attempt may succeed.
    #[error(
        "the disk has no room for log file {file} of {bytes} bytes; free some space, the replica goes \
         on by itself"
    )]
    NoRoom {
        /// The file.
        file: u64,
        /// Its length.
        bytes: u64,
    },
    /// No file can be opened now, so there is no next one. Nothing is lost, and another attempt may
    /// succeed.
    #[error(
        "log file {file} cannot be made, since too many files are open; raise the limit on open \
         files, the replica goes on by itself"
    )]
    NoDescriptor {
        /// The file.
        file: u64,
    },
    /// One turn is larger than any record may be.
    #[error("one turn has {bytes} bytes, more than the {limit} that one record may have")]
    TurnTooLarge {
        /// Bytes of the turn.
        bytes: u64,
        /// The most that a record may have.
        limit: u64,
    },
    /// A write or sync failed before: the log takes nothing more.
    #[error(
        "the log stopped after an earlier failure ({cause}); the replica must be restarted, and \
         reads what really reached the disk"
    )]
    Poisoned {
        /// The first failure.
        cause: String,
    },
}

impl LogError {
    /// Whether the next file cannot be made just now, and another attempt may succeed: the log is as
    /// it was, and not poisoned.
    #[must_use]
    pub const fn passes(&self) -> bool {
        matches!(self, Self::NoRoom { .. } | Self::NoDescriptor { .. })
    }
}
