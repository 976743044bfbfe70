//! The first bytes of a snapshot: whose state it is, and of when.
//!
//! Layout, little-endian, 96 bytes: magic (8), format version (4), checksum (4), cluster (16),
//! group (4), configuration (4), index (8), step (8), epoch (4), zeros (4), state hash (16), zeros
//! (16). The checksum is CRC32C over the other 92 bytes.
//! Invariant: a head that decodes is intact and of the one version known here.

use gesmas_machine::Snapshot;

use super::SnapshotError;

/// Bytes of a head.
pub(super) const HEAD_BYTES: usize = 96;
const FORMAT_VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"gesmassn";

/// Whose snapshots they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The cluster.
    pub cluster: u128,
    /// The group.
    pub group: u32,
    /// The configuration in which the index counts.
    pub configuration: u32,
}

/// What a snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whose it is.
    pub owner: Owner,
    /// One past the last entry of the log that is in it.
    pub index: u64,
    /// Steps so far.
    pub step: u64,
    /// Raised by a restore.
    pub epoch: u32,
    /// Hash of the state.
    pub state_hash: u128,
}

impl Head {
    /// The head of a state that has applied everything below `index`.
    #[must_use]
    pub fn new(owner: Owner, index: u64, snapshot: &Snapshot) -> Self {
        let (step, epoch) = (snapshot.step().0, snapshot.epoch());
        Self { owner, index, step, epoch, state_hash: snapshot.state_hash().0 }
    }

    pub(super) fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.owner.cluster.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.owner.group.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.owner.configuration.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.index.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.step.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[64..80].copy_from_slice(&self.state_hash.to_le_bytes());
        let sum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8], index: u64) -> Result<Self, SnapshotError> {
        let damaged = |reason| SnapshotError::Damaged { index, offset: 0, reason };
        let Some(bytes) = bytes.first_chunk::<HEAD_BYTES>() else {
            return Err(damaged("it is shorter than a head"));
        };
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let wide =
            |at: usize| u128::from_le_bytes(bytes[at..at + 16].try_into().expect("16 bytes"));
        if bytes[0..8] != MAGIC || half(12) != checksum(bytes) {
            return Err(damaged("its head is not one"));
        }
        if half(8) != FORMAT_VERSION {
            let (found, known) = (half(8), FORMAT_VERSION);
            return Err(SnapshotError::UnknownVersion { index, found, known });
        }
        let owner = Owner { cluster: wide(16), group: half(32), configuration: half(36) };
        let head =
            Self { owner, index: word(40), step: word(48), epoch: half(56), state_hash: wide(64) };
        if head.index == index { Ok(head) } else { Err(damaged("it is the head of another one")) }
    }

    /// The index that a head claims, right or not.
    pub(super) fn claimed_index(bytes: &[u8]) -> u64 {
        let field = bytes.get(40..48).and_then(<[u8]>::first_chunk);
        field.map_or(0, |field| u64::from_le_bytes(*field))
    }

    pub(super) fn check_owner(&self, owner: Owner) -> Result<(), SnapshotError> {
        if self.owner == owner {
            return Ok(());
        }
        let (found, cluster) = (self.owner.cluster, owner.cluster);
        Err(SnapshotError::WrongOwner { index: self.index, found, cluster })
    }
}

fn checksum(bytes: &[u8; HEAD_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}
