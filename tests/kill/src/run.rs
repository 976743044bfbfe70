//! A run: replicas, load, rounds, calm, checks.
//!
//! ```text
//! start ─► load ─► rounds until enough is killed ─► calm: everything pending ends ─► checks
//! ```
//!
//! Invariant: whatever is open is bounded; what does not end in time is a violation, and the checks
//! are made all the same.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use gesmas_barrier::BarrierStub;
use gesmas_client::ConnectError;
use gesmas_counter::CounterStub;
use gesmas_queue::QueueStub;
use tokio::{task::JoinSet, time::timeout};

use crate::{
    audit::{Audit, audit},
    binary,
    checkers::{
        Findings, availability, barrier,
        counter::{self, CounterCall},
        lock, queue,
    },
    cluster::Cluster,
    history::{Clock, Entry, Tally},
    load::{self, Desk, Line, Manner, Worker, lock::LockBook},
    nemesis::{Done, Nemesis},
    network::Network,
    prng::Prng,
    report::{Report, SplitCount, Splits},
    schedule::Schedule,
};

/// Connections that workers share.
const LINES: usize = 6;
/// How long everything pending may take to end in the calm phase.
const CALM: Duration = Duration::from_secs(60);
/// How long consumers may take before one more item tells them to stop.
const ASTRAY: Duration = Duration::from_secs(10);
/// How long the first call may take, with the compiling of classes.
const FIRST: Duration = Duration::from_secs(120);
/// Longest time of a round on average; a run ends by itself after so many.
const ROUND: Duration = Duration::from_secs(10);

/// What to do.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// SIGKILLs.
    pub(crate) kills: u64,
    /// What the rounds are drawn from.
    pub(crate) seed: u64,
    /// Replicas.
    pub(crate) replicas: usize,
    /// Mean pause of a worker between two calls.
    pub(crate) pace: Duration,
    /// Whether the network is split.
    pub(crate) splits: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The system refused.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The replicas could not be reached at all.
    #[error("the replicas cannot be reached: {0}")]
    Connect(#[from] ConnectError),
    /// The objects could not be made.
    #[error("{0}")]
    Setup(String),
}

/// The books of all workloads.
#[derive(Debug)]
struct Books {
    counter: Arc<load::counter::CounterBook>,
    queue: Arc<load::queue::QueueBooks>,
    steady: Arc<load::lock::LockBook>,
    mortal: Arc<load::lock::LockBook>,
    barrier: Arc<load::barrier::BarrierBook>,
}

impl Books {
    fn new() -> Self {
        Self {
            counter: Arc::default(),
            queue: Arc::default(),
            steady: Arc::new(LockBook::new(load::lock::STEADY)),
            mortal: Arc::new(LockBook::new(load::lock::MORTAL)),
            barrier: Arc::default(),
        }
    }
}

/// Runs. A broken promise is in the report.
pub(crate) async fn run(options: &Options) -> Result<Report, RunError> {
    let binary = binary::gesmas()?;
    let clock = Clock::start();
    let (network, splits) = network(options)?;
    let mut schedule = Schedule::new(options.seed, options.replicas, network.is_split());
    let mut cluster = Cluster::start(binary, clock, network)?;
    let addresses = cluster.addresses();
    let desk = Arc::new(Desk::new(clock, options.pace));
    let mut crew = Crew::new(&desk, &addresses).await?;
    crew.make_objects().await?;
    crew.start(options.seed, &addresses).await;

    let rounds = u32::try_from(options.kills).unwrap_or(u32::MAX).saturating_add(10);
    let end = Instant::now() + ROUND * rounds;
    let eyes = crew.lines[0].client.clone();
    let nemesis = Nemesis::new(&mut cluster, desk.clone(), eyes, end);
    let tell = |rounds, kills| {
        if rounds % 25 == 0 {
            eprintln!("round {rounds}: {kills} of {} SIGKILLs", options.kills);
        }
    };
    let done = nemesis.run(&mut schedule, options.kills, tell).await?;

    let count = crew.calm(options.seed).await;
    let audit = audit(cluster.network()).await;
    for (index, status) in cluster.ended_by_themselves()? {
        desk.violation(format!("process: replica {} ended by itself ({status})", index + 1));
    }
    let splits = splits.map_or_else(|| made(&done), Splits::No);
    let mut report = account(options, &crew, &cluster, count, &audit, &done, splits);
    if !report.violations.is_empty() {
        report.folder = Some(cluster.keep().display().to_string());
    }
    Ok(report)
}

/// The network, and why it cannot be split if it cannot.
fn network(options: &Options) -> io::Result<(Network, Option<String>)> {
    if !options.splits {
        return Ok((Network::loopback(options.replicas)?, Some("not asked for".into())));
    }
    match Network::namespaces(options.replicas) {
        Ok(network) => Ok((network, None)),
        Err(reason) => {
            let loopback = Network::loopback(options.replicas)?;
            Ok((loopback, Some(format!("{NOT_POSSIBLE}: {reason}"))))
        }
    }
}

/// How the reason begins when splits were asked for and cannot be made.
pub(crate) const NOT_POSSIBLE: &str = "not possible here";

fn made(done: &Done) -> Splits {
    let outage = done.after_outage.map(|took| ("everything (then healed)", 1, took));
    let kinds =
        done.splits.iter().map(|(split, (count, longest))| (split.name(), *count, *longest));
    let counts = kinds.chain(outage).map(|(name, count, longest)| {
        let longest_until_calls_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        (name.to_owned(), SplitCount { count, longest_until_calls_ms })
    });
    Splits::Made(counts.collect())
}

/// All workers.
struct Crew {
    desk: Arc<Desk>,
    lines: Vec<Arc<Line>>,
    books: Books,
    /// Everybody but the consumers.
    workers: JoinSet<()>,
    consumers: JoinSet<()>,
}

impl Crew {
    async fn new(desk: &Arc<Desk>, addresses: &[SocketAddr]) -> Result<Self, RunError> {
        let mut lines = Vec::new();
        for _ in 0..LINES {
            lines.push(Line::connect(desk, addresses).await?);
        }
        let (workers, consumers) = (JoinSet::new(), JoinSet::new());
        Ok(Self { desk: desk.clone(), lines, books: Books::new(), workers, consumers })
    }

    /// Ships the classes and makes the objects.
    async fn make_objects(&self) -> Result<(), RunError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            RunError::Setup(format!("{what} failed: {error}"))
        };
        let builder = self.lines[0].client.session().deadline(Some(FIRST)).patience(FIRST);
        let session = builder.open().await.map_err(|error| failed("opening a session", &error))?;
        for class in gesmas_classes::ALL {
            let put = session.put_class(class.name, class.module).await;
            put.map_err(|error| failed("shipping a class", &error))?;
        }
        let queue = QueueStub::new(session.clone(), load::queue::NAME);
        let created = queue.create(load::queue::CAPACITY).await;
        created.map_err(|error| failed("creating the queue", &error))?;
        let parties = u32::try_from(load::barrier::PARTIES).expect("there are few");
        let created = BarrierStub::new(session.clone(), load::barrier::NAME).create(parties).await;
        created.map_err(|error| failed("creating the barrier", &error))?;
        // A read does not create a counter that nobody has touched.
        let counter = CounterStub::new(session.clone(), load::counter::NAME);
        self.desk.ask(&self.books.counter, CounterCall::Increment, counter.increment()).await;
        session.close().await;
        Ok(())
    }

    async fn worker(&self, seed: u64, stream: u64, manner: Manner) -> Worker {
        let line = self.lines[usize::try_from(stream).unwrap_or(0) % LINES].clone();
        Worker::new(self.desk.clone(), line, manner, Prng::new(seed, 100 + stream)).await
    }

    /// Every second worker of the counter and the queue is impatient.
    async fn start(&mut self, seed: u64, addresses: &[SocketAddr]) {
        let manner = |index| if index % 2 == 0 { Manner::PATIENT } else { Manner::IMPATIENT };
        for index in 0..load::counter::WORKERS {
            let worker = self.worker(seed, index, manner(index)).await;
            self.workers.spawn(load::counter::work(worker, self.books.counter.clone()));
        }
        for index in 0..load::queue::WORKERS {
            let producer = self.worker(seed, 10 + index, manner(index)).await;
            self.workers.spawn(load::queue::produce(producer, self.books.queue.clone(), index));
            let consumer = self.worker(seed, 20 + index, manner(index)).await;
            let number = usize::try_from(index).expect("there are few");
            let books = self.books.queue.clone();
            self.consumers.spawn(load::queue::consume(consumer, books, number));
        }
        for index in 0..2 * load::lock::WORKERS {
            let worker = self.worker(seed, 30 + index, Manner::PATIENT).await;
            let book = if index % 2 == 0 { &self.books.steady } else { &self.books.mortal };
            self.workers.spawn(load::lock::work(worker, book.clone()));
        }
        let (desk, book) = (self.desk.clone(), self.books.mortal.clone());
        let mortal = load::lock::work_and_die(desk, addresses.to_vec(), book, Prng::new(seed, 2));
        self.workers.spawn(mortal);
        for party in 0..load::barrier::PARTIES {
            let worker = self.worker(seed, 40 + party as u64, Manner::PATIENT).await;
            self.workers.spawn(load::barrier::work(worker, self.books.barrier.clone(), party));
        }
    }

    /// Everything pending ends: workers, then consumers, then what is left in the queue.
    async fn calm(&mut self, seed: u64) -> Option<i64> {
        self.books.barrier.close();
        self.desk.stop();
        let desk = self.desk.clone();
        if timeout(CALM, all_end(&mut self.workers, &desk)).await.is_err() {
            let left = self.workers.len();
            desk.violation(format!("liveness: {left} workers wait for calls {CALM:?} after calm"));
        }
        let Ok(count) = timeout(CALM, self.wind_up(seed)).await else {
            let left = self.consumers.len();
            desk.violation(format!(
                "liveness: the queue was not drained within {CALM:?}; {left} consumers wait"
            ));
            return None;
        };
        count
    }

    /// Gives the count in the end.
    async fn wind_up(&mut self, seed: u64) -> Option<i64> {
        let mut worker = self.worker(seed, 50, Manner::PATIENT).await;
        for place in 0..load::queue::WORKERS {
            load::queue::bring_last(&mut worker, &self.books.queue, place).await;
        }
        // One of these items may have gone astray with a call whose outcome is unknown.
        let mut place = load::queue::WORKERS;
        while timeout(ASTRAY, all_end(&mut self.consumers, &self.desk)).await.is_err() {
            load::queue::bring_last(&mut worker, &self.books.queue, place).await;
            place += 1;
        }
        let consumer = usize::try_from(load::queue::WORKERS).expect("there are few");
        let drained = load::queue::drain(&mut worker, &self.books.queue, consumer).await;
        let count = CounterStub::new(worker.session(), load::counter::NAME).get().await;
        worker.finish().await;
        if let Err(error) = drained {
            self.desk.violation(format!("call: draining the queue failed: {error}"));
        }
        count
            .map_err(|error| self.desk.violation(format!("call: the last read failed: {error}")))
            .ok()
    }
}

/// Waits for tasks, none of which may panic.
async fn all_end(tasks: &mut JoinSet<()>, desk: &Desk) {
    while let Some(end) = tasks.join_next().await {
        if let Err(error) = end {
            desk.violation(format!("load: a worker failed: {error}"));
        }
    }
}

/// Puts books, deeds and checks together.
fn account(
    options: &Options,
    crew: &Crew,
    cluster: &Cluster,
    count: Option<i64>,
    audit: &Audit,
    done: &Done,
    splits: Splits,
) -> Report {
    let (books, desk) = (&crew.books, &crew.desk);
    let calls = books.counter.entries();
    let (produced, consumed) = (books.queue.produced.entries(), books.queue.consumed.entries());
    let holds = [books.steady.holds(), books.mortal.holds()];
    let waits = books.barrier.calls.entries();
    let mut tally = Tally::default();
    tally.add(&calls);
    tally.add(&produced);
    tally.add(&consumed);
    tally.add(&books.steady.calls.entries());
    tally.add(&books.mortal.calls.entries());
    tally.add(&waits);
    let mut findings = Findings { violations: desk.violations(), ..Findings::default() };
    findings.violations.extend(audit.violations.clone());
    findings.add(counter::check(&calls, count));
    findings.add(queue::check(&produced, &consumed, load::queue::CAPACITY.into()));
    findings.add(lock::check(&holds[0]));
    findings.add(lock::check(&holds[1]));
    findings.add(barrier::check(&waits, load::barrier::PARTIES));
    let (gaps, slow) = availability::measure(&tally.times, cluster.changes());
    findings.add(slow);
    let milliseconds = |nanoseconds: u64| nanoseconds / 1_000_000;
    let last = waits.iter().filter_map(Entry::done).map(|(generation, _)| generation + 1).max();
    Report {
        seed: options.seed,
        replicas: options.replicas,
        kills: cluster.deeds.kills,
        stops: cluster.deeds.stops,
        rounds: done.rounds,
        restarts: cluster.deeds.restarts,
        calls_acknowledged: tally.acknowledged,
        calls_without_effect: tally.nothing,
        blocked_calls: audit.blocked,
        unknown: tally.unknown,
        retries: desk.sent_again.load(Ordering::Relaxed),
        duplicates: findings.duplicates,
        lost: findings.lost,
        out_of_order: findings.out_of_order,
        holds: holds.iter().map(Vec::len).sum::<usize>() as u64,
        generations: last.unwrap_or(0),
        sessions_lost: desk.losses().len() as u64,
        longest_unavailability_ms: milliseconds(gaps.longest),
        longest_unavailability_with_majority_ms: milliseconds(gaps.longest_with_majority),
        wall_ms: milliseconds(desk.clock.now()),
        replicas_agree: audit.agree,
        splits,
        folder: None,
        violations: findings.violations,
    }
}
