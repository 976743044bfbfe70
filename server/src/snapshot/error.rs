//! What can go wrong with a snapshot, said to the operator.

use gesmas_machine::ImageError;

use crate::log::repo::RepoError;

/// Why a snapshot cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The folder or the disk failed.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The file is not what was written.
    #[error("snapshot {index} is damaged at byte {offset}: {reason}")]
    Damaged {
        /// Index in its name.
        index: u64,
        /// Where the damage is.
        offset: u64,
        /// What is wrong.
        reason: &'static str,
    },
    /// It was written by another version of the format.
    #[error(
        "snapshot {index} has format version {found}, this program reads version {known}; run the \
         version of the program that wrote it"
    )]
    UnknownVersion {
        /// Index in its name.
        index: u64,
        /// The version it has.
        found: u32,
        /// The version that this program knows.
        known: u32,
    },
    /// It is of another cluster or configuration.
    #[error(
        "snapshot {index} belongs to cluster {found:032x}, not to cluster {cluster:032x}, or to \
         another configuration of it; check the configured folder"
    )]
    WrongOwner {
        /// Index in its name.
        index: u64,
        /// The cluster in the file.
        found: u128,
        /// The cluster that was expected.
        cluster: u128,
    },
    /// The state in it is refused.
    #[error("snapshot {index}: {error}")]
    Image {
        /// Index in its name.
        index: u64,
        /// Why.
        error: ImageError,
    },
}

impl SnapshotError {
    /// Whether its bytes are not those that were written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        use ImageError::{Damaged, Torn};
        matches!(self, Self::Damaged { .. } | Self::Image { error: Torn | Damaged { .. }, .. })
    }

    /// Whether it says nothing about the snapshot: there is no room, or no file can be opened, just now.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(self, Self::Repo(error) if error.passes())
    }
}
