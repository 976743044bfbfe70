//! How a node is set up, and the switches for its workarounds.
//!
//! Invariant of a checked configuration: two or more members, distinct, with small ids from 1, this
//! replica among them.

use gesmas_machine::Planted;
use omnipaxos::{ClusterConfig, OmniPaxosConfig, ServerConfig};

use crate::log::Instance;

/// omnipaxos sizes its tables by the largest id, and has room for nothing past it: ids are small
/// and dense.
pub const MAX_REPLICA_ID: u64 = 64;

/// How a node is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// The group whose log is ordered.
    pub group: u32,
    /// The configuration of the group, from 1.
    pub configuration: u32,
    /// This replica.
    pub replica: u64,
    /// All replicas of the configuration, this one included.
    pub members: Vec<u64>,
    /// Ticks between heartbeats; a leader is missed after about three times as many.
    pub election_ticks: u64,
    /// Ticks after which an unanswered message is sent again.
    pub resend_ticks: u64,
    /// Prefers this replica as leader over those with a lower value.
    pub priority: u32,
    /// All on, except in tests of the workarounds themselves.
    pub workarounds: Workarounds,
    /// Nothing, except in tests of tests. What is planted here is planted in the whole replica.
    pub planted: Planted,
}

impl NodeConfig {
    /// The usual setting: heartbeats every tick, messages sent again after ten.
    pub fn new(group: u32, configuration: u32, replica: u64, members: Vec<u64>) -> Self {
        Self {
            group,
            configuration,
            replica,
            members,
            election_ticks: 1,
            resend_ticks: 10,
            priority: 0,
            workarounds: Workarounds::ALL,
            planted: Planted::default(),
        }
    }

    /// The instance of the log that the node keeps its state in.
    pub fn instance(&self) -> Instance {
        Instance { group: self.group, configuration: self.configuration }
    }

    /// Finds what omnipaxos would panic at, at once or later.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut sorted = self.members.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != self.members.len() || sorted.len() < 2 {
            return Err(ConfigError::Members { members: self.members.clone() });
        }
        if let Some(replica) = sorted.iter().find(|id| !(1..=MAX_REPLICA_ID).contains(*id)) {
            return Err(ConfigError::ReplicaId { replica: *replica });
        }
        if !sorted.contains(&self.replica) {
            return Err(ConfigError::NotAMember {
                replica: self.replica,
                members: self.members.clone(),
            });
        }
        if self.configuration == 0 || self.election_ticks == 0 || self.resend_ticks == 0 {
            return Err(ConfigError::Zero);
        }
        Ok(())
    }

    pub(crate) fn for_omnipaxos(&self) -> OmniPaxosConfig {
        OmniPaxosConfig {
            cluster_config: ClusterConfig {
                configuration_id: self.configuration,
                nodes: self.members.clone(),
                flexible_quorum: None,
            },
            server_config: ServerConfig {
                pid: self.replica,
                election_tick_timeout: self.election_ticks,
                resend_message_tick_timeout: self.resend_ticks,
                leader_priority: self.priority,
                // Appends of a turn are merged anyway, and a batch that waits inside of omnipaxos
                // would have no index yet.
                batch_size: 1,
                ..ServerConfig::default()
            },
        }
    }
}

/// The workarounds for omnipaxos 0.2.4 that can be switched off, for tests only: a test of a
/// workaround must show what happens without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workarounds {
    /// Takes outgoing messages before and after every Promise. Otherwise entries appended after an
    /// AcceptSync are merged into an AcceptDecide from before it, and logs diverge.
    pub drain_around_promises: bool,
    /// Checks addresses, ballots and indices of messages. Otherwise an unknown sender makes a
    /// leader panic, and a message of another group or configuration is taken for one of this.
    pub check_messages: bool,
    /// Appends only while leading. Otherwise an entry waits in a buffer or is forwarded, and may be
    /// decided after its caller was told that it failed.
    pub append_only_while_leading: bool,
    /// Refuses proposals, stop signs and compactions of peers. Otherwise entries enter the log that
    /// this replica's own admission has never seen.
    pub refuse_foreign_proposals: bool,
    /// Takes the lead when this replica has promised a higher ballot than its peers' leader has.
    /// Otherwise it accepts nothing until there happens to be another leader.
    pub return_from_outside: bool,
    /// Asks a leader to begin anew when it sends an AcceptSync although this replica accepts already.
    /// Otherwise that is ignored, and what follows it is missed until a later message shows the gap;
    /// with nothing decided there may be none.
    pub answer_second_syncs: bool,
    /// While its log is made durable, takes followers' word only for what was durable before. Otherwise
    /// a leader counts its own vote too early, and what it tells others is decided may be lost.
    pub settle_only_durable: bool,
}

impl Workarounds {
    /// What every replica runs with.
    pub const ALL: Self = Self {
        drain_around_promises: true,
        check_messages: true,
        append_only_while_leading: true,
        refuse_foreign_proposals: true,
        return_from_outside: true,
        answer_second_syncs: true,
        settle_only_durable: true,
    };
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Too few members, or one named twice.
    #[error("a group needs at least two distinct members, not {members:?}")]
    Members {
        /// What was configured.
        members: Vec<u64>,
    },
    /// An id outside of the range.
    #[error("replica ids are from 1 to {MAX_REPLICA_ID}, {replica} is not")]
    ReplicaId {
        /// The id.
        replica: u64,
    },
    /// This replica is not one of the members.
    #[error("replica {replica} is not among the members {members:?}")]
    NotAMember {
        /// This replica.
        replica: u64,
        /// The members.
        members: Vec<u64>,
    },
    /// A number that must not be 0 is.
    #[error("the configuration number and the ticks of a node must not be 0")]
    Zero,
}
