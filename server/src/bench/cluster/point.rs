//! One point: so many callers on so many sessions and connections, for so long.
//!
//! In a closed loop each caller has one call under way; in an open one calls have their times (`open.rs`).
//! Callers start, warm up for a while that is not measured, and go on until they are told to stop.
//! What is measured is cut into windows of a second, because a window that neighbours on the machine
//! left alone says more than a mean.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gesmas_client::{Client, Session};
use gesmas_counter::CounterStub;
use tokio::task::JoinSet;

use super::{
    ClusterBenchError, open,
    report::{PointReport, ReplicaReport},
};
use crate::{
    bench::{
        load::{LoadMeter, context_switches, process_ticks},
        sample::{Latencies, Spread},
    },
    local_cluster::LocalCluster,
};

/// Time before anything is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// Length of a window.
const WINDOW: Duration = Duration::from_secs(1);

/// To which replicas the clients are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All to the leader.
    Leader,
    /// All to one replica that follows.
    Follower,
    /// To all replicas in turn.
    Spread,
}

/// One point. Callers are spread over sessions and sessions over connections.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Callers, each with one call outstanding.
    pub callers: usize,
    /// Sessions.
    pub sessions: usize,
    /// Connections.
    pub connections: usize,
    /// Where they lead.
    pub placement: Placement,
    /// Calls that begin in a second, of all together; none for a closed loop.
    pub rate: Option<u64>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { callers, sessions, connections, placement, rate } = *self;
        let many = |count: usize| if count == 1 { "" } else { "s" };
        if callers == connections {
            write!(f, "{callers} client{}", many(callers))?;
        } else if callers == sessions {
            write!(f, "{callers} sessions, {connections} connection{}", many(connections))?;
        } else {
            write!(f, "{callers} callers, {sessions} sessions, {connections} connections")?;
        }
        f.write_str(match placement {
            Placement::Leader => ", leader",
            Placement::Follower => ", follower",
            Placement::Spread => ", spread",
        })?;
        rate.map_or(Ok(()), |rate| write!(f, ", open loop at {rate}/s"))
    }
}

/// What one caller saw.
#[derive(Default)]
pub(super) struct Record {
    pub(super) acknowledged: u64,
    /// For each measured call: when it ended, since the measurement began, and how long it took;
    /// nanoseconds.
    pub(super) calls: Vec<(u64, u64)>,
}

/// What one replica has counted.
struct Account {
    syncs: u64,
    turns: u64,
    inputs: u64,
    batches: u64,
    ticks: Option<u64>,
    switches: Option<u64>,
}

/// Measures a point on an object of its own.
pub(super) async fn measure(
    cluster: &LocalCluster,
    number: usize,
    point: &Point,
    leader: usize,
    length: Duration,
) -> Result<PointReport, ClusterBenchError> {
    let object = format!("point-{number}");
    let clients = connect(cluster, point, leader).await?;
    let sessions = open(&clients, point).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let begin = Instant::now() + WARM_UP;
    let mut callers = JoinSet::new();
    match point.rate {
        Some(rate) => {
            let now = Instant::now();
            open::start(&mut callers, &sessions, &object, rate, now, (begin, length));
        }
        None => {
            for session in sessions.iter().cycle().take(point.callers) {
                let counter = CounterStub::new(session.clone(), object.clone());
                callers.spawn(call(counter, stop.clone(), begin, length));
            }
        }
    }
    tokio::time::sleep_until(begin.into()).await;
    let load = LoadMeter::start(cluster.processes());
    let before = accounts(cluster).await?;
    let own = process_ticks(std::process::id());
    tokio::time::sleep_until((begin + length).into()).await;
    let measured = begin.elapsed();
    let own = own.zip(process_ticks(std::process::id())).map(|(before, after)| after - before);
    let after = accounts(cluster).await?;
    let load = load.stop();
    stop.store(true, Ordering::Relaxed);
    let mut records = Vec::new();
    while let Some(record) = callers.join_next().await {
        records.push(record.map_err(|error| ClusterBenchError::call("a caller", error))??);
    }
    check(point, &sessions[0], &object, &records).await?;
    for session in sessions {
        session.close().await;
    }
    for client in clients {
        client.shutdown().await;
    }
    let (rate, latencies) = sum_up(point, length, &records)?;
    let calls = latencies.0;
    Ok(PointReport {
        point: point.to_string(),
        calls,
        calls_per_second: rate,
        latencies: latencies.1,
        acknowledged: records.iter().map(|record| record.acknowledged).sum(),
        client_processor_per_call: own.map(|used| microseconds(used) / calls as f64),
        replicas: replica_reports(&before, &after, leader, calls, measured.as_secs_f64()),
        load,
    })
}

/// What the replicas did in so many seconds, for so many calls of all clients.
fn replica_reports(
    before: &[Account],
    after: &[Account],
    leader: usize,
    calls: u64,
    seconds: f64,
) -> Vec<ReplicaReport> {
    let report = |(index, (before, after)): (usize, (&Account, &Account))| {
        let turns = (after.turns - before.turns) as f64;
        let difference = |before: Option<u64>, after: Option<u64>| Some(after? - before?);
        ReplicaReport {
            leads: index == leader,
            syncs_per_second: (after.syncs - before.syncs) as f64 / seconds,
            turns_per_second: turns / seconds,
            inputs_per_turn: (after.inputs - before.inputs) as f64 / turns.max(1.0),
            batches_per_second: (after.batches - before.batches) as f64 / seconds,
            processor_per_call: difference(before.ticks, after.ticks)
                .map(|ticks| microseconds(ticks) / calls as f64),
            switches_per_call: difference(before.switches, after.switches)
                .map(|count| count as f64 / calls as f64),
        }
    };
    before.iter().zip(after).enumerate().map(report).collect()
}

/// Processor time of so many ticks.
fn microseconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64 * 1e6
}

async fn connect(
    cluster: &LocalCluster,
    point: &Point,
    leader: usize,
) -> Result<Vec<Client>, ClusterBenchError> {
    let mut clients = Vec::with_capacity(point.connections);
    for connection in 0..point.connections {
        let replica = match point.placement {
            Placement::Leader => leader,
            Placement::Follower => (leader + 1) % cluster.len(),
            Placement::Spread => (leader + connection) % cluster.len(),
        };
        clients.push(cluster.client_of(replica).await?);
    }
    Ok(clients)
}

async fn open(clients: &[Client], point: &Point) -> Result<Vec<Session>, ClusterBenchError> {
    let mut sessions = Vec::with_capacity(point.sessions);
    for session in 0..point.sessions {
        let opened = clients[session % clients.len()].session().open().await;
        sessions.push(opened.map_err(|error| ClusterBenchError::call("opening a session", error))?);
    }
    Ok(sessions)
}

/// One caller: call after call until it is told to stop.
async fn call(
    counter: CounterStub<Session>,
    stop: Arc<AtomicBool>,
    begin: Instant,
    length: Duration,
) -> Result<Record, ClusterBenchError> {
    let mut record = Record::default();
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let count = counter.increment().await;
        count.map_err(|error| ClusterBenchError::call("Counter.increment", error))?;
        let ended = Instant::now();
        record.acknowledged += 1;
        if ended >= begin && ended < begin + length {
            record.calls.push((nanoseconds(ended - begin), nanoseconds(ended - started)));
        }
    }
    Ok(record)
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

async fn accounts(cluster: &LocalCluster) -> Result<Vec<Account>, ClusterBenchError> {
    let mut accounts = Vec::new();
    for (index, process) in cluster.processes().enumerate() {
        let looked = cluster.look(index).await;
        let (_, counters) = looked.ok_or(ClusterBenchError::Silent(index + 1))?;
        let count = |name: &str| {
            counters.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count)
        };
        accounts.push(Account {
            syncs: count("log_syncs"),
            turns: count("turns"),
            inputs: count("inputs"),
            batches: count("batches"),
            ticks: process_ticks(process),
            switches: context_switches(process),
        });
    }
    Ok(accounts)
}

/// The counter must be what the callers were told.
async fn check(
    point: &Point,
    session: &Session,
    object: &str,
    records: &[Record],
) -> Result<(), ClusterBenchError> {
    let acknowledged: u64 = records.iter().map(|record| record.acknowledged).sum();
    let counter = CounterStub::new(session.clone(), object).get().await;
    let counter = counter.map_err(|error| ClusterBenchError::call("Counter.get", error))?;
    if u64::try_from(counter) == Ok(acknowledged) {
        return Ok(());
    }
    Err(ClusterBenchError::Miscounted { point: point.to_string(), acknowledged, counter })
}

/// Calls a second over the windows, and the latencies of all calls with their number.
fn sum_up(
    point: &Point,
    length: Duration,
    records: &[Record],
) -> Result<(Spread, (u64, Latencies)), ClusterBenchError> {
    let whole = (nanoseconds(length) / nanoseconds(WINDOW)).max(1);
    let window = nanoseconds(length) / whole;
    let mut windows = vec![0_u64; usize::try_from(whole).unwrap_or(1)];
    let mut latencies = Vec::new();
    for (ended, latency) in records.iter().flat_map(|record| &record.calls) {
        if let Some(count) = usize::try_from(ended / window).ok().and_then(|at| windows.get_mut(at))
        {
            *count += 1;
        }
        latencies.push(*latency);
    }
    if latencies.is_empty() {
        return Err(ClusterBenchError::Nothing(point.to_string()));
    }
    let per_second = |count: u64| count as f64 * 1e9 / window as f64;
    let calls = latencies.len() as u64;
    let rate = Spread::of(windows.into_iter().map(per_second));
    Ok((rate, (calls, Latencies::of(latencies))))
}
