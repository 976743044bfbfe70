//! `gesmas bench failover`: how long an update waits when the leader is lost, and when all replicas are
//! started again.
//!
//! A lone client of a replica that survives makes one call after the other. The loss comes between two
//! of them, and the time until the next is acknowledged is measured: once the leader's process is
//! killed, once it is stopped, so that its host answers and it says nothing; and once all replicas are
//! killed and started. Each time on a cluster of its own with the default settings.
//! And how often another leader is elected without a loss: each replica in turn does nothing for as long
//! as a slow disk takes to sync, which is to change nothing.
//! Invariant: in the end the counter is at the number of calls that were acknowledged.

use std::{
    fmt,
    time::{Duration, Instant},
};

use gesmas_client::Session;
use gesmas_counter::CounterStub;
use rustix::process::Signal;
use serde::Serialize;

use super::{
    cluster::{ClusterBenchError, ship},
    load::{Load, LoadMeter},
    sample::Spread,
};
use crate::local_cluster::{ClassKind, LocalCluster};

/// Replicas.
const REPLICAS: u64 = 3;
/// Calls go on for so long before anything is lost, and until the leader is the same all the while: a
/// cluster that has just started may elect twice.
const WARM_UP: Duration = Duration::from_millis(700);

/// How long a replica does nothing: a sync that a neighbour of the machine holds up.
const STALL: Duration = Duration::from_millis(50);
/// Stalls of each replica, for each repeat.
const STALLS: usize = 5;

/// Milliseconds from the loss to the next acknowledged update.
#[derive(Debug, Serialize)]
pub struct Report {
    /// How often each was measured.
    pub repeats: usize,
    /// The leader's process is killed.
    pub killed_ms: Spread,
    /// The leader is stopped, and silent.
    pub silent_ms: Spread,
    /// All replicas are killed; from their start on.
    pub restarted_ms: Spread,
    /// Stalls of single replicas, 50 ms each, the leader among them.
    pub stalls: usize,
    /// Leaders that were elected meanwhile.
    pub elections_in_stalls: u32,
    /// Load of the machine.
    pub load: Load,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repeats, killed_ms, silent_ms, restarted_ms, load, .. } = self;
        writeln!(
            f,
            "Milliseconds until the next update is acknowledged, median of {repeats} (least, \
             greatest).\n"
        )?;
        for (what, spread) in [
            ("the leader's process is killed", killed_ms),
            ("the leader is silent", silent_ms),
            ("all replicas are killed and started", restarted_ms),
        ] {
            let Spread { median, least, greatest } = spread;
            writeln!(f, "{what:<36} {median:>8.1} ({least:.1}, {greatest:.1})")?;
        }
        let milliseconds = STALL.as_millis();
        let Self { stalls, elections_in_stalls, .. } = self;
        writeln!(
            f,
            "\nIn {stalls} stalls of {milliseconds} ms, of each replica in turn: \
             {elections_in_stalls} elections."
        )?;
        write!(f, "\n{load}")
    }
}

/// Measures each so often.
///
/// # Errors
/// [`ClusterBenchError`] when a cluster fails or miscounts.
pub async fn run(repeats: usize) -> Result<Report, ClusterBenchError> {
    let load = LoadMeter::start([]);
    let (mut killed, mut silent, mut restarted) = (Vec::new(), Vec::new(), Vec::new());
    let mut elections = 0;
    for _ in 0..repeats {
        let mut lab = Lab::start().await?;
        let begin = Instant::now();
        lab.cluster.kill(lab.leader)?;
        killed.push(lab.end(begin).await?);

        let lab = Lab::start().await?;
        let begin = Instant::now();
        lab.cluster.signal(lab.leader, Signal::STOP)?;
        silent.push(lab.end(begin).await?);

        let mut lab = Lab::start().await?;
        for index in 0..lab.cluster.len() {
            lab.cluster.kill(index)?;
        }
        let begin = Instant::now();
        for index in 0..lab.cluster.len() {
            lab.cluster.restart(index)?;
        }
        restarted.push(lab.end(begin).await?);

        elections += Lab::start().await?.stall().await?;
    }
    Ok(Report {
        repeats,
        killed_ms: Spread::of(killed),
        silent_ms: Spread::of(silent),
        restarted_ms: Spread::of(restarted),
        stalls: repeats * STALLS * usize::try_from(REPLICAS).expect("there are few"),
        elections_in_stalls: elections,
        load: load.stop(),
    })
}

/// A cluster with a client of a replica that follows.
struct Lab {
    cluster: LocalCluster,
    leader: usize,
    counter: CounterStub<Session>,
    acknowledged: u64,
}

impl Lab {
    async fn start() -> Result<Self, ClusterBenchError> {
        let mut cluster = LocalCluster::start("failover", REPLICAS).await?;
        ship(&cluster.client_of(0).await?, ClassKind::Wasm).await?;
        loop {
            let leader = cluster.leader().await?;
            let client = cluster.client_of((leader + 1) % cluster.len()).await?;
            let session = client.session().open().await;
            let session = session.map_err(|error| ClusterBenchError::call("a session", error))?;
            let counter = CounterStub::new(session, "failover");
            let before = counter.get().await;
            let before = before.map_err(|error| ClusterBenchError::call("Counter.get", error))?;
            let acknowledged = u64::try_from(before).unwrap_or(0);
            let mut lab = Self { cluster, leader, counter, acknowledged };
            let begin = Instant::now();
            while begin.elapsed() < WARM_UP {
                lab.call().await?;
            }
            if lab.cluster.leader().await? == leader {
                return Ok(lab);
            }
            cluster = lab.cluster;
        }
    }

    async fn call(&mut self) -> Result<(), ClusterBenchError> {
        call(&self.counter).await?;
        self.acknowledged += 1;
        Ok(())
    }

    /// Stalls each replica some times; says how many leaders were elected.
    async fn stall(mut self) -> Result<u32, ClusterBenchError> {
        let mut elections = 0;
        let mut ballot = self.ballot().await?;
        for index in (0..self.cluster.len()).cycle().take(self.cluster.len() * STALLS) {
            self.cluster.signal(index, Signal::STOP)?;
            let Self { cluster, counter, acknowledged, .. } = &mut self;
            // It is the length that is measured, not a wait for something.
            let go_on = async {
                tokio::time::sleep(STALL).await;
                cluster.signal(index, Signal::CONT)
            };
            let calls = async {
                let begin = Instant::now();
                while begin.elapsed() < 4 * STALL {
                    call(counter).await?;
                    *acknowledged += 1;
                }
                Ok::<_, ClusterBenchError>(())
            };
            let (went_on, called) = tokio::join!(go_on, calls);
            went_on?;
            called?;
            let now = self.ballot().await?;
            elections += u32::from(now != ballot);
            ballot = now;
        }
        self.end(Instant::now()).await?;
        Ok(elections)
    }

    /// Of the leader that the first replica follows.
    async fn ballot(&self) -> Result<String, ClusterBenchError> {
        let looked = self.cluster.look(0).await;
        Ok(looked.ok_or(ClusterBenchError::Silent(1))?.0.ballot)
    }

    /// Milliseconds since the loss, once the next call is acknowledged and all were counted.
    async fn end(mut self, begin: Instant) -> Result<f64, ClusterBenchError> {
        self.call().await?;
        let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
        let counter = self.counter.get().await;
        let counter = counter.map_err(|error| ClusterBenchError::call("Counter.get", error))?;
        let Self { acknowledged, cluster, .. } = self;
        cluster.stop();
        if u64::try_from(counter) == Ok(acknowledged) {
            return Ok(milliseconds);
        }
        let point = "after the loss".into();
        Err(ClusterBenchError::Miscounted { point, acknowledged, counter })
    }
}

async fn call(counter: &CounterStub<Session>) -> Result<(), ClusterBenchError> {
    let called = counter.increment().await;
    called.map_err(|error| ClusterBenchError::call("Counter.increment", error))?;
    Ok(())
}
