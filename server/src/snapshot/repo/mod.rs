//! The folder of snapshots.
//!
//! Files are known by their index and by how far they are: being written here, being fetched from a
//! peer, or whole. [`FsRepo`] keeps them in a folder of the file system, [`MemRepo`] in a model of a
//! disk whose faults its caller chooses.
//! Invariants every implementation keeps: `finish` returns only when the whole file is durable under
//! its final name, and until then a crash leaves no file of that name; what was appended may be lost
//! in a crash from any point after the last `sync` on.
//! Not here: what is in the files.

mod fs;
mod mem;

pub use self::{fs::FsRepo, mem::MemRepo};
pub use crate::log::repo::{Action, RepoError};

/// How far a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Written by this replica.
    Writing,
    /// Got from a peer.
    Fetching,
    /// Whole and durable.
    Whole,
    /// The state of one step, known by it, of a time when replicas had different ones.
    Evidence,
}

/// Why a file is taken out of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside {
    /// Its bytes are damaged.
    Damaged,
    /// Its state is not that of the other replicas.
    Diverged,
}

/// Reads and writes files of snapshots.
pub trait Repo: Send {
    /// Indices of the files of a stage, in rising order.
    fn list(&mut self, stage: Stage) -> Result<Vec<u64>, RepoError>;

    /// Length of a file in bytes.
    fn length(&mut self, stage: Stage, index: u64) -> Result<u64, RepoError>;

    /// Fills `bytes` from `offset` on; a file that ends before is an error.
    fn read(
        &mut self,
        stage: Stage,
        index: u64,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), RepoError>;

    /// Makes an empty file in place of one that is there.
    fn begin(&mut self, stage: Stage, index: u64) -> Result<(), RepoError>;

    /// Adds bytes at the end of a file that is not whole.
    fn append(&mut self, stage: Stage, index: u64, bytes: &[u8]) -> Result<(), RepoError>;

    /// Makes what was appended durable.
    fn sync(&mut self, stage: Stage, index: u64) -> Result<(), RepoError>;

    /// Makes the file durable, and whole unless it is evidence.
    fn finish(&mut self, stage: Stage, index: u64) -> Result<(), RepoError>;

    /// Takes a whole file out of the way, for whoever wants to look at it.
    fn set_aside(&mut self, index: u64, why: Aside) -> Result<(), RepoError>;

    /// Removes a file.
    fn remove(&mut self, stage: Stage, index: u64) -> Result<(), RepoError>;
}
