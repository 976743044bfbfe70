//! The folder of log files, as the log sees it.
//!
//! Files are known by their number. [`FsRepo`] keeps them in a folder of the file system,
//! [`MemDisk`] in a model of a disk that forgets what was not synced, and [`FaultyRepo`] wraps
//! either and fails as it is told. All choices of the last two are made by the caller, so that a
//! simulation replays exactly.
//!
//! Invariants every implementation keeps:
//! - `create` returns only when the whole file, and its name, are durable; until then a crash
//!   leaves either no such file or the complete one.
//! - `write` never changes the length of a file.
//! - At most one writer has a folder open.
//!
//! Not here: what is in the files.

mod faulty;
mod fs;
mod mem;

use std::io;

use rustix::io::Errno;

pub use self::faulty::{Fault, FaultyRepo, Operation};
pub use self::fs::FsRepo;
pub use mem::{Lack, MemDisk, MemRepo};

/// What is left to do to make a file durable.
pub type FileSync = Box<dyn FnOnce() -> Result<(), RepoError> + Send>;

/// Reads, writes and syncs log files.
pub trait Repo: Send {
    /// The numbers of the files, in rising order.
    fn list(&mut self) -> Result<Vec<u64>, RepoError>;

    /// The length of a file in bytes.
    fn length(&mut self, file: u64) -> Result<u64, RepoError>;

    /// Fills `bytes` from `offset` on; a file that ends before is an error.
    fn read(&mut self, file: u64, offset: u64, bytes: &mut [u8]) -> Result<(), RepoError>;

    /// Writes `bytes` at `offset`, within the length of the file. Nothing is durable before `sync`.
    fn write(&mut self, file: u64, offset: u64, bytes: &[u8]) -> Result<(), RepoError>;

    /// What makes durable what was written to the file, on any thread; until it has run nothing more
    /// is written. After an error nobody knows what is durable.
    fn begin_sync(&mut self, file: u64) -> Result<FileSync, RepoError>;

    /// Makes what was written to the file durable.
    fn sync(&mut self, file: u64) -> Result<(), RepoError> {
        self.begin_sync(file)?()
    }

    /// Makes a durable file of `size` bytes, `header` and then zeros, in place of one of that name.
    fn create(&mut self, file: u64, size: u64, header: &[u8]) -> Result<(), RepoError>;

    /// Begins to do what `create` does, without making the caller wait if that is possible.
    /// `wait_created` must be called for the file before it is used.
    fn create_ahead(&mut self, file: u64, size: u64, header: &[u8]);

    /// Removes a file, durably. A crash may bring it back while later removals last.
    fn remove(&mut self, file: u64) -> Result<(), RepoError>;

    /// Waits for a file that `create_ahead` began: true if it is there, false if none was begun.
    fn wait_created(&mut self, file: u64) -> Result<bool, RepoError>;
}

/// What was being done when a folder or a disk failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Opening or locking the folder.
    Open,
    /// Listing the files of the folder.
    List,
    /// Asking for the length of a file.
    Length,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Making writes durable.
    Sync,
    /// Making a new file.
    Create,
    /// Removing a file.
    Remove,
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::List => "list the files of",
            Self::Length => "find the length of",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Create => "create",
            Self::Remove => "remove",
        })
    }
}

/// A failure of a folder or a disk.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// Another process has the folder open.
    #[error(
        "the log folder {folder} is in use by another process; stop it first, or choose another \
         folder"
    )]
    Locked {
        /// The folder.
        folder: String,
    },
    /// The disk is full.
    #[error(
        "the disk is full: cannot {action} {subject}; free some space, and start the replica again if it stopped"
    )]
    Full {
        /// What was being done.
        action: Action,
        /// To which file or folder.
        subject: String,
    },
    /// The process, or the system, has as many files open as it may.
    #[error(
        "too many files are open: cannot {action} {subject}; raise the limit on open files, and start the replica again if it stopped"
    )]
    NoDescriptor {
        /// What was being done.
        action: Action,
        /// To which file or folder.
        subject: String,
    },
    /// Anything else that the system reports.
    #[error("cannot {action} {subject}: {source}")]
    Io {
        /// What was being done.
        action: Action,
        /// To which file or folder.
        subject: String,
        /// The report of the system.
        source: io::Error,
    },
}

impl RepoError {
    /// Sorts an error of the system.
    pub(crate) fn new(action: Action, subject: impl Into<String>, source: io::Error) -> Self {
        let subject = subject.into();
        if lacks_descriptor(&source) {
            return Self::NoDescriptor { action, subject };
        }
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { action, subject }
            }
            _ => Self::Io { action, subject, source },
        }
    }

    pub(crate) fn of_file(action: Action, file: u64, source: io::Error) -> Self {
        Self::new(action, format!("log file {file}"), source)
    }

    /// Whether it says nothing about the disk's health, and another attempt may succeed: there is no
    /// room, or no file can be opened, just now.
    #[must_use]
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::NoDescriptor { .. })
    }
}

/// Whether the system refuses for want of a file descriptor: the process has all that it may have, or
/// the system has no more.
pub(crate) fn lacks_descriptor(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
