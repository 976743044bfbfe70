//! One machine with the classes that are measured, fed with entries as they come from the log.
//!
//! Invariant: a round that did not end as many calls as it made is a fault of this program, not a
//! figure.

use std::time::{Duration, Instant};

use gesmas_machine::{
    Acknowledged, Ballot, Batch, ClassName, CodeHash, Command, Effect, Engine, Genesis, Limits,
    LogEntry, Machine, Place, Progress, Request, RequestBody, STATE_MACHINE_VERSION, SessionId,
    Settings, Snapshot, Time,
};

use super::timed::TimedEngine;

/// See the file's head.
pub(super) struct Lab<E> {
    machine: Machine<TimedEngine<E>>,
    ballot: Ballot,
    /// Number of the last request.
    last: u64,
    /// Calls before it that each acknowledges.
    acknowledged: u64,
}

/// Where the time of a round went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) calls: u64,
    pub(super) wall: Duration,
    /// Of this thread, in user mode and in the system.
    pub(super) processor: Duration,
    /// Decoding entries.
    pub(super) decoding: Duration,
    /// Running bodies; only when the engine looks at the clock.
    pub(super) engine: Duration,
    pub(super) starts: u64,
    pub(super) answers: u64,
    pub(super) rebuilt: u64,
    /// Of the entries.
    pub(super) log_bytes: u64,
    /// From decoding on.
    pub(super) allocations: u64,
}

impl<E: Engine> Lab<E> {
    /// A machine with these classes.
    pub(super) fn new(engine: E, modules: &[(&str, Vec<u8>)], live_activations: usize) -> Self {
        let ballot = Ballot { number: 1, ..Ballot::default() };
        let identity = engine.identity();
        let machine = Machine::new(TimedEngine::new(engine), Settings { live_activations });
        let mut lab = Self { machine, ballot, last: 0, acknowledged: 2 };
        lab.apply(LogEntry::Genesis(Box::new(Genesis {
            cluster: 1,
            state_machine_version: STATE_MACHINE_VERSION,
            seed: [0; 32],
            replicas: vec![1],
            engine: identity,
            limits: Limits::default(),
            reserved: [].into(),
        })));
        lab.apply(LogEntry::LeaderStart { ballot, now: Time(1) });
        let (principal, timeout) = ("bench".into(), 3_600_000_000_000);
        let open = Command::OpenSession { nonce: 1, principal, timeout };
        lab.apply_commands(vec![open]);
        for (name, module) in modules {
            let class = ClassName::new(name).expect("a class has a good name");
            let code = CodeHash::of(module);
            let put =
                lab.request(RequestBody::PutClass { class, module: module.clone(), replace: None });
            let compiled = Command::Compiled { replica: 1, code, failure: None };
            assert_eq!(lab.apply_commands(vec![put, compiled]), 1, "the class is loaded");
        }
        lab
    }

    /// Each request acknowledges so many before it from now on.
    pub(super) fn acknowledge(&mut self, calls: u64) {
        self.acknowledged = calls;
    }

    /// Makes requests outside of any round, each of which must succeed.
    pub(super) fn prepare(&mut self, bodies: &[RequestBody]) {
        for body in bodies {
            let request = self.request(body.clone());
            assert_eq!(self.apply_commands(vec![request]), 1, "the preparation succeeds");
        }
    }

    /// One round: the same requests over and over, `batch` of them in an entry.
    /// `allocations` counts those of this thread so far.
    pub(super) fn round(
        &mut self,
        bodies: &[RequestBody],
        batch: usize,
        entries: usize,
        allocations: fn() -> u64,
    ) -> Round {
        let entries: Vec<_> = (0..entries)
            .map(|_| {
                let bodies = bodies.iter().cycle().take(batch);
                let commands = bodies.map(|body| self.request(body.clone())).collect();
                self.entry(commands).encode()
            })
            .collect();
        let (before, allocated) = (self.counts(), allocations());
        let (begin, processor) = (Instant::now(), thread_time());
        let mut round = Round::default();
        for bytes in &entries {
            let decoding = Instant::now();
            let entry = LogEntry::decode(bytes).expect("it was encoded just now");
            round.decoding += decoding.elapsed();
            round.calls += self.apply(entry);
        }
        round.wall = begin.elapsed();
        round.processor = thread_time().saturating_sub(processor);
        round.allocations = allocations() - allocated;
        round.log_bytes = entries.iter().map(|bytes| bytes.len() as u64).sum();
        assert_eq!(round.calls, (batch * entries.len()) as u64, "every call succeeds");
        let after = self.counts();
        round.engine = after.0 - before.0;
        round.starts = after.1 - before.1;
        round.answers = after.2 - before.2;
        round.rebuilt = after.3 - before.3;
        round
    }

    /// How long one request takes, alone in its entry.
    pub(super) fn time(&mut self, body: &RequestBody) -> Duration {
        let request = self.request(body.clone());
        let entry = self.entry(vec![request]);
        let begin = Instant::now();
        assert_eq!(self.apply(entry), 1, "the call succeeds");
        begin.elapsed()
    }

    /// A snapshot, and how long it took to take it.
    pub(super) fn snapshot(&self) -> (Duration, Snapshot) {
        let begin = Instant::now();
        let snapshot = self.machine.snapshot();
        (begin.elapsed(), snapshot)
    }

    /// Keys and values of all objects.
    pub(super) fn state_bytes(&self) -> u64 {
        self.machine.state_bytes()
    }

    /// Lets the engine look at the clock from now on, or no more.
    pub(super) fn time_the_engine(&mut self, on: bool) {
        self.machine.engine_mut().on = on;
    }

    /// Checks the invariants of the state, so that no figure is of a broken machine.
    pub(super) fn check(&self) {
        self.machine.check_state().expect("the state is sound");
    }

    fn counts(&self) -> (Duration, u64, u64, u64) {
        let engine = self.machine.engine();
        (engine.time, engine.starts, engine.answers, self.machine.statistics().rebuilt)
    }

    fn request(&mut self, body: RequestBody) -> Command {
        let previous = self.last;
        self.last += 1;
        let place = Place { session: SessionId(1), number: self.last, previous };
        let first = (self.last.saturating_sub(self.acknowledged)).max(1);
        let replies = if previous == 0 { vec![] } else { vec![(first, previous)] };
        let acknowledged = Acknowledged { replies, events: 0 };
        Command::Request(Request { place, acknowledged, time_left: None, body })
    }

    /// The next stamp need not be exact: it has to rise.
    fn entry(&self, commands: Vec<Command>) -> LogEntry {
        let stamp = self.machine.now().after(1 + self.last);
        LogEntry::Batch(Batch { ballot: self.ballot, stamp, commands })
    }

    fn apply_commands(&mut self, commands: Vec<Command>) -> u64 {
        let entry = self.entry(commands);
        self.apply(entry)
    }

    /// Applies an entry and returns how many requests ended well.
    fn apply(&mut self, entry: LogEntry) -> u64 {
        self.machine.handle_entry(entry).expect("the machine runs its own group");
        assert_eq!(self.machine.run(u32::MAX), Progress::Idle, "nothing keeps the machine");
        let mut ended = 0;
        while let Some(effect) = self.machine.poll_effect() {
            ended += u64::from(matches!(effect, Effect::Reply { outcome: Ok(_), .. }));
        }
        ended
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
