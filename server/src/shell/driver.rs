//! The driver: the task that owns the core of a replica, on a thread that it shares with the sockets.
//!
//! A turn: take inputs, hand them to the core, send what it orders, make the log durable (one fsync)
//! while the kernel works a slice on what is decided by now, send what came out, and once more for what
//! that has decided. Between turns, and while another thread makes the log durable, the sockets get the
//! thread: all that has arrived is then taken in one turn, but for what lets a leader reply at once
//! (`driver/meanwhile.rs`). It sleeps only when there is no input and the kernel is idle.
//! What inputs mean is beside: `sessions.rs`, `requests.rs`; what comes out: `outputs.rs`.
//! Invariants: whatever stops the core stops the process; a client gets nothing that is not
//! durable, since effects come of decided entries only.

mod meanwhile;

use std::collections::BTreeMap;

use bytes::Bytes;
use gesmas_coroutine::BothEngines;
use gesmas_machine::{CodeHash, Command, Progress, SessionId};
use gesmas_protocol::{self as protocol, ClientMessage};
use tokio::sync::{oneshot, watch};

use super::{
    compiler::CompilerQueue,
    convert,
    input::{ConnectionId, HostClock, Input, Inputs},
    keeper::Keeper,
    lines::Lines,
    outbox::{Outbox, Refused},
    questions::Questions,
    router::Router,
    secret::Tags,
    spans::Spans,
    standard::StandardClasses,
    syncer::Syncer,
    trial::Trials,
};
use crate::{
    paxos,
    replica::{ReadId, Replica, ReplicaError},
    trace::Tracer,
};

/// Inputs taken in one turn: enough to fill a batch, few enough to keep heartbeats coming.
const TURN_INPUTS: usize = 1_024;
/// Lines of the log that methods may write in a second, on this replica.
const GUEST_LINES: u32 = 1_000;
/// Lines for handlers that fail in a second. The faults themselves are state (`gesmas fault`).
const FAULT_LINES: u32 = 20;
/// A turn of so many inputs does not come alone: sockets are read while its log is made durable.
const MANY_INPUTS: usize = 8;

/// What clients of a replica that stands still are told.
const STANDS_STILL: &str =
    "the replica stands still: its disk is full, or it may open no more files";
/// What clients of a replica that has diverged are told.
const DIVERGED: &str = "the replica's state is not the group's";

/// Time after which code is compiled again that could not be, nanoseconds.
const COMPILE_AGAIN: u64 = 10_000_000_000;

/// A peer's link.
#[derive(Default)]
struct Link {
    /// Takes frames to it, while a connection stands, with what they have to have.
    outbox: Option<(Outbox, Tags)>,
    /// Its newest connection to this replica, and what ends it when it is dropped.
    connection: u64,
    held: Option<oneshot::Sender<()>>,
}

/// Why a client waits for the core to catch up.
pub(super) enum Waiting {
    /// A read, under the client's correlation.
    Read { connection: ConnectionId, correlation: u64 },
    /// Whether a session exists that this replica does not know.
    Session { connection: ConnectionId, session: SessionId },
    /// That the leader has heard of a session, whose client asked under this correlation.
    Alive { connection: ConnectionId, session: SessionId, correlation: u64 },
    /// A piece of a snapshot, under the client's correlation.
    Piece { connection: ConnectionId, correlation: u64 },
}

/// How long things may take.
pub(super) struct Pace {
    /// Segments in one turn.
    pub(super) slice: u32,
    /// Time after which a connection ends that has no session and asks for nothing, nanoseconds.
    pub(super) idle: u64,
}

/// See the file's head.
pub(super) struct Driver {
    pub(super) replica: Replica<BothEngines>,
    pub(super) clock: HostClock,
    pub(super) router: Router,
    pub(super) compiler: CompilerQueue,
    keeper: Keeper,
    syncer: Syncer,
    links: BTreeMap<u64, Link>,
    pub(super) waiting: BTreeMap<ReadId, Waiting>,
    pub(super) questions: Questions,
    next_read: u64,
    /// Standard classes that clients need; none where such classes run natively.
    standard: Option<StandardClasses>,
    /// Replacements that operators have tried.
    pub(super) trials: Trials,
    /// Code that could not be compiled here, and when that was known, monotonic nanoseconds.
    pub(super) failed: BTreeMap<CodeHash, u64>,
    slice: u32,
    /// Time after which a connection ends that has no session and asks for nothing, nanoseconds.
    idle: u64,
    /// When this turn began, monotonic nanoseconds.
    now: u64,
    /// Inputs for the next turn, which came while the log was made durable.
    later: Vec<Input>,
    /// Room for those that come then, empty between two syncs.
    arrived: Vec<Input>,
    /// Lines of the log that guests and failing handlers cause.
    pub(super) guest_lines: Lines,
    pub(super) fault_lines: Lines,
    /// How often the replica had stood still by the end of the last turn.
    standstills: u64,
    /// Whether it had diverged by then.
    diverged: bool,
    /// Turns, and inputs taken in them.
    turns: u64,
    inputs: u64,
    /// None if no traces are exported.
    pub(super) spans: Option<Spans>,
    /// What others may know of the replica while it runs.
    leading: watch::Sender<bool>,
}

/// Sends a frame to a peer, if it is connected.
fn send(links: &mut BTreeMap<u64, Link>, peer: u64, frame: &Bytes) {
    let link = links.entry(peer).or_default();
    let Some((outbox, tags)) = &mut link.outbox else { return };
    match outbox.add(|bytes| tags.append(frame, bytes)) {
        Ok(()) => outbox.flush(),
        // A frame that does not fit ends the connection: no gap goes unnoticed.
        Err(Refused) => link.outbox = None,
    }
}

impl Driver {
    pub(super) fn new(
        replica: Replica<BothEngines>,
        clock: HostClock,
        compiler: CompilerQueue,
        keeper: Keeper,
        syncer: Syncer,
        pace: Pace,
        leading: watch::Sender<bool>,
    ) -> Self {
        Self {
            replica,
            clock,
            router: Router::default(),
            compiler,
            standard: None,
            keeper,
            syncer,
            links: BTreeMap::new(),
            waiting: BTreeMap::new(),
            questions: Questions::default(),
            next_read: 1,
            trials: Trials::default(),
            failed: BTreeMap::new(),
            slice: pace.slice,
            idle: pace.idle,
            now: 0,
            later: Vec::new(),
            arrived: Vec::new(),
            guest_lines: Lines::new(GUEST_LINES),
            fault_lines: Lines::new(FAULT_LINES),
            standstills: 0,
            diverged: false,
            turns: 0,
            inputs: 0,
            spans: None,
            leading,
        }
    }

    /// Lets what clients ask for have spans.
    pub(super) fn traced(mut self, tracer: Option<Tracer>) -> Self {
        self.spans = tracer.map(|tracer| Spans::new(tracer, self.replica.machine()));
        self
    }

    /// Works until it is told to stop.
    pub(super) async fn run(mut self, mut inputs: Inputs) -> Result<(), ReplicaError> {
        let mut progress = Progress::Idle;
        let mut taken = Vec::with_capacity(TURN_INPUTS);
        loop {
            taken.append(&mut self.later);
            let works = progress == Progress::More || self.has_trial_work();
            if works || !taken.is_empty() {
                while taken.len() < TURN_INPUTS
                    && let Ok(input) = inputs.try_recv()
                {
                    taken.push(input);
                }
            } else if inputs.recv_many(&mut taken, TURN_INPUTS).await == 0 {
                return Ok(());
            }
            match self.turn(&mut taken, &mut inputs).await? {
                Some(more) => progress = more,
                None => return Ok(()),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Takes inputs and does what follows from them. None when it is told to stop.
    async fn turn(
        &mut self,
        taken: &mut Vec<Input>,
        inputs: &mut Inputs,
    ) -> Result<Option<Progress>, ReplicaError> {
        let moment = self.clock.now();
        self.now = moment.monotonic;
        self.replica.handle_time(moment);
        self.turns += 1;
        self.inputs += taken.len() as u64;
        let busy = taken.len() >= MANY_INPUTS;
        for input in taken.drain(..) {
            if matches!(input, Input::Stop) {
                self.router.say_goodbye("the replica is stopping");
                self.end_spans();
                return Ok(None);
            }
            self.handle(input)?;
        }
        self.replica.take_decided_early()?;
        self.finish_turn(busy, inputs).await?;
        let progress = self.replica.apply(self.slice)?;
        self.put_out();
        // What the kernel did may let the core order or send more.
        self.finish_turn(false, inputs).await?;
        self.mind_standstill();
        self.go_on_with_trials();
        self.router.flush();
        Ok(Some(progress))
    }

    /// Sends what the core orders, and makes the log durable while the kernel works on what it has.
    async fn finish_turn(&mut self, busy: bool, inputs: &mut Inputs) -> Result<(), ReplicaError> {
        let links = &mut self.links;
        let closed = self.replica.close_turn(&mut |peer, frame| send(links, peer, &frame))?;
        let unsynced = self.replica.unsynced_log().filter(|_| closed);
        let alone = !busy && self.replica.machine().is_idle();
        let synced = match unsynced {
            Some(log) if alone => paxos::sync(&log),
            Some(log) => self.sync_beside(&log, inputs).await?,
            None => {
                self.work();
                Ok(())
            }
        };
        if closed {
            let links = &mut self.links;
            self.replica.open_turn(synced, &mut |peer, frame| send(links, peer, &frame))?;
        }
        while let Some(job) = self.replica.poll_job() {
            self.keeper.add(job);
        }
        let leads = self.replica.is_leading() && !self.replica.turns_away();
        self.leading.send_if_modified(|leading| std::mem::replace(leading, leads) != leads);
        Ok(())
    }

    fn work(&mut self) {
        self.replica.work(self.slice);
        self.put_out();
    }

    fn put_out(&mut self) {
        if let Some(spans) = &mut self.spans {
            spans.note_blocked(self.replica.machine());
        }
        self.route_outputs();
        self.router.flush();
    }

    pub(super) fn end_spans(&mut self) {
        if let Some(spans) = &mut self.spans {
            spans.end_all(self.replica.machine());
        }
    }

    fn handle(&mut self, input: Input) -> Result<(), ReplicaError> {
        match input {
            Input::Tick => {
                self.replica.handle_tick()?;
                self.compile_again();
                for id in self.questions.expire(self.now) {
                    self.replica.forget_read(id);
                }
                self.router.end_idle(self.now, self.idle);
                if self.replica.take_reconnect() {
                    // What comes of older connections does not count from now on.
                    self.links.clear();
                }
            }
            Input::ClientConnected { connection, principal, outbox } => {
                self.router.connect(connection, principal, outbox, self.now);
            }
            Input::ClientGone(connection) => self.client_gone(connection),
            Input::Client(connection, message) => self.client_message(connection, message),
            Input::PeerUp { peer, outbox, tags } => {
                self.links.entry(peer).or_default().outbox = Some((outbox, tags));
                self.replica.handle_reconnected(peer)?;
            }
            Input::PeerConnected { peer, connection, held } => {
                let link = self.links.entry(peer).or_default();
                (link.connection, link.held) = (connection, Some(held));
                self.replica.handle_reconnected(peer)?;
            }
            Input::PeerGone(peer) => self.replica.handle_gone(peer)?,
            Input::Peer { peer, connection, body } => self.peer_frame(peer, connection, body)?,
            Input::Compiled(done) => self.compiled(done),
            Input::SnapshotDone(done) => self.replica.handle_done(done)?,
            Input::KeeperBroke => panic!("the keeper of snapshots panicked"),
            Input::Stop => panic!("the turn handles the stop"),
        }
        Ok(())
    }

    fn peer_frame(&mut self, peer: u64, connection: u64, body: Bytes) -> Result<(), ReplicaError> {
        let current = self.links.get(&peer).is_some_and(|link| link.connection == connection);
        if !current {
            return Ok(());
        }
        if let Err(error) = self.replica.handle_frame(peer, body)? {
            tracing::error!(peer, %error, "a frame of a peer is refused, and its connection ended");
            // What follows in it must not count, as if nothing were missing.
            self.links.insert(peer, Link::default());
        }
        Ok(())
    }

    /// Code that could not be compiled here and that the kernel waits for is compiled again after a
    /// while: a majority could compile it, so what failed is this host.
    fn compile_again(&mut self) {
        let now = self.clock.now().monotonic;
        let machine = self.replica.machine();
        let Some(code) = machine.waits_for_code() else { return };
        let failed = self.failed.get(&code).copied();
        if failed.is_none_or(|at| now.saturating_sub(at) < COMPILE_AGAIN) {
            return;
        }
        if let Some(module) = machine.module_of(code) {
            tracing::warn!(%code, "a class that could not be compiled here is tried again");
            self.failed.remove(&code);
            self.compile(code, module);
        }
    }

    /// The clients of a replica that stands still, or that has diverged, are to go elsewhere.
    fn mind_standstill(&mut self) {
        let (standstills, diverged) = (self.replica.standstills(), self.replica.has_diverged());
        if std::mem::replace(&mut self.standstills, standstills) != standstills {
            self.router.say_goodbye(STANDS_STILL);
        }
        if std::mem::replace(&mut self.diverged, diverged) != diverged {
            self.router.say_goodbye(DIVERGED);
        }
    }

    fn client_gone(&mut self, connection: ConnectionId) {
        self.router.disconnect(connection);
        self.trials.forget_of(connection);
        let gone: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| match waiting {
                Waiting::Read { connection: at, .. }
                | Waiting::Session { connection: at, .. }
                | Waiting::Alive { connection: at, .. }
                | Waiting::Piece { connection: at, .. } => *at == connection,
            })
            .map(|(id, _)| *id)
            .chain(self.questions.forget_of(connection))
            .collect();
        for id in gone {
            self.waiting.remove(&id);
            self.replica.forget_read(id);
            if let Some(spans) = &mut self.spans {
                spans.forget_read(id);
            }
        }
    }

    fn client_message(&mut self, connection: ConnectionId, message: ClientMessage) {
        if let Some(reason) = self.turned_away()
            && !matches!(message, ClientMessage::Admin(_))
        {
            return self.router.send_away(connection, reason);
        }
        let asks = matches!(message, ClientMessage::Read(_) | ClientMessage::Admin(_));
        self.router.heard(connection, self.now, asks);
        match message {
            ClientMessage::Hello(_) => panic!("the connection handles the greeting"),
            ClientMessage::OpenSession(open) => self.open_session(connection, &open),
            ClientMessage::AttachSession(attach) => self.attach_session(connection, attach),
            ClientMessage::CloseSession(close) => {
                let session = SessionId(close.session);
                // Should there be no room, the client says it again or the session expires.
                let _full = self.replica.handle_command(Command::CloseSession { session });
                self.attach_to_close(connection, session);
            }
            ClientMessage::KeepAlive(keep) => self.keep_alive(connection, &keep),
            ClientMessage::Request(request) => self.request(connection, request),
            ClientMessage::Cancel(cancel) => self.cancel(connection, cancel),
            ClientMessage::Acknowledge(acknowledge) => {
                let session = SessionId(acknowledge.session);
                let acknowledged = convert::acknowledged(acknowledge.acknowledged);
                // Should there be no room, a later message carries it.
                let _full =
                    self.replica.handle_command(Command::Acknowledge { session, acknowledged });
            }
            ClientMessage::Read(read) => self.read(connection, read),
            ClientMessage::Admin(admin) => self.admin(connection, admin),
        }
    }

    /// Why clients must go elsewhere, if they must.
    pub(super) fn turned_away(&self) -> Option<&'static str> {
        let reason = if self.replica.has_diverged() { DIVERGED } else { STANDS_STILL };
        self.replica.turns_away().then_some(reason)
    }

    /// Standard classes are loaded through this from now on, but for a program that has classes of its
    /// own in it: whoever runs it says which code has a standard name.
    pub(super) fn load_standard_classes(&mut self, standard: StandardClasses) {
        let native = self.replica.machine().engine().native.classes().next().is_some();
        self.standard = (!native).then_some(standard);
    }

    /// A refusal for a client: one for want of a standard class has that loaded.
    pub(super) fn refusal(&self, refusal: gesmas_machine::Refusal) -> protocol::Refusal {
        convert::refusal(match &self.standard {
            Some(standard) => standard.instead_of(refusal),
            None => refusal,
        })
    }

    pub(super) fn next_read(&mut self) -> ReadId {
        self.next_read += 1;
        ReadId(self.next_read)
    }

    /// Where the kernel stands.
    pub(super) fn position(&self) -> protocol::Position {
        convert::position(self.replica.machine().position())
    }

    /// Counts for operators.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let (exported, lost) = self.spans.as_ref().map_or((0, 0), Spans::counts);
        let spans = [("spans_exported", exported), ("spans_lost", lost)];
        let own = [("turns", self.turns), ("inputs", self.inputs)].into_iter().chain(spans);
        own.chain(self.router.counts()).collect()
    }

    /// Peers to which a connection stands.
    pub(super) fn connected_peers(&self) -> Vec<u64> {
        let open = |link: &Link| link.outbox.as_ref().is_some_and(|(outbox, _)| outbox.is_open());
        let links = self.links.iter().filter(|(_, link)| open(link));
        links.map(|(peer, _)| *peer).collect()
    }
}
