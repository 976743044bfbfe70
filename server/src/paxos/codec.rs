//! Messages between nodes as bytes of a frame's body.
//!
//! Layout, little-endian: version (1), kind (1), group (4), configuration (4), from (4), to (4),
//! length of the head (4), the head, number of entries (4), then each entry as length (4) and
//! bytes. The head is the message without its entries, in bincode under a limit. Entries stay out
//! of it so that a received one is a slice of the frame and not a copy.
//!
//! Invariants: what decodes used every byte; nothing is allocated on the word of a length; the
//! types have no recursion.
//! Not here: length, checksum and version of the frame itself, and whether the message belongs to
//! the receiver, which the node checks.
//!
//! The message that brings a follower up to date carries all entries it lacks. It is refused here
//! when it exceeds [`MAX_FRAME_BYTES`]; omnipaxos cannot split it.

use bytes::{Buf as _, Bytes};
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::{BLEMessage, HeartbeatMsg};
use omnipaxos::messages::sequence_paxos::{PaxosMessage, PaxosMsg};

use super::entry::{LogEntry, MAX_ENTRY_BYTES};
use super::message::{MessageKind, PeerPaxosMessage};

/// The most bytes of one encoded message.
pub const MAX_FRAME_BYTES: usize = 64 << 20;

const VERSION: u8 = 1;
const PAXOS: u8 = 1;
const HEARTBEAT: u8 = 2;
/// Version, kind, and five numbers.
const FIXED_BYTES: usize = 2 + 5 * 4;
/// The most bytes of a head: some ballots and indices, or a stop sign with its members.
const HEAD_LIMIT: usize = 64 << 10;

/// Why a message cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// It is larger than a frame.
    #[error(
        "the {kind:?} for replica {to} has {bytes} bytes, a frame has at most {MAX_FRAME_BYTES}; \
         the replica has to catch up by a snapshot"
    )]
    TooLarge {
        /// The kind of the message.
        kind: MessageKind,
        /// Whom it is for.
        to: u64,
        /// The bytes of its entries.
        bytes: usize,
    },
}

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is longer than any message.
    #[error("a message has at most {MAX_FRAME_BYTES} bytes, this one has {bytes}")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// It ends too early.
    #[error("the message is shorter than it says")]
    Short,
    /// It goes on after its end.
    #[error("{bytes} bytes follow the end of the message")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// It is of another version.
    #[error("the message has version {found}, this program knows {VERSION}")]
    Version {
        /// The version it has.
        found: u8,
    },
    /// It is of an unknown kind.
    #[error("the message is of the unknown kind {found}")]
    Kind {
        /// The kind it has.
        found: u8,
    },
    /// Its head is not one.
    #[error("the head of the message cannot be read: {reason}")]
    Head {
        /// What the decoder says.
        reason: String,
    },
    /// It has entries where there can be none, or too large ones.
    #[error("the entries of the message are not possible: {reason}")]
    Entries {
        /// What is wrong.
        reason: &'static str,
    },
}

/// Appends the bytes of a message to `out`, which is unchanged if it cannot be sent.
pub fn encode(mut message: PeerPaxosMessage, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let entries = entries_mut(&mut message.message).map(std::mem::take).unwrap_or_default();
    let bytes = entries.iter().map(|entry| entry.0.len() + 4).sum::<usize>();
    if bytes > MAX_FRAME_BYTES - HEAD_LIMIT - 2 * FIXED_BYTES {
        return Err(EncodeError::TooLarge { kind: message.kind(), to: message.to(), bytes });
    }
    let config = bincode::config::standard().with_limit::<HEAD_LIMIT>();
    let (from, to) = (message.from(), message.to());
    let (kind, head) = match &message.message {
        Message::SequencePaxos(inner) => (PAXOS, bincode::serde::encode_to_vec(&inner.msg, config)),
        Message::BLE(inner) => (HEARTBEAT, bincode::serde::encode_to_vec(&inner.msg, config)),
    };
    let head = head.expect("a head of this program is small");
    out.reserve(FIXED_BYTES + head.len() + 4 + bytes);
    out.extend_from_slice(&[VERSION, kind]);
    for number in [message.group, message.configuration, small(from), small(to), len32(head.len())]
    {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&head);
    out.extend_from_slice(&len32(entries.len()).to_le_bytes());
    for entry in entries {
        out.extend_from_slice(&len32(entry.0.len()).to_le_bytes());
        out.extend_from_slice(&entry.0);
    }
    Ok(())
}

/// Reads a message. Its entries share the memory of `frame`.
pub fn decode(mut frame: Bytes) -> Result<PeerPaxosMessage, DecodeError> {
    if frame.len() > MAX_FRAME_BYTES {
        return Err(DecodeError::TooLarge { bytes: frame.len() });
    }
    if frame.len() < FIXED_BYTES {
        return Err(DecodeError::Short);
    }
    let version = frame.get_u8();
    if version != VERSION {
        return Err(DecodeError::Version { found: version });
    }
    let kind = frame.get_u8();
    let (group, configuration) = (frame.get_u32_le(), frame.get_u32_le());
    let (from, to) = (u64::from(frame.get_u32_le()), u64::from(frame.get_u32_le()));
    let head = take(&mut frame)?;
    let mut message = match kind {
        PAXOS => {
            let msg: PaxosMsg<LogEntry> = decode_head(&head)?;
            Message::SequencePaxos(PaxosMessage { from, to, msg })
        }
        HEARTBEAT => {
            let msg: HeartbeatMsg = decode_head(&head)?;
            Message::BLE(BLEMessage { from, to, msg })
        }
        found => return Err(DecodeError::Kind { found }),
    };
    let entries = decode_entries(&mut frame)?;
    match entries_mut(&mut message) {
        Some(slot) if slot.is_empty() => *slot = entries,
        Some(_) => return Err(DecodeError::Entries { reason: "some are in the head" }),
        None if entries.is_empty() => {}
        None => return Err(DecodeError::Entries { reason: "this kind has none" }),
    }
    if !frame.is_empty() {
        return Err(DecodeError::Trailing { bytes: frame.len() });
    }
    Ok(PeerPaxosMessage { group, configuration, message })
}

fn decode_entries(frame: &mut Bytes) -> Result<Vec<LogEntry>, DecodeError> {
    let count = take_u32(frame)? as usize;
    // Each entry has a length of four bytes, which bounds what a count may claim.
    if count > frame.len() / 4 {
        return Err(DecodeError::Short);
    }
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let entry = take(frame)?;
        if entry.len() > MAX_ENTRY_BYTES {
            return Err(DecodeError::Entries { reason: "one is too large" });
        }
        entries.push(LogEntry(entry));
    }
    Ok(entries)
}

fn decode_head<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let config = bincode::config::standard().with_limit::<HEAD_LIMIT>();
    let (head, length) = bincode::serde::decode_from_slice(bytes, config)
        .map_err(|error| DecodeError::Head { reason: error.to_string() })?;
    if length != bytes.len() {
        return Err(DecodeError::Trailing { bytes: bytes.len() - length });
    }
    Ok(head)
}

/// The entries of a message, for the kinds that can have any.
fn entries_mut(message: &mut Message<LogEntry>) -> Option<&mut Vec<LogEntry>> {
    let Message::SequencePaxos(message) = message else { return None };
    match &mut message.msg {
        PaxosMsg::AcceptDecide(accept) => Some(&mut accept.entries),
        PaxosMsg::AcceptSync(sync) => Some(&mut sync.log_sync.suffix),
        PaxosMsg::Promise(promise) => promise.log_sync.as_mut().map(|sync| &mut sync.suffix),
        PaxosMsg::ProposalForward(entries) => Some(entries),
        _ => None,
    }
}

fn take(frame: &mut Bytes) -> Result<Bytes, DecodeError> {
    let length = take_u32(frame)? as usize;
    if length > frame.len() {
        return Err(DecodeError::Short);
    }
    Ok(frame.split_to(length))
}

fn take_u32(frame: &mut Bytes) -> Result<u32, DecodeError> {
    frame.try_get_u32_le().map_err(|_| DecodeError::Short)
}

fn small(replica: u64) -> u32 {
    u32::try_from(replica).expect("ids of replicas are small")
}

fn len32(length: usize) -> u32 {
    u32::try_from(length).expect("bounded by a frame")
}
