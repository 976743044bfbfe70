//! `gesmas bench blocked`: what blocked callers cost, and how fast a cluster with them restarts.
//!
//! ```text
//! sessions ─► every call blocks in `produce` on a full queue ─► snapshot ─► all replicas are killed
//! and started ─► every call is let go by a `consume`, in the order of arrival
//! ```
//!
//! Each session has a queue of its own for one item, so that its calls block in their order. Figures
//! of memory are resident bytes of the replicas' processes, before and after the calls; the sessions
//! are open before. Invariant: an item that comes out of order, twice or not at all is an error.

use std::{
    fmt, fs,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gesmas_client::{CallFailure, Client, PendingCall, Session};
use gesmas_queue::QueueStub;
use gesmas_sdk::stub::{Invoke, InvokeError, StubCall};
use serde::Serialize;
use tokio::task::JoinSet;

use super::load::{Load, LoadMeter};
use crate::local_cluster::{LocalCluster, LocalClusterError};

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Sessions.
    pub sessions: usize,
    /// Blocked calls of each.
    pub calls: usize,
    /// Connections that carry them.
    pub connections: usize,
}

/// Bytes of an argument.
const ARGUMENT: usize = 16;
/// The sessions outlive the restart.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Between two looks at a replica.
const LOOK: Duration = Duration::from_millis(50);
/// What has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(600);

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Blocked callers.
    pub callers: usize,
    /// Seconds until all were blocked.
    pub block_seconds: f64,
    /// Growth of resident memory for each caller, bytes, by replica.
    pub bytes_per_caller: Vec<f64>,
    /// Bytes of a snapshot with all of them.
    pub snapshot_bytes: u64,
    /// Seconds from the start of all replicas, killed before, until a call was acknowledged.
    pub restart_seconds: f64,
    /// Seconds until all were let go and had their replies.
    pub release_seconds: f64,
    /// The machine meanwhile.
    pub load: Load,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<_> =
            self.bytes_per_caller.iter().map(|bytes| format!("{bytes:.0}")).collect();
        writeln!(f, "{} callers blocked in {:.1} s", self.callers, self.block_seconds)?;
        writeln!(f, "resident bytes for each, by replica: {}", bytes.join(", "))?;
        writeln!(f, "a snapshot with them: {} bytes", self.snapshot_bytes)?;
        writeln!(
            f,
            "all replicas killed and started: {:.1} s until the next call was acknowledged",
            self.restart_seconds
        )?;
        writeln!(f, "all let go in order in {:.1} s", self.release_seconds)?;
        write!(f, "{}", self.load)
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum BlockedError {
    /// The cluster failed.
    #[error(transparent)]
    Cluster(#[from] LocalClusterError),
    /// A call failed.
    #[error("{what}: {error}")]
    Call {
        /// What was done.
        what: &'static str,
        /// Why it failed.
        error: String,
    },
    /// The wrong item came.
    #[error("session {session} got item {got} where {want} was next")]
    Order {
        /// The session.
        session: usize,
        /// Number of the item that came.
        got: u64,
        /// Number of the item that should have come.
        want: u64,
    },
    /// A process cannot be looked at.
    #[error("the memory of a replica's process cannot be read")]
    Memory,
}

fn failed<E: fmt::Display>(what: &'static str) -> impl Fn(E) -> BlockedError {
    move |error| BlockedError::Call { what, error: error.to_string() }
}

/// Measures.
///
/// # Errors
/// [`BlockedError`].
pub async fn run(
    options: &Options,
    mut progress: impl FnMut(&str),
) -> Result<Report, BlockedError> {
    let mut cluster = LocalCluster::start("blocked", 3).await?;
    let meter = LoadMeter::start(cluster.processes().collect::<Vec<_>>());
    let clients = cluster.clients(options.connections).await?;
    let sessions = open(&clients, options).await?;
    settle(&cluster).await?;
    let before = memory(&cluster)?;
    let callers = options.sessions * options.calls;

    progress("callers block");
    let start = Instant::now();
    let mut blocked = block(&sessions, options);
    wait_until(&cluster, "blocking all callers", "blocked_now", callers as u64).await?;
    let block_seconds = start.elapsed().as_secs_f64();
    let after = memory(&cluster)?;
    let bytes_per_caller = before
        .iter()
        .zip(&after)
        .map(|(before, after)| after.saturating_sub(*before) as f64 / callers as f64)
        .collect();

    progress("replicas write snapshots");
    let snapshot_bytes = snapshot(&cluster).await?;
    progress("all replicas are killed and started");
    (0..cluster.len()).try_for_each(|index| cluster.kill(index).map(drop))?;
    let start = Instant::now();
    (0..cluster.len()).try_for_each(|index| cluster.restart(index))?;
    let probe = QueueStub::new(sessions[0].clone(), "probe");
    probe.create(1).await.map_err(failed("the first call after the restart"))?;
    let restart_seconds = start.elapsed().as_secs_f64();

    progress("callers are let go");
    let start = Instant::now();
    release(&sessions, options).await?;
    while let Some(ended) = blocked.join_next().await {
        ended.map_err(failed("a blocked caller"))??;
    }
    let release_seconds = start.elapsed().as_secs_f64();
    let load = meter.stop();
    cluster.stop();
    Ok(Report {
        callers,
        block_seconds,
        bytes_per_caller,
        snapshot_bytes,
        restart_seconds,
        release_seconds,
        load,
    })
}

/// Opens the sessions, and fills a queue for each.
async fn open(clients: &[Client], options: &Options) -> Result<Arc<[Session]>, BlockedError> {
    let queue = gesmas_classes::find("Queue").expect("Queue is a standard class");
    clients.iter().for_each(|client| client.add_class(queue.name, queue.module));
    let mut sessions = Vec::with_capacity(options.sessions);
    for number in 0..options.sessions {
        let client = &clients[number % clients.len()];
        let opened = client.session().timeout(TIMEOUT).deadline(None);
        let opened = opened.outstanding(options.calls + 1).open().await;
        let session = opened.map_err(failed("opening a session"))?;
        let queue = QueueStub::new(session.clone(), queue_name(number));
        queue.create(1).await.map_err(failed("creating a queue"))?;
        queue.produce(item(0)).await.map_err(failed("filling a queue"))?;
        sessions.push(session);
    }
    Ok(sessions.into())
}

fn queue_name(session: usize) -> String {
    format!("q{session}")
}

fn item(number: u64) -> gesmas_sdk::prelude::Bytes {
    let mut bytes = vec![0; ARGUMENT];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes.into()
}

/// Sends the calls of a stub and keeps what they will come to.
struct Outbox {
    session: Session,
    sent: Mutex<Vec<PendingCall>>,
}

impl Invoke for &Outbox {
    type Error = &'static str;

    async fn invoke(&self, call: StubCall) -> Result<Vec<u8>, InvokeError<&'static str>> {
        let StubCall { class, object, method, signature, arguments, .. } = call;
        let call = self.session.call(class, object, method, signature, arguments).send();
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        Err(InvokeError::Other("it is on its way"))
    }
}

/// Makes every session's calls, in their order; each waits in a task of its session.
fn block(sessions: &Arc<[Session]>, options: &Options) -> JoinSet<Result<(), BlockedError>> {
    let mut tasks = JoinSet::new();
    for number in 0..sessions.len() {
        let (sessions, calls) = (sessions.clone(), options.calls as u64);
        tasks.spawn(async move {
            let outbox = Outbox { session: sessions[number].clone(), sent: Mutex::default() };
            let queue = QueueStub::new(&outbox, queue_name(number));
            for call in 1..=calls {
                // It is sent, and nothing is waited for here.
                let _sent = queue.produce(item(call)).await;
            }
            drop(queue);
            let sent = outbox.sent.into_inner().unwrap_or_else(PoisonError::into_inner);
            for call in sent {
                call.await.map_err(|error: CallFailure| failed("a blocked call")(error))?;
            }
            Ok(())
        });
    }
    tasks
}

/// Takes all items of every session, which lets its callers go one after the other.
async fn release(sessions: &Arc<[Session]>, options: &Options) -> Result<(), BlockedError> {
    let mut tasks = JoinSet::new();
    for number in 0..sessions.len() {
        let (sessions, calls) = (sessions.clone(), options.calls as u64);
        tasks.spawn(async move {
            let queue = QueueStub::new(sessions[number].clone(), queue_name(number));
            for want in 0..=calls {
                let item = queue.consume().await.map_err(failed("letting a caller go"))?;
                let head =
                    item.first_chunk::<8>().map_or(u64::MAX, |head| u64::from_le_bytes(*head));
                if head != want {
                    return Err(BlockedError::Order { session: number, got: head, want });
                }
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(failed("a consumer"))??;
    }
    Ok(())
}

/// Waits until all replicas are at the same step.
async fn settle(cluster: &LocalCluster) -> Result<(), BlockedError> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let mut steps = Vec::new();
        for index in 0..cluster.len() {
            steps.extend(cluster.look(index).await.map(|(status, _)| status.position.step));
        }
        if steps.len() == cluster.len() && steps.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(cluster.late("all replicas reaching one step").into())
}

/// Waits until a counter of every replica is at least so high.
async fn wait_until(
    cluster: &LocalCluster,
    what: &'static str,
    counter: &str,
    least: u64,
) -> Result<(), BlockedError> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let mut reached = 0;
        for index in 0..cluster.len() {
            let value = count(cluster, index, counter).await;
            reached += usize::from(value.is_some_and(|value| value >= least));
        }
        if reached == cluster.len() {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(cluster.late(what).into())
}

async fn count(cluster: &LocalCluster, index: usize, counter: &str) -> Option<u64> {
    let (_, counters) = cluster.look(index).await?;
    counters.into_iter().find(|(name, _)| name == counter).map(|(_, value)| value)
}

/// Lets every replica write a snapshot, and says how large the largest is.
async fn snapshot(cluster: &LocalCluster) -> Result<u64, BlockedError> {
    let mut bytes = 0;
    for index in 0..cluster.len() {
        let client = cluster.client_of(index).await?;
        let written = client.take_snapshot().await.map_err(failed("taking a snapshot"))?;
        client.shutdown().await;
        let start = Instant::now();
        while count(cluster, index, "snapshots_written").await.is_none_or(|now| now <= written) {
            if start.elapsed() > PATIENCE {
                return Err(cluster.late("writing a snapshot").into());
            }
            tokio::time::sleep(LOOK).await;
        }
        bytes = bytes.max(count(cluster, index, "snapshot_bytes").await.unwrap_or(0));
    }
    Ok(bytes)
}

/// Resident memory of every replica, bytes.
fn memory(cluster: &LocalCluster) -> Result<Vec<u64>, BlockedError> {
    cluster.processes().map(|process| resident(process).ok_or(BlockedError::Memory)).collect()
}

fn resident(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}
