//! One life of a replica: the core of the product, and a shell around it as small as can be.
//!
//! A turn is that of the product's driver (`process/turn.rs`): the clocks, inputs, the end of the turn
//! with its one sync, a slice of the kernel's work, outputs, the end of the turn again.
//! Invariant: everything that the core puts out is checked before anybody else sees it.

mod turn;

use std::collections::VecDeque;

use bytes::Bytes;
use gesmas::{
    paxos::{self, Node, NodeConfig, Workarounds},
    replica::{Held, Moment, NotTaken, Output, Question, Replica, ReplicaError},
    snapshot::{Done, Job},
};
use gesmas_machine::{
    ClassName, CodeHash, Command, Effect, Engine as _, Machine, Planted, PlantedBug, Position,
    Progress, Replace, STATE_MACHINE_VERSION, Settings, Step, Trial,
};

use self::turn::Closing;
use super::{
    profile::Profile,
    router::{Connection, Router, Waiting},
};
use crate::{
    checkers::History,
    disk::Disk,
    engine::SimulatedEngine,
    messages::{Ask, Tell},
    options::Plant,
    prng::mix,
    verdict::Violation,
    vessel,
};

/// Something that a replica has to handle.
pub(super) enum Input {
    Tick,
    Client(Connection, Ask),
    PeerUp { peer: u64, connection: u64 },
    PeerConnected { peer: u64, connection: u64 },
    PeerGone(u64),
    Peer { peer: u64, connection: u64, frame: Bytes },
    Compiled(CodeHash),
    SnapshotDone(Done),
}

/// Fuel of a trial and of a slice of it: a body of a script takes some units.
const TRIAL_FUEL: u64 = 1_000;
const SLICE_FUEL: u64 = 4;

/// Why a turn ended early.
pub(super) enum Stop {
    /// A promise is broken.
    Broken(Violation),
    /// The core says that the replica must stop.
    Failed(ReplicaError),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

impl From<ReplicaError> for Stop {
    fn from(error: ReplicaError) -> Self {
        Self::Failed(error)
    }
}

/// What a turn puts out.
#[derive(Default)]
pub(super) struct Turn {
    /// Frames: peer, connection, bytes.
    pub(super) frames: Vec<(u64, u64, Bytes)>,
    pub(super) tells: Vec<(Connection, Tell)>,
    pub(super) effects: Vec<Effect>,
    pub(super) compile: Vec<CodeHash>,
    pub(super) jobs: Vec<Job>,
    pub(super) more: bool,
    /// Connections with peers are to be made anew.
    pub(super) reconnect: bool,
    /// Leaders that it took over from.
    pub(super) takeovers: u64,
    /// Leads that it took because it was asked to.
    pub(super) transfers: u64,
    /// Frames that it took while its log was made durable.
    pub(super) settled: u64,
    /// Trials that went to their ends.
    pub(super) trials: u64,
}

/// Workarounds of the node that a plant leaves on.
fn workarounds(plant: Option<Plant>) -> Workarounds {
    let all = Workarounds::ALL;
    match plant {
        Some(Plant::NoReturn) => Workarounds { return_from_outside: false, ..all },
        Some(Plant::Bug(PlantedBug::StaleBatchCounts)) => {
            Workarounds { append_only_while_leading: false, refuse_foreign_proposals: false, ..all }
        }
        _ => all,
    }
}

fn planted(plant: Option<Plant>, replica: u64) -> Planted {
    let bug = plant.and_then(Plant::bug);
    bug.map_or_else(Planted::default, |bug| Planted::new(bug, replica))
}

/// See the file's head.
pub(super) struct Process {
    pub(super) replica: Replica<SimulatedEngine>,
    pub(super) inbox: VecDeque<Input>,
    id: u64,
    router: Router,
    plant: Option<Plant>,
    slice: usize,
    /// Pieces of work that the machine has done.
    pieces: usize,
    /// Snapshots that were found damaged when it started.
    pub(super) damaged_snapshots: u64,
    /// Whether its state may be another than that of others, so that it is not compared.
    pub(super) wrong: bool,
    /// Whether faults go on.
    pub(super) faulty: bool,
    /// One past the last decided entry that was compared.
    compared: u64,
    /// A turn that is closed and whose log is being made durable.
    closing: Option<Closing>,
    /// A replacement that an operator has tried.
    trial: Option<Trial>,
    /// Trials that went to their ends.
    pub(super) trials: u64,
    /// Connections to peers, by id.
    outgoing: Vec<Option<u64>>,
    /// Newest connections from peers, by id.
    incoming: Vec<u64>,
}

impl Process {
    /// Starts a replica from its disk.
    pub(super) fn start(
        id: u64,
        disk: &Disk,
        profile: &Profile,
        engine: SimulatedEngine,
        plant: Option<Plant>,
        (now, history): (Moment, &History),
    ) -> Result<Self, ReplicaError> {
        let log = paxos::share(disk.open_log()?);
        let members: Vec<u64> = (1..=profile.replicas as u64).collect();
        let (workarounds, planted) = (workarounds(plant), planted(plant, id));
        let config = NodeConfig { workarounds, planted, ..NodeConfig::new(1, 1, id, members) };
        let node = Node::recover(config, &log)?;
        let index = usize::try_from(id).expect("ids are small") - 1;
        let settings = Settings { live_activations: profile.live_activations[index] };
        let (newest, damaged) =
            disk.snapshots().newest().expect("a disk of this replica does not fail");
        let all = disk.snapshots().list().expect("a disk of this replica does not fail");
        let (mut machine, held) = match newest {
            None => (Machine::new(engine, settings), Held::default()),
            Some(loaded) => {
                let index = loaded.head.index;
                let previous = all.into_iter().rfind(|older| *older < index);
                let machine = Machine::from_snapshot(loaded.snapshot, engine, settings)?;
                (machine, Held { newest: Some(index), previous })
            }
        };
        machine.plant(planted);
        let mut replica_settings = profile.settings(id);
        // Each life would give a new disk another number.
        replica_settings.disk = u128::from(now.wall) << 8 | u128::from(id);
        let compared = node.first_index();
        let pieces = history.pieces(held.newest.unwrap_or(0));
        Ok(Self {
            replica: Replica::new(replica_settings, node, log, machine, held, now)?,
            damaged_snapshots: damaged.len() as u64,
            inbox: VecDeque::new(),
            id,
            router: Router::default(),
            plant,
            slice: profile.slice,
            pieces,
            compared,
            closing: None,
            trial: None,
            trials: 0,
            wrong: false,
            faulty: true,
            outgoing: vec![None; profile.replicas + 1],
            incoming: vec![0; profile.replicas + 1],
        })
    }

    /// Lets the kernel work piece by piece, and compares its state after each. Between two turns it is
    /// handed what was decided.
    fn work(&mut self, history: &mut History, between: bool) -> Result<Progress, Stop> {
        if self.wrong {
            return self.put_out(u32::try_from(self.slice).unwrap_or(u32::MAX), between);
        }
        let mut idle = false;
        for _ in 0..self.slice {
            let before = self.replica.machine().statistics();
            if self.replica.machine_mut().run(1) != Progress::More {
                idle = true;
                break;
            }
            let is_new = history.state(self.id, self.pieces, self.state())?;
            self.pieces += 1;
            let machine = self.replica.machine();
            let done = (before, machine.statistics());
            history.note_work(is_new, done, machine.is_between_entries());
            if machine.is_between_entries() {
                let index = self.replica.applied() - machine.backlog() as u64;
                history.applied(self.id, index, self.pieces)?;
            }
        }
        // The core takes the effects; it takes entries and serves reads when nothing is left to do.
        self.put_out(u32::from(idle), between)
    }

    fn put_out(&mut self, budget: u32, between: bool) -> Result<Progress, Stop> {
        Ok(if between { self.replica.apply(budget)? } else { self.replica.work(budget) })
    }

    /// An operator tries to replace the class of vessels. It goes on in slices, one a turn.
    pub(super) fn try_replacement(&mut self, cancel_pinned: bool) {
        let class = ClassName::new("Vessel").expect("it is a name");
        let machine = self.replica.machine_mut();
        let waits = !machine.is_between_entries() || machine.waits_for_code().is_some();
        let ready = machine.class(&class).is_some_and(|class| class.ready);
        if waits || !ready || self.trial.is_some() {
            return;
        }
        let module = vessel::SECOND.as_bytes();
        let code = CodeHash::of(module);
        machine.engine_mut().install(code);
        let limits = machine.limits().module;
        let interface = machine.engine().inspect("Vessel", module, STATE_MACHINE_VERSION, &limits);
        let interface = interface.expect("it is a script");
        let replace = Replace { cancel_pinned };
        self.trial = machine.begin_trial(&class, code, &interface, replace, TRIAL_FUEL).ok();
    }

    fn go_on_with_trial(&mut self) {
        let Some(trial) = &mut self.trial else { return };
        if self.replica.machine_mut().go_on_with_trial(trial, SLICE_FUEL).is_some() {
            self.trial = None;
            self.trials += 1;
        }
    }

    /// A number that stands for the state of the machine.
    fn state(&self) -> u64 {
        let machine = self.replica.machine();
        let sum = machine.total().0;
        let halves = [sum as u64, (sum >> 64) as u64];
        let more = [
            machine.step().0,
            machine.now().0,
            machine.next_due().map_or(0, |due| due.0),
            u64::from(machine.ballot().number),
            machine.ballot().replica,
        ];
        halves.iter().chain(&more).fold(0, |state, part| mix(state ^ part))
    }

    fn handle(&mut self, input: Input, history: &History, out: &mut Turn) -> Result<(), Stop> {
        let index = |peer: u64| usize::try_from(peer).expect("ids are small");
        match input {
            Input::Tick => {
                // What was put aside while it stood still may be installed now.
                let before = self.replica.snapshot_counts().installed;
                self.replica.handle_tick()?;
                self.note_installed(before, history);
            }
            Input::Client(connection, ask) => self.ask(connection, ask, out),
            Input::PeerGone(peer) => self.replica.handle_gone(peer)?,
            Input::PeerUp { peer, connection } => {
                self.outgoing[index(peer)] = Some(connection);
                self.replica.handle_reconnected(peer)?;
            }
            Input::PeerConnected { peer, connection } => {
                self.incoming[index(peer)] = connection;
                self.replica.handle_reconnected(peer)?;
            }
            Input::Peer { peer, connection, frame } => {
                if self.incoming[index(peer)] == connection {
                    let outcome = self.replica.handle_frame(peer, frame)?;
                    outcome.map_err(|error| {
                        let message = format!("{} refuses a frame of {peer}: {error}", self.id);
                        Violation::new("peers", message)
                    })?;
                }
            }
            Input::SnapshotDone(done) => {
                let before = self.replica.snapshot_counts().installed;
                self.replica.handle_done(done)?;
                self.note_installed(before, history);
            }
            Input::Compiled(code) => {
                self.replica.machine_mut().engine_mut().install(code);
                self.replica.handle_compiled(code, None);
            }
        }
        Ok(())
    }

    fn note_installed(&mut self, before: u64, history: &History) {
        if self.replica.snapshot_counts().installed > before {
            self.pieces = history.pieces(self.replica.applied());
        }
    }

    fn ask(&mut self, connection: Connection, ask: Ask, out: &mut Turn) {
        if self.replica.turns_away() {
            out.tells.push((connection, Tell::Away));
            return;
        }
        let ordered: Result<(), NotTaken> = match ask {
            Ask::Open { nonce, timeout } => {
                self.router.open(nonce, connection);
                let principal = format!("client-{}", connection.0);
                self.replica.handle_command(Command::OpenSession { nonce, principal, timeout })
            }
            Ask::KeepAlive { session, asked, events } => {
                self.router.attach(session, connection);
                let swallowed = self.plant == Some(Plant::SwallowedKeepAlives);
                let alive = (!swallowed).then_some(session);
                let wait = Waiting::Session { connection, session, asked, events };
                let question =
                    Question { read: None, seen: Position::default(), stale: false, alive };
                self.replica.handle_read(self.router.wait(wait), question).map_err(NotTaken::from)
            }
            Ask::Request(request) => {
                self.router.attach(request.place.session, connection);
                self.replica.handle_command(Command::Request(*request))
            }
            Ask::Cancel { place, acknowledged } => {
                self.router.attach(place.session, connection);
                self.replica.handle_command(Command::Cancel { place, acknowledged })
            }
            Ask::Acknowledge { session, acknowledged } => {
                self.replica.handle_command(Command::Acknowledge { session, acknowledged })
            }
            Ask::Close { session } => {
                self.router.attach(session, connection);
                self.replica.handle_command(Command::CloseSession { session })
            }
            Ask::Read { session, correlation, read, seen } => {
                self.router.attach(session, connection);
                let stale = self.plant == Some(Plant::StaleReads);
                let id = self.router.wait(Waiting::Read { connection, correlation });
                let seen = Position { epoch: 0, step: if stale { Step(0) } else { seen } };
                self.replica
                    .handle_read(id, Question { read: Some(*read), seen, stale, alive: None })
                    .map_err(NotTaken::from)
            }
        };
        if ordered.is_err() {
            out.tells.push((connection, Tell::Busy));
        }
    }

    fn route(&mut self, out: &mut Turn) {
        while let Some(output) = self.replica.poll_output() {
            match output {
                Output::Effect(effect) => {
                    self.route_effect(&effect, out);
                    out.effects.push(effect);
                }
                Output::Read { id, result } => {
                    if let Some(Waiting::Read { connection, correlation }) =
                        self.router.take_waiting(id)
                    {
                        let step = self.replica.machine().step();
                        out.tells.push((connection, Tell::ReadReply { correlation, step, result }));
                    }
                }
                // Clients ask again after a while, and get what their sessions hold.
                Output::Replaced | Output::Piece { .. } => {}
                Output::NotSeen { id } => panic!("{id:?}: clients have seen what they say"),
                Output::CaughtUp { id } => {
                    if let Some(waiting) = self.router.take_waiting(id) {
                        self.answer_keep_alive(&waiting, out);
                    }
                }
            }
        }
    }

    /// The leader has heard of the client. Events that the client lacks go along.
    fn answer_keep_alive(&self, waiting: &Waiting, out: &mut Turn) {
        let Waiting::Session { connection, session, asked, events } = *waiting else { return };
        let machine = self.replica.machine();
        if machine.last_admitted(session).is_none() {
            out.tells.push((connection, Tell::Over { session, reason: None }));
            return;
        }
        out.tells.push((connection, Tell::Alive { session, asked }));
        for (number, _, payload) in machine.pending_events(session, events).events {
            out.tells.push((connection, Tell::Event { session, number, payload }));
        }
    }

    fn route_effect(&mut self, effect: &Effect, out: &mut Turn) {
        let tell = match effect {
            Effect::SessionOpened { nonce, session } => {
                if let Some(connection) = self.router.take_opening(*nonce) {
                    if let Ok(session) = session {
                        self.router.attach(*session, connection);
                    }
                    let (nonce, session) = (*nonce, session.clone());
                    out.tells.push((connection, Tell::Opened { nonce, session }));
                }
                return;
            }
            Effect::Compile { code, .. } => {
                out.compile.push(*code);
                return;
            }
            Effect::SessionOver { session, reason } => {
                (*session, Tell::Over { session: *session, reason: Some(*reason) })
            }
            Effect::Reply { session, number, position, outcome } => {
                let (number, step, outcome) = (*number, position.step, outcome.clone());
                (*session, Tell::Reply { session: *session, number, step, outcome })
            }
            Effect::Event { session, number, payload, .. } => {
                let (number, payload) = (*number, payload.clone());
                (*session, Tell::Event { session: *session, number, payload })
            }
            Effect::Refused { session, number, refusal } => {
                let (number, refusal) = (*number, refusal.clone());
                (*session, Tell::Refused { session: *session, number, refusal })
            }
            _ => return,
        };
        let (session, tell) = tell;
        if let Some(connection) = self.router.of_session(session) {
            out.tells.push((connection, tell));
        }
        if matches!(effect, Effect::SessionOver { .. }) {
            self.router.detach(session);
        }
    }
}
