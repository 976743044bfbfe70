//! The machine: entries of the log in, effects out.
//!
//! ```text
//! handle_entry ──► inbox ──► run(budget): batch ─► due alarms ─► commands ──► poll_effect
//!                         └ each a step: begin, act, agenda, drain the ready list, end
//! ```
//!
//! Methods are of three kinds: `handle_*` take input, `run` works, `poll_*` and the getters give
//! output. The order of scheduling is Algorithm 1 of the GESMAS paper: a command runs until it ends
//! or blocks, then the ready list is drained in FIFO order, only then is the next command taken.
//! `run` works in slices, so that a step that wakes a million callers holds up nobody's heartbeat.
//! The agenda is what is left of a command that ends many invocations at once.
//! Invariants: between steps agenda, ready list and undo log are empty, so that no command ever
//! meets a permit in flight; effects leave when their step is over; alarms go off in batches only,
//! and in each as many as its share of fuel allows, so that they never keep commands out;
//! reads and images are taken between entries only.
//! Not here: what commands do (`steps/`), how bodies run (`execute/`).

use std::collections::VecDeque;

use crate::{
    checkpoint::OwnCheckpoints,
    code::CodeHash,
    command::{Batch, Command, Genesis, LogEntry},
    effect::{Effect, Position},
    engine::Engine,
    execute::Live,
    image::Snapshot,
    limits::Limits,
    names::{AlarmId, SessionId, Step, Time},
    overrides::Override,
    planted::PlantedBug,
    state::{Alarm, State},
    statistics::Statistics,
    steps::Task,
    sum::Sum,
    world::World,
};

/// Fuel that an alarm is charged with besides what its handler uses up.
const ALARM_FUEL: u64 = 10_000;

/// Settings of one replica's machine. Results do not depend on them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Blocked invocations whose instances are kept; beyond it they are parked as journals.
    pub live_activations: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { live_activations: 1_000 }
    }
}

/// How far [`Machine::run`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Every entry is applied.
    Idle,
    /// There is more to do.
    More,
    /// Nothing can be done before this code is compiled.
    Paused(CodeHash),
}

/// The replicated state machine of one group.
#[derive(Debug)]
pub struct Machine<E> {
    pub(crate) world: World,
    pub(crate) engine: E,
    pub(crate) settings: Settings,
    pub(crate) statistics: Statistics,
    pub(crate) live: Live,
    /// Room for the journal of the next call: of most calls it is used again and again.
    pub(crate) journal_room: Vec<u8>,
    /// Fuel that bodies have spent since it was made, replays included.
    pub(crate) spent: u64,
    /// Fuel that bodies have spent in the current batch, replays excluded: equal on all replicas.
    pub(crate) metered: u64,
    /// Alarms that went off in the current batch.
    alarms: u64,
    /// Numbers drawn in the current step.
    pub(crate) draws: u64,
    /// Code that must be compiled before anything goes on.
    pub(crate) paused: VecDeque<CodeHash>,
    inbox: VecDeque<LogEntry>,
    /// What is left of the current batch.
    commands: VecDeque<Command>,
    /// Whether alarms that the stamp of the current batch reached may be left.
    alarms_open: bool,
    /// What is left of the current command, before the ready list is drained.
    pub(crate) agenda: VecDeque<Task>,
    step_open: bool,
    outbox: VecDeque<Effect>,
    snapshot: SnapshotRequest,
    /// What this replica voted for. Not state.
    pub(crate) checkpoints: OwnCheckpoints,
    /// Invocations that end instead of going on, each at a step.
    pub(crate) overrides: Vec<Override>,
}

/// A snapshot that was asked for.
#[derive(Debug, Default)]
enum SnapshotRequest {
    #[default]
    None,
    Wanted,
    /// Taken, with the entries that waited then.
    Taken(Box<Snapshot>, usize),
}

/// Why a machine cannot take part in a group.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The group runs another engine or another version of the machine.
    #[error(
        "the group runs state machine version {group_version} on {group_engine}, this replica has \
         version {own_version} on {own_engine}: run the same release on every replica"
    )]
    Incompatible {
        /// Version of the group.
        group_version: u32,
        /// Engine of the group.
        group_engine: String,
        /// Version of this replica.
        own_version: u32,
        /// Engine of this replica.
        own_engine: String,
    },
}

impl<E: Engine> Machine<E> {
    /// A machine before the first entry of the log.
    pub fn new(engine: E, settings: Settings) -> Self {
        Self::with_state(State::new(), engine, settings)
    }

    pub(crate) fn with_state(state: State, engine: E, settings: Settings) -> Self {
        Self {
            world: World::new(state),
            engine,
            settings,
            statistics: Statistics::default(),
            live: Live::default(),
            journal_room: Vec::new(),
            spent: 0,
            metered: 0,
            alarms: 0,
            draws: 0,
            paused: VecDeque::new(),
            inbox: VecDeque::new(),
            commands: VecDeque::new(),
            alarms_open: false,
            agenda: VecDeque::new(),
            step_open: false,
            outbox: VecDeque::new(),
            snapshot: SnapshotRequest::None,
            checkpoints: OwnCheckpoints::default(),
            overrides: Vec::new(),
        }
    }

    /// Forgets everything that is left to do.
    pub(crate) fn forget_work(&mut self) {
        self.inbox.clear();
        self.commands.clear();
        self.agenda.clear();
        self.paused.clear();
        self.alarms_open = false;
        self.step_open = false;
        self.snapshot = SnapshotRequest::None;
        self.checkpoints = OwnCheckpoints::default();
    }

    /// Asks for a snapshot between this entry of the log and the next.
    pub fn request_snapshot(&mut self) {
        self.snapshot = SnapshotRequest::Wanted;
    }

    /// The snapshot that was asked for, with the number of entries that were handed over by now and
    /// are not in it.
    pub fn poll_snapshot(&mut self) -> Option<(Box<Snapshot>, usize)> {
        match std::mem::take(&mut self.snapshot) {
            SnapshotRequest::Taken(snapshot, waiting) => Some((snapshot, waiting)),
            other => {
                self.snapshot = other;
                None
            }
        }
    }

    /// Takes the snapshot that was asked for, if this is the moment.
    fn take_snapshot(&mut self) {
        if matches!(self.snapshot, SnapshotRequest::Wanted) && self.is_between_entries() {
            let snapshot = Box::new(self.snapshot());
            self.snapshot = SnapshotRequest::Taken(snapshot, self.inbox.len());
        }
    }

    /// Takes the next entry of the log.
    ///
    /// # Errors
    /// When the entry is the group's first and this replica cannot run the group: it must stop.
    pub fn handle_entry(&mut self, entry: LogEntry) -> Result<(), JoinError> {
        if let LogEntry::Genesis(genesis) = &entry
            && self.world.state.genesis.is_none()
        {
            self.check_genesis(genesis)?;
        }
        self.inbox.push_back(entry);
        Ok(())
    }

    /// Code without which it does not go on, if it waits for some.
    #[must_use]
    pub fn waits_for_code(&self) -> Option<CodeHash> {
        let code = self.paused.front().copied().filter(|_| !self.step_open)?;
        (!self.engine.is_compiled(code)).then_some(code)
    }

    /// Works for about `budget` segments.
    pub fn run(&mut self, budget: u32) -> Progress {
        self.take_snapshot();
        for _ in 0..budget {
            if let Some(code) = self.missing_code() {
                return Progress::Paused(code);
            }
            if !self.advance() {
                return Progress::Idle;
            }
        }
        Progress::More
    }

    /// Code that must be compiled before the next step; what is compiled by now is not waited for.
    fn missing_code(&mut self) -> Option<CodeHash> {
        if self.step_open {
            return None;
        }
        let engine = &self.engine;
        while self.paused.pop_front_if(|code| engine.is_compiled(*code)).is_some() {}
        self.paused.front().copied()
    }

    /// The next effect of the steps that are over.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.outbox.pop_front()
    }

    /// Does the next piece of work. False when there is none.
    fn advance(&mut self) -> bool {
        if let Some(task) = self.agenda.pop_front() {
            self.task(task);
        } else if let Some(id) = self.world.ready.pop_front() {
            self.go_on(id);
        } else if self.step_open {
            self.end_step();
        } else if self.alarms_open {
            match self.next_alarm() {
                None => self.alarms_open = false,
                Some((id, alarm)) => {
                    self.alarms += 1;
                    self.begin_step();
                    self.alarm_step(id, alarm);
                }
            }
        } else if let Some(command) = self.commands.pop_front() {
            self.begin_step();
            self.command_step(command);
        } else if self.inbox.is_empty() {
            self.take_snapshot();
            return false;
        } else {
            self.take_snapshot();
            let entry = self.inbox.pop_front().expect("it is not empty");
            self.begin_entry(entry);
        }
        true
    }

    /// The next alarm of the current batch, while those before have left fuel for it.
    fn next_alarm(&mut self) -> Option<(AlarmId, Alarm)> {
        let spent = self.metered.saturating_add(self.alarms * ALARM_FUEL);
        let goes_on = spent < self.world.state.limits().alarm_fuel;
        goes_on.then(|| self.world.take_due())?
    }

    fn begin_entry(&mut self, entry: LogEntry) {
        match entry {
            LogEntry::Genesis(genesis) => {
                let state = &mut self.world.state;
                if state.genesis.is_none() {
                    state.genesis = Some(*genesis);
                }
            }
            LogEntry::LeaderStart { ballot, now } => {
                let state = &mut self.world.state;
                if ballot > state.ballot {
                    state.ballot = ballot;
                    state.now = state.now.max(now);
                    state.prolong_dispute();
                }
            }
            LogEntry::Batch(batch) => self.begin_batch(batch),
        }
    }

    /// A batch of a ballot that is not the current one is void: no step, no stamp.
    fn begin_batch(&mut self, batch: Batch) {
        let planted = self.world.planted;
        let state = &mut self.world.state;
        let stale = batch.ballot != state.ballot && !planted.has(PlantedBug::StaleBatchCounts);
        if state.genesis.is_none() || stale {
            self.statistics.void_batches += 1;
            self.outbox.push_back(Effect::BatchVoid);
            return;
        }
        // A leader's stamps rise; should one not, time still does, on every replica alike.
        let least =
            if planted.has(PlantedBug::TimeBackwards) { Time(0) } else { state.now.after(1) };
        state.now = batch.stamp.max(least);
        self.alarms_open = true;
        (self.metered, self.alarms) = (0, 0);
        self.statistics.batches += 1;
        self.commands = batch.commands.into();
    }

    fn begin_step(&mut self) {
        assert!(self.is_between_steps(), "a step begins when the last one is over");
        self.world.state.step.0 += 1;
        self.statistics.steps += 1;
        self.draws = 0;
        self.step_open = true;
    }

    fn end_step(&mut self) {
        self.let_transient_objects_vanish();
        assert!(self.world.is_committed(), "no segment is open at the end of a step");
        if let Some(step) = self.world.state.give_up_old_dispute() {
            self.world.staged.push(Effect::NoAgreement { step });
        }
        self.outbox.extend(self.world.staged.drain(..));
        self.step_open = false;
        if self.world.state.is_checkpoint(self.world.state.step) {
            self.compare_states();
        }
    }

    /// Lets the replica vote on the state after the step that has just ended.
    fn compare_states(&mut self) {
        let (step, hash) = (self.world.state.step, self.state_hash());
        self.checkpoints.add(step, hash, Snapshot::of(&self.world.state));
        self.outbox.push_back(Effect::Checkpoint { step, hash });
    }

    fn check_genesis(&self, genesis: &Genesis) -> Result<(), JoinError> {
        let own = self.engine.identity();
        let state = State { genesis: Some(genesis.clone()), ..State::new() };
        if state.runs_on(&own) {
            return Ok(());
        }
        Err(JoinError::Incompatible {
            group_version: genesis.state_machine_version,
            group_engine: genesis.engine.description.clone(),
            own_version: crate::command::STATE_MACHINE_VERSION,
            own_engine: own.description,
        })
    }

    /// Whether every entry is applied, so that reads see whole entries.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.is_between_entries() && self.inbox.is_empty()
    }

    /// Whether no entry is half applied; some may wait. Snapshots are taken then only.
    #[must_use]
    pub fn is_between_entries(&self) -> bool {
        self.is_between_steps() && !self.alarms_open && self.commands.is_empty()
    }

    pub(crate) fn is_between_steps(&self) -> bool {
        !self.step_open
            && self.agenda.is_empty()
            && self.world.ready.is_empty()
            && self.world.staged.is_empty()
            && self.world.is_committed()
    }

    /// Entries that wait to be applied.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.inbox.len()
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine, to hand it compiled code.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// What the group is, once its first entry is applied.
    #[must_use]
    pub fn genesis(&self) -> Option<&Genesis> {
        self.world.state.genesis.as_ref()
    }

    /// The limits; the defaults before the first entry.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.genesis().map_or_else(Limits::default, |genesis| genesis.limits.clone())
    }

    /// Steps so far.
    #[must_use]
    pub fn step(&self) -> Step {
        self.world.state.step
    }

    /// Where it stands: steps so far, and in which history.
    #[must_use]
    pub fn position(&self) -> Position {
        self.world.state.position()
    }

    /// Stamp of the last batch.
    #[must_use]
    pub fn now(&self) -> Time {
        self.world.state.now
    }

    /// Ballot of the leader whose batches count.
    #[must_use]
    pub fn ballot(&self) -> crate::command::Ballot {
        self.world.state.ballot
    }

    /// When the next alarm is due: the leader orders a batch then, empty if need be.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.world.state.due.get_min().map(|(due, _)| *due)
    }

    /// Keys and values of all objects, bytes.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.world.state.state_bytes
    }

    /// Sessions and their timeouts, nanoseconds.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, u64)> + '_ {
        self.world.state.sessions.iter().map(|(id, session)| (*id, session.timeout))
    }

    /// Counts of work since this machine was made.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            live_activations: self.live.len() as u64,
            blocked_now: self.world.state.invocations.len() as u64,
            ..self.statistics
        }
    }

    /// Sum of the records of all objects and sessions.
    #[must_use]
    pub fn total(&self) -> Sum {
        self.world.state.total
    }
}
