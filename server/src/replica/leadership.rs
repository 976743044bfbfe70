//! Leading and following: who orders, from when on, and with which time.
//!
//! ```text
//! Following ─ elected ─► Elected ─ time is known: LeaderStart ─► Starting ─ applied ─► Leading
//!     ▲                                                                                  │
//!     └───────────────────────────── another ballot is promised ◄───────────────────────┘
//! ```
//!
//! Invariants: only in `Leading` are batches ordered, with the ballot of the `LeaderStart` that was
//! applied; so a batch of a deposed leader is void wherever it turns up.
//! Not here: elections (omnipaxos), and what batches do (the machine).

use std::collections::VecDeque;

use gesmas_machine::{Ballot, Batch, Command, Engine, LogEntry, PlantedBug, Time};

use super::{
    FORWARD_BYTES, FORWARD_COMMANDS, Replica, ReplicaError, ReplicaSettings,
    clock::{HeardClocks, LeaderClock, UNSET},
    outstanding::Weighed,
    peer::PeerMessage,
    queue::{Most, Queue},
    reads,
};
use crate::paxos::AppendError;

/// Bytes of entries that are appended and not decided, about.
const IN_FLIGHT_BYTES: usize = 8 << 20;

/// Decided entries that are not applied and beyond which a leader orders nothing. What waits
/// meanwhile is ordered in fewer, larger batches.
const UNAPPLIED: u64 = 4;

/// How far this replica is with leading.
#[derive(Debug, Default)]
enum Role {
    #[default]
    Following,
    /// It may append, and waits until it knows the time.
    Elected(Ballot),
    /// Its `LeaderStart` is in the log.
    Starting(Ballot),
    Leading(Ballot, LeaderClock),
}

/// What a replica needs to lead.
#[derive(Debug, Default)]
pub(super) struct Leadership {
    role: Role,
    clocks: HeardClocks,
    /// Commands to order next, own and forwarded.
    queue: Queue,
    /// Entries that were appended and not decided, with their bytes.
    undecided: VecDeque<(u64, usize)>,
    undecided_bytes: usize,
    /// Stamp of the last batch that this leader has put into the log.
    last_ordered: Option<Time>,
}

impl ReplicaSettings {
    /// What a leader holds for its next batches.
    fn most_queued(&self) -> Most {
        Most { commands: self.queue, bytes: self.queue_bytes }
    }
}

impl Leadership {
    pub(super) fn is_leading(&self) -> bool {
        matches!(self.role, Role::Leading(..))
    }
}

impl<E: Engine> Replica<E> {
    pub(super) fn handle_peer_message(&mut self, from: u64, message: PeerMessage) {
        match message {
            PeerMessage::Forward(commands) => self.queue_forwarded(from, commands),
            PeerMessage::Alive(sessions) => {
                if self.is_leading() {
                    self.liveness.report(&sessions, self.now.monotonic);
                }
            }
            PeerMessage::Clock { leader, wall } => {
                self.liveness.hear_peer(from, self.now.monotonic);
                self.takeover.hear(from);
                self.leadership.clocks.hear_wall(from, wall);
                let follows = self.followed.is_some_and(|(replica, _)| replica == from);
                if let (Some(time), true) = (leader, follows) {
                    self.leadership.clocks.hear_leader(time, self.now);
                }
            }
            PeerMessage::Introduce { .. }
            | PeerMessage::Consent { .. }
            | PeerMessage::Stranger { .. } => panic!("who may vote is settled before"),
            PeerMessage::Behind { index } => self.offered(from, index),
            PeerMessage::AskSnapshot { first } => self.asked_snapshot(from, first),
            PeerMessage::Gone { index } => self.gone(index),
            PeerMessage::AskPiece { index, offset } => self.asked_piece(from, index, offset),
            PeerMessage::Piece { index, offset, total, bytes } => {
                self.piece_came(index, offset, total, bytes);
            }
            PeerMessage::AskSums { step, after } => self.asked_sums(from, step, after),
            PeerMessage::Sums { step, after, sums } => self.sums_came(from, step, after, &sums),
            PeerMessage::NoSums { step } => self.no_sums(from, step),
            PeerMessage::AskReadPoint { round } => {
                if self.is_leading() && self.has_planted(PlantedBug::ReadWithoutMajority) {
                    let index = self.node.decided_index();
                    self.outgoing.push((from, PeerMessage::ReadPoint { round, index }));
                } else if self.is_leading() {
                    self.read_points.ask(from, round, self.node.accepted_index());
                }
            }
            PeerMessage::ReadPoint { round, index } => self.local_reads.answered(round, index),
            PeerMessage::AskConfirm { ballot, number } => {
                if reads::confirms(self.ballot(), ballot) {
                    self.outgoing.push((from, PeerMessage::Confirmed { ballot, number }));
                }
            }
            PeerMessage::Confirmed { ballot, number } => {
                if self.is_leading() && ballot == self.ballot() {
                    self.read_point_confirmed(from, number);
                }
            }
        }
    }

    /// A command with the bytes of its encoding.
    pub(super) fn weigh(&self, command: Command) -> Weighed {
        let weighed = Weighed::from(command);
        match weighed.command {
            Command::Acknowledge { .. } if self.has_planted(PlantedBug::RangesWeighNothing) => {
                Weighed { bytes: 0, ..weighed }
            }
            _ => weighed,
        }
    }

    /// A follower drops what is forwarded to it by mistake; the sender sends it again when it knows
    /// the leader. A replica that is about to lead keeps it.
    fn queue_forwarded(&mut self, from: u64, commands: Vec<Command>) {
        let own = self.node.config().replica;
        if self.node.leader().is_some_and(|leader| leader.replica != own) {
            return;
        }
        let most = self.settings.command_bytes();
        let weighed: Vec<_> = commands.into_iter().map(|command| self.weigh(command)).collect();
        let weighed = weighed.into_iter().filter(|weighed| {
            let fits = weighed.bytes <= most;
            if !fits {
                tracing::error!(peer = from, weighed.bytes, "a command too large was forwarded");
            }
            fits
        });
        self.leadership.queue.extend_within(weighed, self.settings.most_queued());
    }

    /// Notices a change of leader.
    pub(super) fn follow_leader(&mut self) {
        let ballot = self.ballot();
        let leader = self.node.leader().map(|leader| (leader.replica, ballot));
        if leader != self.followed {
            self.followed = leader;
            self.outstanding.resend_all();
            self.local_reads.ask_again(u64::MAX);
        }
        let leads = self.node.is_leading();
        let known = match &self.leadership.role {
            Role::Following => None,
            Role::Elected(own) | Role::Starting(own) | Role::Leading(own, _) => Some(*own),
        };
        let goes_on = self.has_planted(PlantedBug::StaleBatchCounts);
        if known.is_some_and(|own| !leads || own != ballot) && !goes_on {
            self.stop_leading();
        }
        if leads && matches!(self.leadership.role, Role::Following) {
            self.leadership.role = Role::Elected(ballot);
            self.leadership.clocks.forget_walls();
            if !self.has_planted(PlantedBug::StalledLeaderExpires) {
                self.liveness.begin_to_lead();
            }
        }
    }

    fn stop_leading(&mut self) {
        if let Some(time) = self.leader_time() {
            self.leadership.clocks.hear_leader(time, self.now);
        }
        self.leadership.role = Role::Following;
        self.leadership.queue.clear();
        self.leadership.undecided.clear();
        self.leadership.undecided_bytes = 0;
        self.leadership.last_ordered = None;
        self.read_points.clear();
    }

    /// Sends what waits to the leader, or queues it here.
    pub(super) fn dispatch_outstanding(&mut self) {
        let Some((leader, _)) = self.followed else {
            return;
        };
        let patience = self.settings.resend_after;
        if leader == self.node.config().replica {
            if let Some(room) = self.leadership.queue.room(self.settings.most_queued()) {
                let room = (room.commands, room.bytes);
                let own = self.outstanding.take_unsent(self.now.monotonic, patience, room);
                self.leadership.queue.extend(own);
            }
            return;
        }
        loop {
            let most = (FORWARD_COMMANDS, FORWARD_BYTES);
            let commands = self.outstanding.take_unsent(self.now.monotonic, patience, most);
            if commands.is_empty() {
                return;
            }
            let commands = commands.into_iter().map(|weighed| weighed.command).collect();
            self.outgoing.push((leader, PeerMessage::Forward(commands)));
        }
    }

    /// Asks for read points, and for confirmations of those that were asked for here.
    pub(super) fn dispatch_reads(&mut self) {
        let Some((leader, _)) = self.followed else {
            return;
        };
        let own = self.node.config().replica;
        if self.local_reads.has_question() {
            // Whoever waits for a read point also knows then that the leader has heard of its
            // session, since the report goes first, and again with a question that is asked again.
            self.local_reads
                .alive(self.now.monotonic)
                .for_each(|session| self.liveness.hear(session));
            self.report_liveness();
        }
        if leader != own {
            if let Some(round) = self.local_reads.take_question(self.now.monotonic) {
                self.outgoing.push((leader, PeerMessage::AskReadPoint { round }));
            }
            return;
        }
        if !self.is_leading() {
            return;
        }
        if let Some(round) = self.local_reads.take_question(self.now.monotonic) {
            if self.has_planted(PlantedBug::ReadWithoutMajority) {
                self.local_reads.answered(round, self.node.decided_index());
                return;
            }
            self.read_points.ask(own, round, self.node.accepted_index());
        }
        if let Some(number) = self.read_points.begin() {
            let ballot = self.ballot();
            for peer in self.peers() {
                self.outgoing.push((peer, PeerMessage::AskConfirm { ballot, number }));
            }
        }
    }

    fn read_point_confirmed(&mut self, peer: u64, number: u64) {
        let majority = self.majority();
        let own = self.node.config().replica;
        for (asker, round, index) in
            self.read_points.confirmed(peer, number, majority).unwrap_or_default()
        {
            if asker == own {
                self.local_reads.answered(round, index);
            } else {
                self.outgoing.push((asker, PeerMessage::ReadPoint { round, index }));
            }
        }
    }

    /// Does what a leader does at the end of a turn.
    pub(super) fn lead(&mut self) -> Result<(), ReplicaError> {
        match self.leadership.role {
            Role::Following => Ok(()),
            Role::Elected(ballot) => self.start_leading(ballot),
            Role::Starting(ballot) => {
                self.finish_start(ballot);
                self.order()
            }
            Role::Leading(..) => self.order(),
        }
    }

    /// Puts `LeaderStart` into the log, once the time is known; before it, in an empty log, what the
    /// group is.
    fn start_leading(&mut self, ballot: Ballot) -> Result<(), ReplicaError> {
        let last_stamp = self.machine.now();
        let counts = self.has_planted(PlantedBug::UnsetClockCounts);
        let unset = if counts { 0 } else { UNSET };
        let clocks = &self.leadership.clocks;
        let Some(now) = clocks.start(last_stamp, self.majority(), unset, self.now) else {
            return Ok(());
        };
        if self.node.accepted_index() == 0 {
            let genesis = LogEntry::Genesis(Box::new(self.settings.genesis.clone()));
            self.append(&genesis)?;
        }
        if self.append(&LogEntry::LeaderStart { ballot, now })? {
            self.leadership.clocks.hear_leader(now, self.now);
            self.leadership.role = Role::Starting(ballot);
        }
        Ok(())
    }

    /// Leads from when its `LeaderStart` is applied: everything before it in the log is then, too.
    fn finish_start(&mut self, ballot: Ballot) {
        if self.machine.ballot() != ballot {
            return;
        }
        let last_stamp = self.machine.now();
        let start = self.leadership.clocks.start(last_stamp, 1, UNSET, self.now);
        let time = start.expect("a clock starts when nobody else has to be heard");
        self.leadership.role = Role::Leading(ballot, LeaderClock::start(time, self.now));
        if self.has_planted(PlantedBug::DueBeforeReign) {
            self.leadership.last_ordered = Some(time);
        }
    }

    /// Orders batches of what waits, and an empty one when an alarm is due.
    fn order(&mut self) -> Result<(), ReplicaError> {
        while self.has_room() && self.has_work() {
            let commands = self.next_commands();
            let Role::Leading(ballot, clock) = &mut self.leadership.role else {
                return Ok(());
            };
            let stamp = clock.stamp(self.now);
            let mut batch = Batch { ballot: *ballot, stamp, commands };
            if self.node.config().planted.has(PlantedBug::TimeBackwards) {
                batch.stamp = Time(self.now.wall);
            }
            let entry = LogEntry::Batch(batch);
            if self.has_planted(PlantedBug::RangesWeighNothing)
                && entry.encode().len() > self.settings.entry_bytes
            {
                let LogEntry::Batch(batch) = entry else { return Ok(()) };
                let commands: Vec<_> =
                    batch.commands.into_iter().map(|command| self.weigh(command)).collect();
                self.leadership.queue.extend(commands);
                return Ok(());
            }
            if self.append(&entry)? {
                self.note_ordered(stamp, &entry);
            } else {
                // The commands are lost here and come again: whoever has them as outstanding
                // forwards them after a while, and ends of sessions are ordered again.
                self.liveness.order_ends_again();
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether another entry may be on its way: all of them fit into one frame, for a follower that
    /// comes back.
    fn has_room(&mut self) -> bool {
        let decided = self.node.decided_index();
        let Leadership { undecided, undecided_bytes, .. } = &mut self.leadership;
        while let Some((_, bytes)) = undecided.pop_front_if(|(index, _)| *index < decided) {
            *undecided_bytes -= bytes;
        }
        let in_flight = self.node.accepted_index() - decided;
        let waits = *undecided_bytes < IN_FLIGHT_BYTES;
        // What is ordered faster than it is applied would only wait, and take its place from what
        // comes later and is more urgent.
        let unapplied = decided.saturating_sub(self.applied) + self.machine.backlog() as u64;
        in_flight < self.settings.in_flight && waits && unapplied < UNAPPLIED
    }

    /// Whether there are commands to order, or an alarm is due for which no batch is on its way.
    fn has_work(&mut self) -> bool {
        let due = self.machine.next_due();
        let all_applied = self.machine.is_idle();
        let counts = self.has_planted(PlantedBug::DueBeforeReign);
        let Role::Leading(_, clock) = &mut self.leadership.role else {
            return false;
        };
        // A batch that was ordered and is not applied takes alarms along up to its stamp. Once it is
        // applied, what it has left is due like any other.
        let on_its_way = self
            .leadership
            .last_ordered
            .filter(|stamp| *stamp > self.machine.now() || !all_applied || counts);
        let is_due = due.is_some_and(|due| {
            on_its_way.is_none_or(|stamp| due > stamp) && due <= clock.read(self.now)
        });
        is_due || !self.leadership.queue.is_empty()
    }

    /// A batch of this leader is in the log.
    fn note_ordered(&mut self, stamp: Time, entry: &LogEntry) {
        self.leadership.last_ordered = Some(stamp);
        if let LogEntry::Batch(batch) = entry {
            self.leadership.queue.note_ordered(&batch.commands);
        }
    }

    /// Commands of a batch that counts are handed to the machine.
    pub(super) fn note_applied(&mut self, commands: &[Command]) {
        self.outstanding.applied(commands);
        self.leadership.queue.applied(commands);
    }

    fn next_commands(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        let mut bytes = 0;
        while commands.len() < self.settings.batch_commands
            && let Some(next) = self.leadership.queue.next_bytes()
            && (commands.is_empty() || bytes + next <= self.settings.batch_bytes)
        {
            let Weighed { command, bytes: own } =
                self.leadership.queue.pop().expect("it was just weighed");
            if let Command::ExpireSession { session } = command
                && !self.liveness.is_ending(session)
            {
                // Its client was heard of while the end waited here.
                continue;
            }
            bytes += own;
            commands.push(command);
        }
        commands
    }

    /// Appends an entry. False when this replica may not, or not in this turn.
    fn append(&mut self, entry: &LogEntry) -> Result<bool, ReplicaError> {
        let bytes = entry.encode();
        let length = bytes.len();
        // Commands were weighed before, each by its encoding.
        let most = self.settings.entry_bytes;
        assert!(length <= most, "an entry of {length} bytes was made, which the log does not take");
        match self.node.append(bytes.into()) {
            Ok(index) => {
                self.leadership.undecided.push_back((index, length));
                self.leadership.undecided_bytes += length;
                Ok(true)
            }
            Err(AppendError::NotLeading | AppendError::TurnFull) => Ok(false),
            Err(AppendError::TooLarge { bytes }) => {
                panic!("a batch of {bytes} bytes was made, which no entry may have")
            }
            Err(AppendError::Node(error)) => Err(error.into()),
        }
    }

    /// The time with which this replica would stamp a batch now, if it leads.
    pub fn leader_time(&mut self) -> Option<Time> {
        match &mut self.leadership.role {
            Role::Leading(_, clock) => Some(clock.read(self.now)),
            Role::Following | Role::Elected(_) | Role::Starting(_) => None,
        }
    }

    /// Tells the leader which clients were heard of. A replica that follows itself and does not lead
    /// may be the only one to do so for seconds (`paxos/outside.rs`), in which its clients' sessions
    /// must not expire: it tells everybody.
    pub(super) fn report_liveness(&mut self) {
        let Some((leader, _)) = self.followed else {
            return;
        };
        let heard = self.liveness.take_heard();
        if heard.is_empty() {
            return;
        }
        if self.is_leading() {
            self.liveness.report(&heard, self.now.monotonic);
        } else if leader == self.node.config().replica {
            for peer in self.peers() {
                self.outgoing.push((peer, PeerMessage::Alive(heard.clone())));
            }
        } else {
            self.outgoing.push((leader, PeerMessage::Alive(heard)));
        }
    }

    /// Orders the end of sessions that nobody hears of.
    pub(super) fn expire_sessions(&mut self) {
        if !self.is_leading() {
            return;
        }
        let expired = self.liveness.expired(self.machine.sessions(), self.now.monotonic);
        let ends = expired.into_iter().map(|session| Command::ExpireSession { session }.into());
        self.leadership.queue.extend(ends);
    }
}
