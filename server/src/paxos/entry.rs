//! What omnipaxos orders: bytes.
//!
//! Invariant: no snapshots inside omnipaxos, by type. Its delta snapshots lose entries: when a
//! follower rejoins, the crate raises the decided index before it reads the entries that belong to
//! the follower's own part of the snapshot. State travels outside of omnipaxos instead.

use bytes::Bytes;
use omnipaxos::storage::{Entry, NoSnapshot};
use serde::{Deserialize, Serialize};

/// The most bytes that one entry may have, so that it fits into a frame with room to spare.
pub const MAX_ENTRY_BYTES: usize = 16 << 20;

/// One entry of the log: a batch of commands, opaque here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry(pub Bytes);

impl Entry for LogEntry {
    type Snapshot = NoSnapshot;
}
