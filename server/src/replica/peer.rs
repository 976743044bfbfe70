//! What replicas say to each other besides Paxos, as bytes.
//!
//! Layout: version (1), group (4), configuration (4), from (8), to (8), little-endian, then the
//! message in bincode under a limit. The body of a peer frame begins with a byte that tells these
//! messages from those of Paxos.
//! Invariants: what decodes used every byte; the types have no recursion; a message for another
//! group, configuration or replica is refused.
//! Not here: length and checksum of frames, which the shell adds.

use bytes::{Buf as _, Bytes};
use gesmas_machine::{Ballot, Command, RecordName, SessionId, Step, Sums, Time};
use serde::{Deserialize, Serialize};

use crate::paxos::{self, Node, PeerPaxosMessage};

const VERSION: u8 = 1;
const PAXOS: u8 = 0;
const REPLICA: u8 = 1;
/// Paxos messages without entries are shorter.
const SHORT_BYTES: usize = 256;
const HEADER_BYTES: usize = 1 + 4 + 4 + 8 + 8;
/// Bytes that the decoding of one message may claim.
const DECODE_LIMIT: usize = 64 << 20;

/// A message from one replica to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PeerMessage {
    /// The sender's log is new, and its disk has this number.
    Introduce {
        /// The disk.
        disk: u128,
    },
    /// The sender knows the receiver with this disk from now on.
    Consent {
        /// The disk, as introduced.
        disk: u128,
    },
    /// The sender knows the receiver with another disk.
    Stranger {
        /// The disk, as introduced.
        disk: u128,
    },
    /// Commands for the leader to order.
    Forward(Vec<Command>),
    /// Sessions whose clients were heard of, for the leader.
    Alive(Vec<SessionId>),
    /// What the sender's clocks say.
    Clock {
        /// Its time, if it leads.
        leader: Option<Time>,
        /// Its wall clock.
        wall: u64,
    },
    /// The receiver lacks entries that the sender's log no longer has; the sender has a snapshot.
    Behind {
        /// Where the snapshot ends.
        index: u64,
    },
    /// Asks for a snapshot from which a log that begins at `first` goes on.
    AskSnapshot {
        /// Index of the asker's first entry.
        first: u64,
    },
    /// The sender has no such snapshot any more.
    Gone {
        /// Where it ended.
        index: u64,
    },
    /// Asks for a piece of a snapshot.
    AskPiece {
        /// Which snapshot.
        index: u64,
        /// From which byte of its file on.
        offset: u64,
    },
    /// A piece of a snapshot.
    Piece {
        /// Of which snapshot.
        index: u64,
        /// From which byte of its file on.
        offset: u64,
        /// Length of the file.
        total: u64,
        /// The piece.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Asks for the sums of the records that the receiver had after a step.
    AskSums {
        /// The step.
        step: Step,
        /// Those that come after this one.
        after: Option<RecordName>,
    },
    /// The answer.
    Sums {
        /// As asked.
        step: Step,
        /// As asked.
        after: Option<RecordName>,
        /// The next of them; none at the end.
        sums: Sums,
    },
    /// The sender does not have its state of that step any more.
    NoSums {
        /// As asked.
        step: Step,
    },
    /// Asks the leader how far a read must wait.
    AskReadPoint {
        /// Chosen by the asker.
        round: u64,
    },
    /// The answer: everything acknowledged before the question lies below `index`.
    ReadPoint {
        /// As asked.
        round: u64,
        /// One past the last entry to wait for.
        index: u64,
    },
    /// Asks whether the sender's ballot is still the one promised.
    AskConfirm {
        /// The sender's ballot.
        ballot: Ballot,
        /// Chosen by the sender.
        number: u64,
    },
    /// It is.
    Confirmed {
        /// As asked.
        ballot: Ballot,
        /// As asked.
        number: u64,
    },
}

/// A decoded frame of a peer.
pub(super) enum PeerFrame {
    Paxos(PeerPaxosMessage),
    Replica(PeerMessage),
}

/// Why a frame of a peer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It ends too early.
    #[error("the frame is shorter than it says")]
    Short,
    /// It is of an unknown kind or version.
    #[error("the frame has the unknown kind or version {0}")]
    Kind(u8),
    /// It is for another group, configuration or replica.
    #[error("the frame is not for this replica: {0}")]
    Misdirected(String),
    /// It does not decode.
    #[error("the frame is malformed: {0}")]
    Malformed(String),
    /// Its Paxos message does not decode.
    #[error(transparent)]
    Paxos(#[from] paxos::DecodeError),
}

/// The frame body of a Paxos message.
pub(super) fn encode_paxos(message: PeerPaxosMessage) -> Result<Bytes, paxos::EncodeError> {
    let mut body = vec![PAXOS];
    paxos::encode(message, &mut body)?;
    Ok(body.into())
}

/// The frame body of a message.
pub(super) fn encode(node: &Node, to: u64, message: &PeerMessage) -> Bytes {
    let config = node.config();
    let mut body = vec![REPLICA, VERSION];
    body.extend_from_slice(&config.group.to_le_bytes());
    body.extend_from_slice(&config.configuration.to_le_bytes());
    body.extend_from_slice(&config.replica.to_le_bytes());
    body.extend_from_slice(&to.to_le_bytes());
    let encoded = bincode::serde::encode_to_vec(message, bincode::config::standard());
    body.extend_from_slice(&encoded.expect("peer messages have encodings"));
    body.into()
}

/// Decodes the body of a frame that `from` sent.
pub(super) fn decode(node: &Node, from: u64, mut body: Bytes) -> Result<PeerFrame, PeerError> {
    match body.first().copied() {
        Some(PAXOS) => {
            body.advance(1);
            Ok(PeerFrame::Paxos(paxos::decode(body)?))
        }
        Some(REPLICA) => {
            body.advance(1);
            decode_message(node, from, body).map(PeerFrame::Replica)
        }
        Some(kind) => Err(PeerError::Kind(kind)),
        None => Err(PeerError::Short),
    }
}

/// The Paxos message of a body, if it is a short one: then looking at it costs nothing that counts, should
/// it be put back.
pub(super) fn decode_short_paxos(body: &Bytes) -> Option<PeerPaxosMessage> {
    let is_short = body.len() <= SHORT_BYTES && body.first() == Some(&PAXOS);
    is_short.then(|| paxos::decode(body.slice(1..)).ok())?
}

fn decode_message(node: &Node, from: u64, mut body: Bytes) -> Result<PeerMessage, PeerError> {
    if body.len() < HEADER_BYTES {
        return Err(PeerError::Short);
    }
    let version = body.get_u8();
    if version != VERSION {
        return Err(PeerError::Kind(version));
    }
    let config = node.config();
    let (group, configuration) = (body.get_u32_le(), body.get_u32_le());
    let (sender, receiver) = (body.get_u64_le(), body.get_u64_le());
    let expected = (config.group, config.configuration, from, config.replica);
    if (group, configuration, sender, receiver) != expected {
        return Err(PeerError::Misdirected(format!(
            "group {group}, configuration {configuration}, from {sender} to {receiver}"
        )));
    }
    let config = bincode::config::standard().with_limit::<DECODE_LIMIT>();
    let (message, used) = bincode::serde::decode_from_slice(&body, config)
        .map_err(|error| PeerError::Malformed(error.to_string()))?;
    if used == body.len() {
        Ok(message)
    } else {
        Err(PeerError::Malformed("bytes follow the message".into()))
    }
}
