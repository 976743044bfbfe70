//! `gesmas bench failover`: how long an update waits when the leader is lost, and when all replicas are
//! started again.
//!
//! A lone client of a replica that survives makes one call after the other. The loss comes between two
//! of them, and the time until the next is acknowledged is measured: once the leader's process is
//! killed, once it is stopped, so that its host answers and it says nothing; and once all replicas are
//! killed and started. Each time on a cluster of its own with the default settings.
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
use crate::local_cluster::LocalCluster;

/// Replicas.
const REPLICAS: u64 = 3;
/// Calls go on for so long before anything is lost, and until the leader is the same all the while: a
/// cluster that has just started may elect twice.
const WARM_UP: Duration = Duration::from_millis(700);

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
    /// Load of the machine.
    pub load: Load,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repeats, killed_ms, silent_ms, restarted_ms, load } = self;
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
    }
    Ok(Report {
        repeats,
        killed_ms: Spread::of(killed),
        silent_ms: Spread::of(silent),
        restarted_ms: Spread::of(restarted),
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
        ship(&cluster.client_of(0).await?).await?;
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
        let called = self.counter.increment().await;
        called.map_err(|error| ClusterBenchError::call("Counter.increment", error))?;
        self.acknowledged += 1;
        Ok(())
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
