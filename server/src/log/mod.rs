//! The durable log: what a replica must not forget, in checksummed files of a fixed size.
//!
//! The log keeps the state of any number of Paxos instances (a group in one configuration): its
//! promise, its accepted round, its entries and its decided index. Calls change the state in
//! memory at once and gather in the record of the current *turn*; [`Log::sync`] writes that record
//! and makes it durable with one fdatasync. Old entries are read back from their file and verified
//! again; recent ones come from a bounded cache.
//!
//! Invariants:
//! - One turn is one record, so that after a crash the files hold a prefix of the turns, each whole
//!   or not there at all; a group of calls within a turn is atomic for the same reason.
//! - A record is valid only at its own offset of its own file of its own log, and sequence numbers
//!   rise by one from record to record, across files.
//! - Recovery ends cleanly where a crash tore the last record, and refuses everything else:
//!   a corrupt record with a valid one after it, a missing or foreign file, an unknown version.
//! - After a failed write or sync the log is poisoned: it never tries again, since the system may
//!   have dropped the bytes that it could not write.
//!
//! - A file in which no entry is kept is given back: the first record of each later file says what
//!   every instance was before it.
//!
//! Not here: what the calls mean (`paxos` knows), and snapshots. A bit that flips in the very last record cannot
//! be told from a torn write; the replica then comes back one turn short.

mod call;
mod durable;
mod error;
mod file_header;
mod lookup;
mod record;
mod recovery;
pub mod repo;
mod scan;
mod state;
#[cfg(test)]
mod tests;
mod verify;

pub use call::{Call, Instance, RecordedBallot};
pub use durable::{Log, LogSettings, Synced, Syncing};
pub use error::LogError;
pub use file_header::Identity;
pub use verify::{FileReport, Report, Tail, verify};
