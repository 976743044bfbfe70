//! Snapshots and evidence, looked at outside of a replica's folder.
//!
//! Not here: what may be restored from, which [`super::Store`] decides.

use gesmas_machine::{ImageError, Snapshot};

use super::{Head, SnapshotError, file};

/// A file of a snapshot, or of the evidence of a divergence.
#[derive(Debug)]
pub struct Inspected {
    /// What it is of. The index of evidence is its step.
    pub head: Head,
    /// The state.
    pub snapshot: Snapshot,
    /// What does not fit together in the state, if something does not.
    pub unsound: Option<ImageError>,
}

/// Reads the bytes of a file. A state whose records contradict each other is read all the same.
///
/// # Errors
/// When the bytes are not those that were written, or of another version.
pub fn inspect(bytes: &[u8]) -> Result<Inspected, SnapshotError> {
    let index = Head::claimed_index(bytes);
    let (head, image) = file::decode(bytes, index)?;
    let read = Snapshot::read_unsound(&image);
    let snapshot = read.map_err(|error| SnapshotError::Image { index, error })?;
    let unsound = snapshot.check().err();
    Ok(Inspected { head, snapshot, unsound })
}
