//! The core of a replica: Paxos node, durable log and kernel, without I/O of its own.
//!
//! ```text
//! handle_* ─► outstanding ─► leader's queue ─► batch ─► node ─► log
//! close_turn: append, early messages ─► one sync, and work ─► open_turn: late messages, decided entries
//! apply, work: machine runs in slices ─► effects, reads ─► poll_output
//! ```
//!
//! Commands, peers' frames, ticks and the clocks' readings go in; frames for peers, effects and
//! answers to reads come out. The tokio shell drives it in production, a simulator the same code
//! with seeded time, network and disk.
//! Invariants: nothing a peer may count on leaves before the log is durable (the node asserts it);
//! only a leader whose `LeaderStart` is applied orders batches; a batch carries its ballot.
//! Not here: sockets, threads, clocks, and who is connected to whom.

mod admission;
mod apply;
mod catch_up;
mod clock;
mod divergence;
mod leadership;
mod liveness;
mod outstanding;
mod peer;
mod queue;
mod reads;
mod snapshots;
mod standstill;
mod takeover;
mod turn;

use std::collections::VecDeque;

use bytes::Bytes;
use gesmas_machine::{
    Ballot, CodeHash, Command, DecodeError, Effect, Engine, JoinError, Machine, Outcome,
    PlantedBug, Refusal, SessionId,
};

use self::{
    admission::Admission,
    divergence::Divergence,
    leadership::Leadership,
    liveness::Liveness,
    outstanding::Outstanding,
    peer::{PeerFrame, PeerMessage},
    reads::{LocalReads, ReadPoints},
    snapshots::Snapshots,
    standstill::Standstill,
    takeover::Takeover,
};
pub use self::{
    clock::Moment,
    divergence::Diverged,
    peer::PeerError,
    reads::{Question, ReadId},
    snapshots::{Held, SnapshotCounts},
    takeover::NotTakingLead,
};
use crate::{
    log::LogError,
    paxos::{self, Node, NodeError, Received, SharedLog},
};

/// Settings of a replica that do not change results.
#[derive(Clone, Debug)]
pub struct ReplicaSettings {
    /// Commands and reads of own clients that wait; more are turned away as busy.
    pub outstanding: usize,
    /// Bytes of commands of own clients that wait; with more, commands are turned away as busy.
    pub outstanding_bytes: usize,
    /// Commands that a leader holds for its next batches; more are dropped and come again.
    pub queue: usize,
    /// Bytes of them; with more, commands are dropped and come again.
    pub queue_bytes: usize,
    /// Commands in a batch.
    pub batch_commands: usize,
    /// Bytes in a batch, unless one command has more.
    pub batch_bytes: usize,
    /// Bytes of an entry of the log, at most [`paxos::MAX_ENTRY_BYTES`]. No command is larger.
    pub entry_bytes: usize,
    /// Entries that are appended and not decided.
    pub in_flight: u64,
    /// After this long without being seen in the log a command is forwarded again, nanoseconds, and
    /// after ever longer times.
    pub resend_after: u64,
    /// Bytes of log after which a snapshot is taken.
    pub snapshot_bytes: u64,
    /// Bytes of a snapshot that are fetched in a tick, about.
    pub fetch_bytes: u64,
    /// A number for this replica's disk, should its log be new.
    pub disk: u128,
    /// What the group is, should this replica be its first leader.
    pub genesis: gesmas_machine::Genesis,
}

impl ReplicaSettings {
    /// Bytes of the largest command: an entry holds it in a batch of its own.
    #[must_use]
    pub const fn command_bytes(&self) -> usize {
        self.entry_bytes - BATCH_HEAD_BYTES
    }
}

/// Something the core puts out besides frames for peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// An effect of a step.
    Effect(Effect),
    /// The end of a read.
    Read {
        /// The read.
        id: ReadId,
        /// Its result, or why it was not run.
        result: Result<Outcome, Refusal>,
    },
    /// A read came to nothing: its client says that it has seen what is not in this history.
    NotSeen {
        /// The read.
        id: ReadId,
    },
    /// A piece of a snapshot that a client asked for, and the length of the whole file.
    Piece {
        /// The question.
        id: ReadId,
        /// The piece, or why there is none.
        result: Result<(Bytes, u64), String>,
    },
    /// The state was replaced by a later one: what was to be told of the time between is in it.
    Replaced,
    /// A wait without a read is over.
    CaughtUp {
        /// The wait.
        id: ReadId,
    },
}

/// The core cannot take more now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests wait to be ordered")]
pub struct Busy;

/// Why a command is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Not now.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// Never: no entry of the log has room for it.
    #[error("the request has {bytes} bytes, and the log takes {most} at once")]
    TooLarge {
        /// Bytes of its encoding.
        bytes: usize,
        /// Bytes of the largest that is taken.
        most: usize,
    },
}

/// More than a batch has besides its commands: what it is, ballot, stamp and number of commands.
const BATCH_HEAD_BYTES: usize = 128;

/// Why a replica must stop.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The node or its log failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// This replica cannot run the group.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// It has another disk than it once had.
    #[error(
        "replica {replica} has an empty log, but replica {peer} knows it with another disk: it may \
         have voted for what it no longer knows, and must not vote again. Put its own disk back, or \
         follow \"A replica has lost its disk\" in docs/operations.md"
    )]
    LostDisk {
        /// This replica.
        replica: u64,
        /// Who knows it.
        peer: u64,
    },
    /// Its state is not the group's.
    #[error("{0}")]
    Diverged(Box<Diverged>),
    /// The state of a snapshot cannot be run here.
    #[error("the state cannot be run: {0}")]
    State(#[from] gesmas_machine::ImageError),
    /// A decided entry does not decode.
    #[error("entry {index} of the log is not one of this format: {error}")]
    Entry {
        /// Its index.
        index: u64,
        /// Why.
        error: DecodeError,
    },
}

/// Bytes of commands forwarded in one message, unless one has more.
const FORWARD_BYTES: usize = 4 << 20;

/// Commands forwarded in one message: decoded, small ones are larger than their encodings.
const FORWARD_COMMANDS: usize = 10_000;

/// A replica. See the file's head.
pub struct Replica<E> {
    settings: ReplicaSettings,
    node: Node,
    log: SharedLog,
    machine: Machine<E>,
    now: Moment,
    leadership: Leadership,
    outstanding: Outstanding,
    liveness: Liveness,
    local_reads: LocalReads,
    read_points: ReadPoints,
    /// Ballot whose batches count, as of the entries handed to the machine.
    counting: Ballot,
    /// One past the last entry handed to the machine.
    applied: u64,
    /// Leader of the last turn, to notice a change.
    followed: Option<(u64, Ballot)>,
    snapshots: Snapshots,
    admission: Admission,
    standstill: Standstill,
    takeover: Takeover,
    divergence: Divergence,
    outgoing: Vec<(u64, PeerMessage)>,
    /// Messages that wait until the log is durable.
    late_outgoing: Vec<(u64, PeerMessage)>,
    outputs: VecDeque<Output>,
}

impl<E: Engine> Replica<E> {
    /// A replica on a node that has recovered. The machine is empty, or as the newest snapshot that
    /// is held was: the log does the rest. Should that not reach back far enough, a peer does.
    ///
    /// # Errors
    /// When the log fails.
    pub fn new(
        settings: ReplicaSettings,
        mut node: Node,
        log: SharedLog,
        machine: Machine<E>,
        held: Held,
        now: Moment,
    ) -> Result<Self, ReplicaError> {
        assert!(settings.entry_bytes <= paxos::MAX_ENTRY_BYTES, "an entry fits into a frame");
        assert!(settings.batch_bytes <= settings.command_bytes(), "a batch fits into an entry");
        let admission = Admission::read(&log, node.config(), settings.disk)?;
        if let Some(newest) = held.newest.filter(|newest| *newest > node.decided_index()) {
            // It was durable before the log could say so.
            node.install(newest, snapshots::paxos_ballot(machine.ballot()))?;
        }
        let applied = held.newest.unwrap_or(0);
        let config = node.config();
        let member = config.members.iter().filter(|id| **id < config.replica).count() as u64;
        let members = config.members.len() as u64;
        let step = machine.step().0;
        let snapshots = Snapshots::new(held, step, settings.snapshot_bytes, member, members);
        let counting = machine.ballot();
        let mut replica = Self {
            settings,
            node,
            log,
            machine,
            now,
            leadership: Leadership::default(),
            outstanding: Outstanding::default(),
            liveness: Liveness::default(),
            local_reads: LocalReads::starting_at(now.wall),
            read_points: ReadPoints::default(),
            counting,
            applied,
            followed: None,
            snapshots,
            admission,
            standstill: Standstill::default(),
            takeover: Takeover::default(),
            divergence: Divergence::default(),
            outgoing: Vec::new(),
            late_outgoing: Vec::new(),
            outputs: VecDeque::new(),
        };
        replica.divergence = Divergence::new(replica.ballot());
        if replica.node.first_index() > applied {
            replica.snapshots.starve();
        }
        replica.compile_what_is_missing();
        Ok(replica)
    }

    /// Tells what the clocks say. First in every turn.
    pub fn handle_time(&mut self, now: Moment) {
        assert!(now.monotonic >= self.now.monotonic, "a monotonic clock goes forward");
        self.now = now;
    }

    /// Lets one tick pass.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn handle_tick(&mut self) -> Result<(), ReplicaError> {
        if self.stands_still() && !self.try_to_go_on()? {
            return Ok(());
        }
        if !self.is_admitted() {
            self.introduce();
            return Ok(());
        }
        self.divergence_tick()?;
        self.node.tick()?;
        self.takeover_tick()?;
        if !self.has_planted(PlantedBug::StalledLeaderExpires) {
            let undecided = self.node.decided_index()..self.node.accepted_index();
            self.liveness.tick(self.now.monotonic, self.majority(), undecided);
        }
        let before = self.now.monotonic.saturating_sub(self.settings.resend_after);
        self.outstanding.resend_late(self.now.monotonic);
        self.local_reads.ask_again(before);
        self.report_liveness();
        self.snapshot_tick();
        self.compact_log()?;
        let clock = PeerMessage::Clock { leader: self.leader_time(), wall: self.now.wall };
        for peer in self.peers() {
            self.outgoing.push((peer, clock.clone()));
            if let Some(number) = self.read_points.under_way() {
                let ballot = self.ballot();
                self.outgoing.push((peer, PeerMessage::AskConfirm { ballot, number }));
            }
        }
        self.expire_sessions();
        Ok(())
    }

    /// The connection with a peer was made anew; messages may have been lost both ways.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn handle_reconnected(&mut self, peer: u64) -> Result<(), ReplicaError> {
        if self.stands_still() {
            return Ok(());
        }
        if !self.is_admitted() {
            self.introduce();
            return Ok(());
        }
        self.node.reconnected(peer)?;
        if self.followed.is_some_and(|(leader, _)| leader == peer) {
            self.outstanding.resend_all();
            self.local_reads.ask_again(u64::MAX);
        }
        Ok(())
    }

    /// Handles a frame of a peer.
    ///
    /// # Errors
    /// The outer error when the replica must stop; the inner one when the frame is refused, which
    /// ends the peer's connection.
    pub fn handle_frame(
        &mut self,
        from: u64,
        body: Bytes,
    ) -> Result<Result<(), PeerError>, ReplicaError> {
        if self.stands_still() {
            return Ok(Ok(()));
        }
        match peer::decode(&self.node, from, body) {
            Err(error) => Ok(Err(error)),
            Ok(PeerFrame::Replica(message)) => {
                match message {
                    PeerMessage::Introduce { disk } => self.introduced(from, disk)?,
                    PeerMessage::Consent { disk } => self.consented(from, disk)?,
                    PeerMessage::Stranger { disk } => self.refused(from, disk)?,
                    // Whoever may not vote does nothing else either.
                    _ if !self.is_admitted() => {}
                    message => self.handle_peer_message(from, message),
                }
                Ok(Ok(()))
            }
            Ok(PeerFrame::Paxos(_)) if !self.is_admitted() => Ok(Ok(())),
            Ok(PeerFrame::Paxos(message)) if message.from() != from => {
                let claimed = format!("it claims to be from {}", message.from());
                Ok(Err(PeerError::Misdirected(claimed)))
            }
            Ok(PeerFrame::Paxos(message)) => match self.node.handle_message(message) {
                Ok(Received::Handled) => Ok(Ok(())),
                Ok(Received::SenderIsBehind) => {
                    self.peer_is_behind(from);
                    Ok(Ok(()))
                }
                Err(NodeError::Peer(fault)) => Ok(Err(PeerError::Malformed(fault.to_string()))),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Takes a command of an own client or of this replica itself.
    ///
    /// An acknowledgement for a session that is not there is dropped: the client has nothing to
    /// acknowledge, or says it again.
    ///
    /// # Errors
    /// [`NotTaken`] when too many wait, or the command is too large for the log.
    pub fn handle_command(&mut self, command: Command) -> Result<(), NotTaken> {
        let full = self.outstanding.len() >= self.settings.outstanding
            || self.outstanding.bytes() >= self.settings.outstanding_bytes;
        if self.turns_away() || full {
            return Err(Busy.into());
        }
        let weighed = self.weigh(command);
        let (bytes, most) = (weighed.bytes, self.settings.command_bytes());
        if bytes > most {
            return Err(NotTaken::TooLarge { bytes, most });
        }
        let command = &weighed.command;
        if let Command::Acknowledge { session, .. } = command
            && self.machine.last_admitted(*session).is_none()
        {
            return Ok(());
        }
        match command {
            Command::Request(request) => self.liveness.hear(request.place.session),
            Command::Cancel { place, .. } => self.liveness.hear(place.session),
            Command::Acknowledge { session, .. } => self.liveness.hear(*session),
            _ => {}
        }
        self.outstanding.add(weighed);
        Ok(())
    }

    /// Whether clients must go elsewhere: the disk is full, or the state is not the group's.
    pub fn turns_away(&self) -> bool {
        self.stands_still() || self.has_diverged()
    }

    /// An own client was heard of.
    pub fn handle_alive(&mut self, session: SessionId) {
        self.liveness.hear(session);
    }

    /// Takes a read of an own client, or a wait for all that was acknowledged before.
    ///
    /// # Errors
    /// [`Busy`] when too many wait.
    pub fn handle_read(&mut self, id: ReadId, question: Question) -> Result<(), Busy> {
        let after = question.read.as_ref().and_then(|read| read.after);
        // A client that is turned away lives all the same.
        for session in after.map(|(session, _)| session).into_iter().chain(question.alive) {
            self.liveness.hear(session);
        }
        if self.turns_away() || self.local_reads.len() >= self.settings.outstanding {
            return Err(Busy);
        }
        let timeout = question.alive.and_then(|session| self.machine.session_timeout(session));
        let named_until = timeout.map_or(u64::MAX, |time| self.now.monotonic.saturating_add(time));
        self.local_reads.add(id, question, named_until);
        Ok(())
    }

    /// The client of a read no longer waits.
    pub fn forget_read(&mut self, id: ReadId) {
        self.local_reads.forget(id);
    }

    /// This replica has compiled code, which its engine has by now, or could not. There is always
    /// room for that: a report that got lost would leave its class pending for ever, and there are
    /// no more reports than classes.
    pub fn handle_compiled(&mut self, code: CodeHash, failure: Option<String>) {
        let replica = self.node.config().replica;
        self.outstanding.add(Command::Compiled { replica, code, failure }.into());
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The machine, to look at.
    pub fn machine(&self) -> &Machine<E> {
        &self.machine
    }

    /// The machine, to hand its engine compiled code.
    pub fn machine_mut(&mut self) -> &mut Machine<E> {
        &mut self.machine
    }

    /// The node, to look at.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// One past the last entry handed to the machine.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Turns that its log has made durable.
    pub fn log_syncs(&self) -> u64 {
        paxos::syncs(&self.log)
    }

    /// Whether this replica leads and orders.
    pub fn is_leading(&self) -> bool {
        self.leadership.is_leading()
    }

    fn peers(&self) -> Vec<u64> {
        let config = self.node.config();
        config.members.iter().copied().filter(|peer| *peer != config.replica).collect()
    }

    /// Whether tests have planted this bug.
    pub(super) fn has_planted(&self, bug: PlantedBug) -> bool {
        self.node.config().planted.has(bug)
    }

    fn majority(&self) -> usize {
        self.node.config().members.len() / 2 + 1
    }

    /// The ballot that this replica has promised, as the machine knows ballots.
    fn ballot(&self) -> Ballot {
        let ballot = self.node.promised_ballot();
        Ballot {
            configuration: ballot.configuration,
            number: ballot.number,
            priority: ballot.priority,
            replica: ballot.replica,
        }
    }
}
