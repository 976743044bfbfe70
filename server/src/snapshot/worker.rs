//! The work with files of snapshots that a replica's core wants done, away from its own turn.
//!
//! The core puts out jobs and takes their ends; the shell does them in a thread, a simulator when it
//! likes. Jobs are done in order.

use bytes::Bytes;
use gesmas_machine::Snapshot;

use super::{Head, Loaded, SnapshotError, Store, repo::RepoError};

/// Something to do.
#[derive(Debug)]
pub enum Job {
    /// Write a snapshot of everything below `index`; then keep it and the one before it, of less
    /// than `keep_from` none.
    Write {
        /// Where it ends.
        index: u64,
        /// What to write.
        snapshot: Box<Snapshot>,
        /// Index of the oldest snapshot to keep.
        keep_from: u64,
    },
    /// Read a piece for somebody.
    Read {
        /// Who asked.
        reader: Reader,
        /// Of which snapshot.
        index: u64,
        /// From which byte on.
        offset: u64,
    },
    /// Begin to fetch a snapshot, or go on with it.
    BeginFetch {
        /// Which.
        index: u64,
    },
    /// Add a piece.
    AddPiece {
        /// Of which snapshot.
        index: u64,
        /// Where it belongs.
        offset: u64,
        /// The piece.
        bytes: Bytes,
    },
    /// Check a snapshot of which everything was fetched.
    FinishFetch {
        /// Which.
        index: u64,
    },
    /// Keep evidence of a divergence.
    Evidence(Evidence),
}

/// Who reads a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A peer that is behind.
    Peer(u64),
    /// A client that makes a backup, by the number of its question.
    Client(u64),
}

/// What is kept of a divergence.
#[derive(Debug)]
pub struct Evidence {
    /// The step after which states differed.
    pub step: u64,
    /// The state then, if it is known.
    pub state: Option<Box<Snapshot>>,
    /// If this replica is the one that diverged.
    pub own: Option<OwnDivergence>,
}

/// What becomes of the snapshots of a replica that has diverged.
#[derive(Clone, Copy, Debug)]
pub struct OwnDivergence {
    /// Those of this step and later ones are set aside.
    pub last_agreed: u64,
    /// Whether one of them stays should nothing else be left.
    pub leave_one: bool,
}

/// The end of a job.
#[derive(Debug)]
pub enum Done {
    /// A snapshot is durable, in a file of so many bytes, or could not be written.
    Written(Result<(Head, u64), SnapshotError>),
    /// A piece for whoever reads.
    Piece {
        /// Who asked.
        reader: Reader,
        /// Of which snapshot.
        index: u64,
        /// From which byte on.
        offset: u64,
        /// The bytes and the length of the whole file, or why there are none.
        result: Result<(Bytes, u64), RepoError>,
    },
    /// So much of a snapshot is fetched.
    Fetched {
        /// Which.
        index: u64,
        /// Bytes from its beginning.
        result: Result<u64, RepoError>,
    },
    /// A snapshot was fetched and is good, or is not.
    Finished {
        /// Which.
        index: u64,
        /// The state.
        result: Result<Box<Loaded>, SnapshotError>,
    },
    /// The evidence of a step is durable; false when no more is kept.
    Evidence {
        /// The step.
        step: u64,
        /// Whether its state was written.
        result: Result<bool, SnapshotError>,
    },
}

/// Does jobs.
pub struct Worker(Store);

impl Worker {
    /// Works in these files.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    /// Does a job.
    pub fn work(&mut self, job: Job) -> Done {
        match job {
            Job::Write { index, snapshot, keep_from } => {
                let written = self.0.write(index, &snapshot);
                Done::Written(written.and_then(|written| {
                    self.0.remove_before(keep_from)?;
                    Ok(written)
                }))
            }
            Job::Read { reader, index, offset } => {
                let result = self.0.piece(index, offset);
                let result = result.map(|(bytes, total)| (bytes.into(), total));
                Done::Piece { reader, index, offset, result }
            }
            Job::BeginFetch { index } => Done::Fetched { index, result: self.0.begin_fetch(index) },
            Job::AddPiece { index, offset, bytes } => {
                Done::Fetched { index, result: self.0.add_piece(index, offset, &bytes) }
            }
            Job::FinishFetch { index } => {
                Done::Finished { index, result: self.0.finish_fetch(index).map(Box::new) }
            }
            Job::Evidence(evidence) => {
                Done::Evidence { step: evidence.step, result: self.keep(&evidence) }
            }
        }
    }

    fn keep(&mut self, evidence: &Evidence) -> Result<bool, SnapshotError> {
        if let Some(own) = evidence.own {
            self.0.set_aside_after(own.last_agreed, own.leave_one)?;
        }
        match &evidence.state {
            Some(state) => self.0.write_evidence(evidence.step, state),
            None => Ok(false),
        }
    }
}
