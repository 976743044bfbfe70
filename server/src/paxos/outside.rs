//! Whether this replica is outside: it has promised a higher ballot than that of the leader whom its
//! peers follow.
//!
//! That happens when it wanted to lead and lost power before anybody heard of it. It then refuses
//! the leader's messages, and omnipaxos' election lets nobody take over while its neighbours are
//! content. The way back is to take the lead, with a ballot above its promise.
//!
//! Invariants: it is said only after many rounds without a break in which a majority was heard and
//! somebody was content with a lower leader, and once in so many rounds; how many differs from
//! replica to replica, so that two of them do not depose each other.
//! Not here: taking the lead.

use std::collections::BTreeMap;

use omnipaxos::ballot_leader_election::Ballot as PaxosBallot;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::HeartbeatMsg;

use super::config::NodeConfig;
use super::message::PeerPaxosMessage;

/// Rounds of heartbeats that it must last.
const ROUNDS: u64 = 20;
/// Rounds more for each member with a lower id.
const MORE_ROUNDS: u64 = 4;
/// Rounds after which what was heard no longer counts.
const RECENT_ROUNDS: u64 = 3;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Outside {
    /// Peers besides this replica that make a majority with it.
    peers: usize,
    /// Ticks that it must last.
    patience: u64,
    /// Ticks for which what was heard counts.
    recent: u64,
    now: u64,
    /// Since when it lasts.
    since: u64,
    /// When heartbeats of peers came last.
    heard: BTreeMap<u64, u64>,
    /// When a peer was last content with a lower leader.
    content: Option<u64>,
}

impl Outside {
    pub(crate) fn new(config: &NodeConfig) -> Self {
        let lower = config.members.iter().filter(|member| **member < config.replica).count();
        Self {
            peers: config.members.len() / 2,
            patience: config.election_ticks * (ROUNDS + MORE_ROUNDS * lower as u64),
            recent: config.election_ticks * RECENT_ROUNDS,
            now: 0,
            since: 0,
            heard: BTreeMap::new(),
            content: None,
        }
    }

    /// Looks at a message of a peer.
    pub(crate) fn hear(&mut self, message: &PeerPaxosMessage, promise: PaxosBallot) {
        let Message::BLE(message) = &message.message else { return };
        let HeartbeatMsg::Reply(reply) = &message.msg else { return };
        self.heard.insert(message.from, self.now);
        if reply.happy && reply.leader < promise {
            self.content = Some(self.now);
        }
    }

    /// Lets a tick pass. True when this replica is outside and has been for long enough.
    pub(crate) fn tick(&mut self, accepting: bool) -> bool {
        self.now += 1;
        let earliest = self.now.saturating_sub(self.recent);
        let heard = self.heard.values().filter(|tick| **tick >= earliest).count();
        let content = self.content.is_some_and(|tick| tick >= earliest);
        if accepting || heard < self.peers || !content {
            self.since = self.now;
        }
        let lasts = self.now - self.since >= self.patience;
        if lasts {
            self.since = self.now;
        }
        lasts
    }
}
