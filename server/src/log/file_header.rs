//! The first bytes of every log file: whose it is, which one it is, how to read it.
//!
//! Layout, little-endian, 64 bytes: magic (8), format version (4), header checksum (4),
//! cluster (16), replica (8), file number (8), file size (8), salt (8).
//! The checksum is CRC32C over the other 60 bytes.
//! Invariant: a header that decodes is intact and of the one version known here.

use super::error::LogError;

/// Bytes of a header; records begin here.
pub(crate) const HEADER_BYTES: u64 = 64;
/// The version of everything in a log file.
pub(crate) const FORMAT_VERSION: u32 = 3;
const MAGIC: [u8; 8] = *b"gesmaslg";

/// Whose log it is. A log is never opened under another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster, drawn once when it is founded.
    pub cluster: u128,
    /// The replica within the cluster.
    pub replica: u64,
}

/// The header of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) identity: Identity,
    /// The number of the file, from 1.
    pub(crate) number: u64,
    /// Its size in bytes, header included.
    pub(crate) size: u64,
    /// Mixed into every checksum of the file, so that nobody who merely knows the format can put
    /// bytes into an entry that pass for a record.
    pub(crate) salt: u64,
}

impl FileHeader {
    /// The bytes of the header.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.identity.cluster.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.identity.replica.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.number.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.size.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.salt.to_le_bytes());
        let sum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the header of the file that is stored under `number`.
    pub(crate) fn decode(bytes: &[u8], number: u64) -> Result<Self, LogError> {
        let corrupt = |reason| LogError::HeaderCorrupt { file: number, reason };
        let Some(bytes) = bytes.first_chunk::<{ HEADER_BYTES as usize }>() else {
            return Err(corrupt("the file is shorter than a header"));
        };
        if bytes[0..8] != MAGIC {
            return Err(corrupt("it does not begin as a log file does"));
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        if half(12) != checksum(bytes) {
            return Err(corrupt("its checksum does not match"));
        }
        if half(8) != FORMAT_VERSION {
            return Err(LogError::UnknownVersion {
                file: number,
                found: half(8),
                known: FORMAT_VERSION,
            });
        }
        let cluster = u128::from_le_bytes(bytes[16..32].try_into().expect("16 bytes"));
        let header = Self {
            identity: Identity { cluster, replica: word(32) },
            number: word(40),
            size: word(48),
            salt: word(56),
        };
        if header.number != number {
            return Err(corrupt("it is the header of another file"));
        }
        Ok(header)
    }

    /// Refuses the header of another replica or cluster.
    pub(crate) fn check_owner(&self, identity: Identity) -> Result<(), LogError> {
        if self.identity == identity {
            return Ok(());
        }
        Err(LogError::WrongOwner {
            file: self.number,
            found_cluster: self.identity.cluster,
            found_replica: self.identity.replica,
            cluster: identity.cluster,
            replica: identity.replica,
        })
    }

    /// What every checksum of this file starts from.
    pub(crate) fn checksum_seed(&self) -> u32 {
        let mut bytes = [0; 40];
        bytes[0..16].copy_from_slice(&self.identity.cluster.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.identity.replica.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.salt.to_le_bytes());
        crc32c::crc32c(&bytes)
    }
}

fn checksum(bytes: &[u8; HEADER_BYTES as usize]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}
