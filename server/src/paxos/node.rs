//! A node: omnipaxos with what it needs to be safe.
//!
//! Workarounds, each with a named test:
//! - Outgoing messages are taken before and after every Promise (`drain_around_promises`).
//! - No snapshots inside omnipaxos (`entry.rs`), so none of its delta snapshots.
//! - Only a leader in its accept phase appends (`append_only_while_leading`): nothing ever waits in
//!   omnipaxos, and the index of an entry is known at once.
//! - Messages are checked before omnipaxos sees them (`gate.rs`).
//! - A connection that was lost is reported on both ends (`reconnected`): omnipaxos never repeats
//!   an AcceptDecide that was lost without a later one to show it.
//! - A replica that has promised a higher ballot than its peers' leader has takes the lead
//!   (`return_from_outside`, `outside.rs`).
//! - A leader that sends an AcceptSync to a follower that accepts already is asked to begin anew
//!   (`answer_second_syncs`): omnipaxos ignores it, and takes the follower for one that has it.
//!
//! Invariants:
//! - No input between `take_early_messages` and `take_late_messages`, but for one kind: a follower's word
//!   that it has accepted what is durable here, too (`can_settle`). omnipaxos counts a leader's own vote
//!   when it appends, and that vote counts only once it is durable; of what was durable before the turn
//!   it does, if the turn changes nothing but the end of the log.
//! - Messages to one peer keep their order across the two, so that nothing overtakes.
//! - After an error of the log the node is stopped for good.
//!
//! A peer whose log ends before this one begins gets no entries: its message is not handled, and
//! the caller is told that it needs a snapshot. So does one to which the entries that it lacks do
//! not fit into a frame, which encoding reports.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use bytes::Bytes;
use gesmas_machine::PlantedBug;
use omnipaxos::OmniPaxos;
use omnipaxos::messages::Message;

use super::ballot::Ballot;
use super::config::{ConfigError, NodeConfig};
use super::entry::{LogEntry, MAX_ENTRY_BYTES};
use super::gate::{self, BallotBound, Knowledge, PeerFault};
use super::message::{self, MessageKind, PeerPaxosMessage};
use super::outside::Outside;
use super::storage::{Aside, InstanceStorage, SharedLog, StorageStopped, lock};
use crate::log::{Call, LogError};

/// The most bytes that may be appended in one turn: they travel in one frame.
const MAX_TURN_BYTES: usize = 2 * MAX_ENTRY_BYTES;
/// The most entries that may be appended in one turn, for the same reason.
const MAX_TURN_ENTRIES: usize = 64 << 10;

/// Why a node cannot go on, or refused an input.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A peer sent what it must not. The node goes on; close the connection.
    #[error(transparent)]
    Peer(#[from] PeerFault),
    /// The log failed. The replica must stop.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The node stopped at an earlier failure.
    #[error("the node stopped after an earlier failure of its log; restart the replica")]
    Stopped,
}

/// Why an entry was not appended. Nothing happened in every case.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// This replica does not lead, or not yet.
    #[error("this replica does not lead")]
    NotLeading,
    /// The entry is too large.
    #[error("an entry has at most {MAX_ENTRY_BYTES} bytes, this one has {bytes}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// This turn has taken as much as it can; try again in the next.
    #[error("this turn has no room left, append in the next one")]
    TurnFull,
    /// The node cannot go on.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It was handled, or is out of date.
    Handled,
    /// The sender lacks entries that this log no longer has: it needs a snapshot first.
    SenderIsBehind,
}

/// The leader as a node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The replica.
    pub replica: u64,
    /// The ballot that this node has promised to it.
    pub ballot: Ballot,
    /// True once this node accepts entries under that ballot.
    pub accepting: bool,
}

/// Where the node is in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Inputs are taken.
    Open,
    /// Early messages have left; the log must become durable.
    Closing,
}

/// One group in one configuration, on one replica.
pub struct Node {
    config: NodeConfig,
    log: SharedLog,
    paxos: OmniPaxos<LogEntry, InstanceStorage>,
    aside: Aside,
    outside: Outside,
    bound: BallotBound,
    stopped: bool,
    turn: Turn,
    /// Messages of this turn that have been taken from omnipaxos, in order.
    outgoing: Vec<Message<LogEntry>>,
    appended_bytes: usize,
    appended_entries: usize,
}

impl Node {
    /// Starts a node from what the log holds, or anew if the log does not know its instance.
    ///
    /// Entries below `decided_index` can be read at once. It may be lower than before a crash; a
    /// leader decides the rest again. The node's first messages ask its peers for their leader.
    pub fn recover(config: NodeConfig, log: &SharedLog) -> Result<Self, NodeError> {
        config.check()?;
        let aside = Aside::default();
        let paxos = build(&config, log, &aside)?;
        Ok(Self {
            outside: Outside::new(&config),
            bound: BallotBound::new(paxos.get_promise()),
            config,
            log: log.clone(),
            paxos,
            aside,
            stopped: false,
            turn: Turn::Open,
            outgoing: Vec::new(),
            appended_bytes: 0,
            appended_entries: 0,
        })
    }

    /// Drops the entries before `index`, which a durable snapshot covers. Not possible while this
    /// replica prepares to lead, since it may have to send them; false then.
    pub fn compact(&mut self, index: u64) -> Result<bool, NodeError> {
        self.begin_input()?;
        assert!(index <= self.decided_index(), "only what is decided is compacted");
        if self.paxos.get_current_leader() == Some((self.config.replica, false)) {
            return Ok(false);
        }
        if index > self.first_index() {
            let mut log = lock(&self.log);
            log.record(self.config.instance(), &Call::Trim(index))?;
            log.record(self.config.instance(), &Call::Compacted(index))?;
        }
        Ok(true)
    }

    /// Takes everything below `index` as decided: a snapshot of it is durable here. `ballot` is that
    /// of the last leader who began below `index`, so that everything there is the beginning of its
    /// log. The node comes back as after a crash, and as if it had accepted that much from it.
    ///
    /// If this node has accepted under an older ballot before, nothing from `index` on can have been
    /// chosen under that: what was is in the leader's log before the place where it began. If it has
    /// accepted under the same or a later one, what it has from `index` on may have been chosen under
    /// that, and stays.
    pub fn install(&mut self, index: u64, ballot: Ballot) -> Result<(), NodeError> {
        self.begin_input()?;
        assert!(index > self.decided_index(), "a snapshot brings something new");
        {
            let (mut log, instance) = (lock(&self.log), self.config.instance());
            let accepted = log.accepted_round(instance).map(Ballot::from).unwrap_or_default();
            if accepted < ballot {
                if log.end(instance) > index {
                    log.record(instance, &Call::AppendOnPrefix(index, Vec::new()))?;
                }
                log.record(instance, &Call::AcceptedRound(ballot.into()))?;
                let promise = log.promise(instance).map(Ballot::from).unwrap_or_default();
                log.record(instance, &Call::Promise(promise.max(ballot).into()))?;
            }
            log.record(instance, &Call::Trim(index))?;
            log.record(instance, &Call::Compacted(index))?;
            log.record(instance, &Call::Decided(index))?;
        }
        self.paxos = build(&self.config, &self.log, &self.aside)?;
        self.outside = Outside::new(&self.config);
        self.bound = BallotBound::new(self.paxos.get_promise());
        self.outgoing.clear();
        Ok(())
    }

    /// Handles a message of a peer.
    pub fn handle_message(&mut self, message: PeerPaxosMessage) -> Result<Received, NodeError> {
        self.begin_input()?;
        let workarounds = self.config.workarounds;
        if workarounds.check_messages {
            gate::check_address(&self.config, &message)?;
        }
        if workarounds.refuse_foreign_proposals {
            gate::check_kind(&message)?;
        }
        if workarounds.check_messages {
            let knowledge = self.knowledge();
            gate::check_content(&self.config, &message, &knowledge)?;
            if gate::is_out_of_place(&message, &knowledge) {
                return Ok(Received::Handled);
            }
        }
        if gate::needs_entries_before(&message, self.first_index()) {
            return Ok(Received::SenderIsBehind);
        }
        self.outside.hear(&message, self.paxos.get_promise());
        let drain = workarounds.drain_around_promises && message.kind() == MessageKind::Promise;
        if drain {
            self.collect();
        }
        let second = workarounds.answer_second_syncs
            && gate::is_second_sync(&message, &self.knowledge())
            && self.leader().is_some_and(|leader| leader.replica == message.message.get_sender());
        if second {
            let leader = message.message.get_sender();
            self.run(|paxos| paxos.reconnected(leader))?;
        }
        self.run(|paxos| paxos.handle_incoming(message.message))?;
        if drain {
            self.collect();
        }
        Ok(Received::Handled)
    }

    /// Appends an entry and returns its index. The entry is decided at that index or not at all;
    /// while `promised_ballot` is unchanged nothing else can be decided there.
    pub fn append(&mut self, entry: Bytes) -> Result<u64, AppendError> {
        self.begin_input()?;
        if self.config.workarounds.append_only_while_leading && !self.is_leading() {
            return Err(AppendError::NotLeading);
        }
        let bytes = entry.len();
        if bytes > MAX_ENTRY_BYTES {
            return Err(AppendError::TooLarge { bytes });
        }
        if self.appended_bytes + bytes > MAX_TURN_BYTES || self.appended_entries == MAX_TURN_ENTRIES
        {
            return Err(AppendError::TurnFull);
        }
        self.appended_bytes += bytes;
        self.appended_entries += 1;
        let index = self.accepted_index();
        let outcome = self.run(|paxos| paxos.append(LogEntry(entry)))?;
        // Only a stop sign seals a configuration, and none is ever accepted.
        outcome.expect("the configuration is not sealed");
        Ok(index)
    }

    /// Lets one tick of the driver's clock pass.
    pub fn tick(&mut self) -> Result<(), NodeError> {
        self.begin_input()?;
        self.bound.tick();
        self.run(OmniPaxos::tick)?;
        let lasts = self.outside.tick(self.knowledge().accepting);
        if lasts && self.config.workarounds.return_from_outside {
            self.run(OmniPaxos::try_become_leader)?;
        }
        Ok(())
    }

    /// Tries to lead, above whatever this node has promised: for whoever knows that the leader is gone, or
    /// was told to take its place. The election takes the promise for its leader within a round.
    pub fn take_lead(&mut self) -> Result<(), NodeError> {
        self.begin_input()?;
        self.run(OmniPaxos::try_become_leader)
    }

    /// The connection with a member was made anew, and messages may have been lost, in either
    /// direction. Both ends must call this, before they handle a message of the new connection.
    pub fn reconnected(&mut self, peer: u64) -> Result<(), NodeError> {
        self.begin_input()?;
        let member = peer != self.config.replica && self.config.members.contains(&peer);
        assert!(member, "only members of the configuration are connected");
        self.run(|paxos| paxos.reconnected(peer))
    }

    /// Ends the inputs of the turn, and returns what may be sent before the log is durable.
    pub fn take_early_messages(&mut self) -> Vec<PeerPaxosMessage> {
        assert_eq!(self.turn, Turn::Open, "a turn is closed once");
        self.turn = Turn::Closing;
        if self.stopped {
            // Its state is half-changed, and nobody must hear of it.
            self.outgoing.clear();
            return Vec::new();
        }
        self.collect();
        let mut early = Vec::new();
        // Nothing may overtake: the first message to a peer that must wait holds back all later
        // ones to that peer. Ids are small, so a bit stands for each.
        let mut held_back: u128 = 0;
        for message in std::mem::take(&mut self.outgoing) {
            let kind = message::kind(&message);
            let peer = 1u128 << message.get_receiver();
            if kind.is_early() && held_back & peer == 0 {
                early.push(self.address(message));
            } else {
                if !kind.is_heartbeat() {
                    held_back |= peer;
                }
                self.outgoing.push(message);
            }
        }
        early
    }

    /// Whether a message can be handled while the log is made durable: it says that a follower of this
    /// leader has accepted nothing but what was durable here when the turn began.
    pub fn can_settle(&self, message: &PeerPaxosMessage) -> bool {
        let Some((ballot, index)) = message.accepted() else { return false };
        let knowledge = self.knowledge();
        let counts = self.turn == Turn::Closing
            && !self.stopped
            && self.is_leading()
            && ballot == knowledge.promise
            && gate::check_address(&self.config, message).is_ok()
            && gate::check_content(&self.config, message, &knowledge).is_ok();
        let log = lock(&self.log);
        let durable = log.only_appends() && index <= log.durable_end(self.config.instance());
        counts && (durable || !self.config.workarounds.settle_only_durable)
    }

    /// Handles such a message, and returns what may be sent at once because of it.
    pub fn settle(
        &mut self,
        message: PeerPaxosMessage,
    ) -> Result<Vec<PeerPaxosMessage>, NodeError> {
        assert!(self.can_settle(&message), "what is not durable is settled later");
        self.run(|paxos| paxos.handle_incoming(message.message))?;
        let waiting = self.outgoing.len();
        self.collect();
        let new = self.outgoing.split_off(waiting);
        let mut early = Vec::new();
        for message in new {
            let overtakes = self.outgoing.iter().any(|other| {
                !message::kind(other).is_heartbeat()
                    && other.get_receiver() == message.get_receiver()
            });
            if message::kind(&message).is_early() && !overtakes {
                early.push(self.address(message));
            } else {
                self.outgoing.push(message);
            }
        }
        Ok(early)
    }

    /// Returns the rest of the messages, once the log is durable, and begins the next turn.
    pub fn take_late_messages(&mut self) -> Vec<PeerPaxosMessage> {
        assert_eq!(self.turn, Turn::Closing, "early messages are taken first");
        assert!(
            self.stopped
                || self.config.planted.has(PlantedBug::AcknowledgedBeforeSync)
                || !lock(&self.log).needs_sync(),
            "late messages wait until the log is durable"
        );
        self.turn = Turn::Open;
        self.appended_bytes = 0;
        self.appended_entries = 0;
        let late = std::mem::take(&mut self.outgoing);
        late.into_iter().map(|message| self.address(message)).collect()
    }

    /// Whom this node has promised to follow, if anybody.
    pub fn leader(&self) -> Option<Leader> {
        let (replica, accepting) = self.paxos.get_current_leader()?;
        Some(Leader { replica, ballot: self.promised_ballot(), accepting })
    }

    /// True while this replica leads and may append.
    pub fn is_leading(&self) -> bool {
        self.paxos.get_current_leader() == Some((self.config.replica, true))
    }

    /// The highest ballot that this node has promised.
    pub fn promised_ballot(&self) -> Ballot {
        self.paxos.get_promise().into()
    }

    /// One past the last entry that is decided, as far as this node knows.
    pub fn decided_index(&self) -> u64 {
        self.paxos.get_decided_idx() as u64
    }

    /// One past the last entry in this node's log.
    pub fn accepted_index(&self) -> u64 {
        self.paxos.get_accepted_idx() as u64
    }

    /// One past the last entry in this node's log before the first that is not durable yet.
    pub fn durable_index(&self) -> u64 {
        lock(&self.log).durable_end(self.config.instance())
    }

    /// Index of the first entry that this node's log has.
    pub fn first_index(&self) -> u64 {
        lock(&self.log).first(self.config.instance())
    }

    /// How the node was set up.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Decided entries from `from` on, with their indices: at most `max_entries`, and as many as
    /// fit into `max_bytes`, but at least one if there is one.
    pub fn read_decided(
        &self,
        from: u64,
        max_entries: usize,
        max_bytes: u64,
    ) -> Result<Vec<(u64, Bytes)>, NodeError> {
        let undecided = self.config.planted.has(PlantedBug::AppliesUndecided);
        let decided = if undecided { self.accepted_index() } else { self.decided_index() };
        let to = decided.min(from.saturating_add(max_entries as u64));
        if from >= to {
            return Ok(Vec::new());
        }
        let entries = lock(&self.log).entries(self.config.instance(), from, to, max_bytes)?;
        Ok((from..).zip(entries).collect())
    }

    fn begin_input(&self) -> Result<(), NodeError> {
        assert_eq!(self.turn, Turn::Open, "no input until the log is durable");
        if self.stopped { Err(NodeError::Stopped) } else { Ok(()) }
    }

    fn knowledge(&self) -> Knowledge {
        Knowledge {
            promise: self.paxos.get_promise(),
            accepted: self.paxos.get_accepted_idx(),
            decided: self.paxos.get_decided_idx(),
            accepting: self.paxos.get_current_leader().is_some_and(|(_, accepting)| accepting),
            bound: self.bound,
        }
    }

    fn collect(&mut self) {
        self.paxos.take_outgoing_messages(&mut self.outgoing);
    }

    fn address(&self, message: Message<LogEntry>) -> PeerPaxosMessage {
        let (group, configuration) = (self.config.group, self.config.configuration);
        PeerPaxosMessage { group, configuration, message }
    }

    /// Calls omnipaxos, and stops the node if the log failed below it.
    fn run<T>(
        &mut self,
        call: impl FnOnce(&mut OmniPaxos<LogEntry, InstanceStorage>) -> T,
    ) -> Result<T, NodeError> {
        let paxos = &mut self.paxos;
        catch_unwind(AssertUnwindSafe(|| call(paxos))).map_err(|panic| {
            self.stopped = true;
            failure(&self.aside, panic)
        })
    }
}

fn build(
    config: &NodeConfig,
    log: &SharedLog,
    aside: &Aside,
) -> Result<OmniPaxos<LogEntry, InstanceStorage>, NodeError> {
    let storage = InstanceStorage {
        log: log.clone(),
        instance: config.instance(),
        aside: aside.clone(),
        planted: config.planted,
    };
    let build = AssertUnwindSafe(|| config.for_omnipaxos().build(storage));
    match catch_unwind(build) {
        Ok(built) => Ok(built.expect("the configuration was checked")),
        Err(panic) => Err(failure(aside, panic)),
    }
}

/// The error that was put aside when the stack was unwound; a panic of any other origin goes on.
fn failure(aside: &Aside, panic: Box<dyn std::any::Any + Send>) -> NodeError {
    if !panic.is::<StorageStopped>() {
        resume_unwind(panic);
    }
    NodeError::Log(aside.take().expect("the error was put aside before the stack was unwound"))
}
