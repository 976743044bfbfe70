//! What a message must satisfy before omnipaxos sees it.
//!
//! omnipaxos trusts its peers: an unknown sender makes a leader index past its tables, an index
//! past the log becomes a decided index without entries. Here every address, ballot and index that
//! it relies on is checked against what an honest peer can send; anything else is a typed fault of
//! that peer, and the node is unchanged.
//!
//! Not here: a peer that lies plausibly. Replicas trust each other's votes; Paxos does.

use omnipaxos::ballot_leader_election::Ballot as PaxosBallot;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::{BLEMessage, HeartbeatMsg};
use omnipaxos::messages::sequence_paxos::{AcceptSync, PaxosMessage, PaxosMsg, Promise};
use omnipaxos::util::LogSync;

use super::config::NodeConfig;
use super::entry::LogEntry;
use super::message::{MessageKind, PeerPaxosMessage};

/// Ballot numbers stay below this, so that the next one can always be drawn.
const MAX_BALLOT_NUMBER: u32 = 1 << 31;
/// Elections that a replica may have missed while it did not run: one a second, for twelve days.
const MISSED_ELECTIONS: u32 = 1 << 20;

/// The greatest ballot number that an honest peer can have by now. One that is far beyond what this
/// replica knows comes from a peer that is broken; were it taken, soon there would be no number left for
/// any election, and no leader ever again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BallotBound {
    /// The greatest number that may have been drawn when this replica began.
    begin: u32,
    /// Ticks since.
    ticks: u64,
}

impl BallotBound {
    /// For a replica that has promised this.
    pub(crate) fn new(promise: PaxosBallot) -> Self {
        Self { begin: promise.n.saturating_add(MISSED_ELECTIONS), ticks: 0 }
    }

    /// A tick passes.
    pub(crate) fn tick(&mut self) {
        self.ticks = self.ticks.saturating_add(1);
    }

    /// Each member draws one number at most in a round of heartbeats.
    fn greatest(&self, config: &NodeConfig) -> u32 {
        let rounds = self.ticks / config.election_ticks;
        let drawn = rounds.saturating_mul(config.members.len() as u64);
        let drawn = u32::try_from(drawn).unwrap_or(u32::MAX);
        self.begin.saturating_add(drawn).min(MAX_BALLOT_NUMBER - 1)
    }
}

/// What is wrong with a message of a peer. It was ignored; the connection should be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFault {
    /// It is of another group or configuration.
    #[error(
        "replica {from} sent a message of group {group} in configuration {configuration}, this is \
         another one"
    )]
    WrongInstance {
        /// The sender.
        from: u64,
        /// The group of the message.
        group: u32,
        /// The configuration of the message.
        configuration: u32,
    },
    /// The sender is not a member.
    #[error("replica {from} is not a member of this configuration")]
    UnknownSender {
        /// The sender.
        from: u64,
    },
    /// It is for another replica.
    #[error("replica {from} sent a message that is for replica {to}")]
    WrongReceiver {
        /// The sender.
        from: u64,
        /// The receiver it names.
        to: u64,
    },
    /// Replicas of this program never send that.
    #[error("replica {from} sent a message of the kind {kind:?}, which replicas do not send")]
    RefusedKind {
        /// The sender.
        from: u64,
        /// The kind of the message.
        kind: MessageKind,
    },
    /// It contradicts itself or what this replica knows.
    #[error("replica {from} sent an impossible message of the kind {kind:?}: {reason}")]
    Impossible {
        /// The sender.
        from: u64,
        /// The kind of the message.
        kind: MessageKind,
        /// What is impossible.
        reason: &'static str,
    },
}

/// What a node knows of itself when a message arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Knowledge {
    pub(crate) promise: PaxosBallot,
    pub(crate) accepted: usize,
    pub(crate) decided: usize,
    /// In the accept phase, as leader or follower.
    pub(crate) accepting: bool,
    /// How far ballots can have come.
    pub(crate) bound: BallotBound,
}

/// Checks whether the message is of this instance, from a member, and to this replica.
pub(crate) fn check_address(
    config: &NodeConfig,
    message: &PeerPaxosMessage,
) -> Result<(), PeerFault> {
    let from = message.from();
    if message.group != config.group || message.configuration != config.configuration {
        return Err(PeerFault::WrongInstance {
            from,
            group: message.group,
            configuration: message.configuration,
        });
    }
    if from == config.replica || !config.members.contains(&from) {
        return Err(PeerFault::UnknownSender { from });
    }
    if message.to() != config.replica {
        return Err(PeerFault::WrongReceiver { from, to: message.to() });
    }
    Ok(())
}

/// Refuses kinds that no replica of this program sends: nothing is forwarded or compacted through
/// omnipaxos, and reconfiguration is not offered.
pub(crate) fn check_kind(message: &PeerPaxosMessage) -> Result<(), PeerFault> {
    let kind = message.kind();
    match kind {
        MessageKind::ProposalForward
        | MessageKind::Compaction
        | MessageKind::AcceptStopSign
        | MessageKind::ForwardStopSign => {
            Err(PeerFault::RefusedKind { from: message.from(), kind })
        }
        _ => Ok(()),
    }
}

/// Checks ballots and indices.
pub(crate) fn check_content(
    config: &NodeConfig,
    message: &PeerPaxosMessage,
    knowledge: &Knowledge,
) -> Result<(), PeerFault> {
    let checked = match &message.message {
        Message::SequencePaxos(message) => check_paxos(config, message, knowledge),
        Message::BLE(message) => check_heartbeat(config, message, &knowledge.bound),
    };
    checked.map_err(|reason| PeerFault::Impossible {
        from: message.from(),
        kind: message.kind(),
        reason,
    })
}

/// Whether a leader sends its log anew to a follower that accepts from it already.
pub(crate) fn is_second_sync(message: &PeerPaxosMessage, knowledge: &Knowledge) -> bool {
    let Message::SequencePaxos(message) = &message.message else { return false };
    let PaxosMsg::AcceptSync(sync) = &message.msg else { return false };
    knowledge.accepting && sync.n == knowledge.promise
}

/// True for entries that do not continue this log, in a message that would be used if its receiver
/// were preparing. An honest peer's is late: its receiver has begun to recover meanwhile, and would
/// not use it. So it is dropped and nobody is blamed; whoever waits for it asks again.
pub(crate) fn is_out_of_place(message: &PeerPaxosMessage, knowledge: &Knowledge) -> bool {
    let Message::SequencePaxos(message) = &message.message else { return false };
    let (ballot, sync) = match &message.msg {
        PaxosMsg::AcceptSync(sync) => (sync.n, &sync.log_sync),
        PaxosMsg::Promise(Promise { n, log_sync: Some(sync), .. }) => (*n, sync),
        _ => return false,
    };
    let may_be_used = ballot == knowledge.promise && !knowledge.accepting;
    may_be_used && !(knowledge.decided..=knowledge.accepted).contains(&sync.sync_idx)
}

/// True for messages whose sender would be sent entries from before `first`, which this log no
/// longer has: a leader that prepares, or a follower that promises, with a lower decided index.
/// That may be more than needed, since such a peer may have the entries and not know that they are
/// decided; a snapshot is good for it all the same.
pub(crate) fn needs_entries_before(message: &PeerPaxosMessage, first: u64) -> bool {
    let Message::SequencePaxos(message) = &message.message else { return false };
    match &message.msg {
        PaxosMsg::Prepare(prepare) => (prepare.decided_idx as u64) < first,
        PaxosMsg::Promise(promise) => (promise.decided_idx as u64) < first,
        _ => false,
    }
}

fn check_paxos(
    config: &NodeConfig,
    message: &PaxosMessage<LogEntry>,
    knowledge: &Knowledge,
) -> Result<(), &'static str> {
    let bound = &knowledge.bound;
    let leader_is_sender = |ballot: PaxosBallot| {
        check_ballot(config, ballot, bound)?;
        require(ballot.pid == message.from, "the ballot is not the sender's")
    };
    match &message.msg {
        PaxosMsg::PrepareReq(request) => check_ballot_or_none(config, request.n, bound),
        PaxosMsg::Prepare(prepare) => {
            leader_is_sender(prepare.n)?;
            check_ballot_or_none(config, prepare.n_accepted, bound)
        }
        PaxosMsg::Promise(promise) => check_promise(config, promise, bound),
        PaxosMsg::AcceptSync(sync) => {
            leader_is_sender(sync.n)?;
            check_accept_sync(sync)
        }
        PaxosMsg::AcceptDecide(accept) => leader_is_sender(accept.n),
        PaxosMsg::Decide(decide) => leader_is_sender(decide.n),
        PaxosMsg::Accepted(accepted) => {
            check_ballot(config, accepted.n, bound)?;
            // A leader that crashed before its sync has lost what a follower may have accepted
            // already. It leads no more, and omnipaxos does not look at the message then.
            let counts = accepted.n == knowledge.promise && knowledge.accepting;
            require(
                !counts || accepted.accepted_idx <= knowledge.accepted,
                "it accepted more than this leader has",
            )
        }
        PaxosMsg::NotAccepted(refusal) => check_ballot(config, refusal.n, bound),
        // Refused by kind; what they carry is looked at no further when that check is off.
        PaxosMsg::ProposalForward(_)
        | PaxosMsg::Compaction(_)
        | PaxosMsg::AcceptStopSign(_)
        | PaxosMsg::ForwardStopSign(_) => Ok(()),
    }
}

fn check_promise(
    config: &NodeConfig,
    promise: &Promise<LogEntry>,
    bound: &BallotBound,
) -> Result<(), &'static str> {
    check_ballot(config, promise.n, bound)?;
    check_ballot_or_none(config, promise.n_accepted, bound)?;
    require(promise.decided_idx <= promise.accepted_idx, "more is decided than accepted")?;
    promise.log_sync.as_ref().map_or(Ok(()), check_log_sync)
}

fn check_accept_sync(sync: &AcceptSync<LogEntry>) -> Result<(), &'static str> {
    check_log_sync(&sync.log_sync)?;
    require(
        sync.decided_idx <= sync.log_sync.sync_idx + sync.log_sync.suffix.len(),
        "more is decided than the leader has",
    )
}

fn check_log_sync(sync: &LogSync<LogEntry>) -> Result<(), &'static str> {
    require(sync.decided_snapshot.is_none(), "it carries a snapshot")?;
    require(sync.stopsign.is_none(), "it ends the configuration")?;
    require(sync.sync_idx.checked_add(sync.suffix.len()).is_some(), "its indices overflow")
}

fn check_heartbeat(
    config: &NodeConfig,
    message: &BLEMessage,
    bound: &BallotBound,
) -> Result<(), &'static str> {
    match &message.msg {
        HeartbeatMsg::Request(_) => Ok(()),
        HeartbeatMsg::Reply(reply) => {
            check_ballot(config, reply.ballot, bound)?;
            check_ballot(config, reply.leader, bound)?;
            require(reply.ballot.pid == message.from, "the ballot is not the sender's")
        }
    }
}

/// The ballot that stands for none is the default one, of replica 0.
fn check_ballot_or_none(
    config: &NodeConfig,
    ballot: PaxosBallot,
    bound: &BallotBound,
) -> Result<(), &'static str> {
    if ballot == PaxosBallot::default() { Ok(()) } else { check_ballot(config, ballot, bound) }
}

fn check_ballot(
    config: &NodeConfig,
    ballot: PaxosBallot,
    bound: &BallotBound,
) -> Result<(), &'static str> {
    require(ballot.config_id == config.configuration, "the ballot is of another configuration")?;
    require(config.members.contains(&ballot.pid), "the ballot is of no member")?;
    require(
        ballot.n <= bound.greatest(config),
        "the ballot's number is beyond what elections can have used",
    )
}

fn require(holds: bool, reason: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(reason) }
}
