//! Snapshots on disk: the state of the kernel at an index of the log, in one file each.
//!
//! The newest good snapshot and the log after it are what a replica restarts from; the one before it
//! is kept for the case that the newest is damaged. A follower that was away for longer than the
//! leader's log reaches gets a file in pieces.
//! Invariants: a file has its name only when it is whole and durable; what is read was checked, to
//! the last byte, before anybody relies on it; equal states have equal files.
//! Not here: when snapshots are taken and fetched (`replica/snapshots.rs`), and what is in a state
//! (the machine).

mod error;
mod file;
mod head;
mod inspect;
pub mod repo;
mod store;
#[cfg(test)]
mod tests;
mod worker;

pub use self::{
    error::SnapshotError,
    head::{Head, Owner},
    inspect::{Inspected, inspect},
    store::{Loaded, PIECE_BYTES, Store},
    worker::{Done, Evidence, Job, OwnDivergence, Reader, Worker},
};
