//! A message from one node to another, with everything that tells whether it belongs there.
//!
//! omnipaxos itself tags Paxos messages with neither group nor configuration, and its indices
//! restart with each configuration: a message without these tags could be taken for another's.

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::HeartbeatMsg;
use omnipaxos::messages::sequence_paxos::PaxosMsg;

use super::entry::LogEntry;

/// A message of one node to another.
#[derive(Clone, Debug)]
pub struct PeerPaxosMessage {
    /// The group it is about.
    pub group: u32,
    /// The configuration of the group.
    pub configuration: u32,
    pub(crate) message: Message<LogEntry>,
}

impl PeerPaxosMessage {
    /// The replica that sent it.
    pub fn from(&self) -> u64 {
        self.message.get_sender()
    }

    /// The replica that it is for.
    pub fn to(&self) -> u64 {
        self.message.get_receiver()
    }

    /// The ballot and how much was accepted under it, of a follower's word about that.
    pub(crate) fn accepted(&self) -> Option<(Ballot, u64)> {
        let Message::SequencePaxos(message) = &self.message else { return None };
        let PaxosMsg::Accepted(accepted) = &message.msg else { return None };
        Some((accepted.n, accepted.accepted_idx as u64))
    }

    /// What it is.
    pub fn kind(&self) -> MessageKind {
        kind(&self.message)
    }
}

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are those of the protocol")]
pub enum MessageKind {
    PrepareRequest,
    Prepare,
    Promise,
    AcceptSync,
    AcceptDecide,
    Accepted,
    NotAccepted,
    Decide,
    ProposalForward,
    Compaction,
    AcceptStopSign,
    ForwardStopSign,
    HeartbeatRequest,
    HeartbeatReply,
}

impl MessageKind {
    /// True for what may leave before the sender's own log is durable: a leader asks others to
    /// accept or tells them what is decided, and promises nothing about its own disk.
    pub fn is_early(self) -> bool {
        matches!(self, Self::AcceptSync | Self::AcceptDecide | Self::Decide)
    }

    /// True for the two kinds of the leader election, which are not ordered with the others.
    pub fn is_heartbeat(self) -> bool {
        matches!(self, Self::HeartbeatRequest | Self::HeartbeatReply)
    }
}

pub(crate) fn kind(message: &Message<LogEntry>) -> MessageKind {
    match message {
        Message::SequencePaxos(message) => match &message.msg {
            PaxosMsg::PrepareReq(_) => MessageKind::PrepareRequest,
            PaxosMsg::Prepare(_) => MessageKind::Prepare,
            PaxosMsg::Promise(_) => MessageKind::Promise,
            PaxosMsg::AcceptSync(_) => MessageKind::AcceptSync,
            PaxosMsg::AcceptDecide(_) => MessageKind::AcceptDecide,
            PaxosMsg::Accepted(_) => MessageKind::Accepted,
            PaxosMsg::NotAccepted(_) => MessageKind::NotAccepted,
            PaxosMsg::Decide(_) => MessageKind::Decide,
            PaxosMsg::ProposalForward(_) => MessageKind::ProposalForward,
            PaxosMsg::Compaction(_) => MessageKind::Compaction,
            PaxosMsg::AcceptStopSign(_) => MessageKind::AcceptStopSign,
            PaxosMsg::ForwardStopSign(_) => MessageKind::ForwardStopSign,
        },
        Message::BLE(message) => match &message.msg {
            HeartbeatMsg::Request(_) => MessageKind::HeartbeatRequest,
            HeartbeatMsg::Reply(_) => MessageKind::HeartbeatReply,
        },
    }
}
