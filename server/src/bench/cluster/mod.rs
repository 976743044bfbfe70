//! How many calls a second three replicas take, and with which latencies.
//!
//! Three `gesmas serve` processes on loopback with the default settings if no others are given, so every call is synced to
//! disk by a majority before it is answered; `Counter` as WebAssembly. In a closed loop each caller has
//! one call outstanding; in an open one calls begin at a rate, whatever becomes of those before. All of
//! it, clients included, shares the processors of one machine.
//! Invariant: after each point the counter's value is what the callers were told; a difference is an
//! error, and no figure is given.
//! Not here: failures (the demo), and clients on other machines.

mod open;
mod point;
mod report;

use std::time::Duration;

use gesmas_client::Client;

pub use self::{
    point::{Placement, Point},
    report::{PointReport, ReplicaReport, Report},
};
use crate::local_cluster::{ClassKind, LocalCluster, LocalClusterError};

/// Replicas.
const REPLICAS: u64 = 3;
/// Points that are measured again because another replica has taken the lead.
const ATTEMPTS: usize = 5;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The points, in order.
    pub points: Vec<Point>,
    /// Length of each.
    pub length: Duration,
    /// How the class runs.
    pub kind: ClassKind,
    /// Tables of settings that are added to the configuration of each replica, as TOML.
    pub settings: String,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum ClusterBenchError {
    /// The cluster failed.
    #[error(transparent)]
    Cluster(#[from] LocalClusterError),
    /// A call failed.
    #[error("{what}: {error}")]
    Call {
        /// What was called.
        what: &'static str,
        /// Why it failed.
        error: String,
    },
    /// The counter is not what the callers were told.
    #[error("{point}: {acknowledged} calls were acknowledged, but the counter is at {counter}")]
    Miscounted {
        /// Where.
        point: String,
        /// Calls that were acknowledged.
        acknowledged: u64,
        /// The counter at the end.
        counter: i64,
    },
    /// A replica does not answer.
    #[error("replica {0} does not answer")]
    Silent(usize),
    /// Again and again another replica took the lead.
    #[error("{0}: another replica took the lead in each of the last attempts")]
    Unsettled(String),
    /// No call ended while it was measured.
    #[error("{0}: no call ended within the time measured")]
    Nothing(String),
}

impl ClusterBenchError {
    pub(super) fn call(what: &'static str, error: impl std::fmt::Display) -> Self {
        Self::Call { what, error: error.to_string() }
    }
}

/// Measures; `progress` is told of each point as it ends.
///
/// # Errors
/// [`ClusterBenchError`] when the cluster fails or miscounts.
pub async fn run(
    options: &Options,
    mut progress: impl FnMut(&PointReport),
) -> Result<Report, ClusterBenchError> {
    let cluster =
        LocalCluster::start_configured(options.kind, "bench", REPLICAS, &options.settings);
    let cluster = cluster.await?;
    ship(&cluster.client_of(0).await?, options.kind).await?;
    let mut points = Vec::new();
    let mut number = 0;
    for point in &options.points {
        let report = loop {
            number += 1;
            let leader = cluster.leader().await?;
            let report = point::measure(&cluster, number, point, leader, options.length).await?;
            // Figures of a time in which another replica took the lead are of something else.
            if cluster.leader().await? == leader {
                break report;
            }
            if number > options.points.len() + ATTEMPTS {
                return Err(ClusterBenchError::Unsettled(point.to_string()));
            }
        };
        progress(&report);
        points.push(report);
    }
    cluster.stop();
    Ok(Report { replicas: REPLICAS, seconds: options.length.as_secs_f64(), points })
}

/// Puts the class; the reply comes when it can be called.
pub(super) async fn ship(client: &Client, kind: ClassKind) -> Result<(), ClusterBenchError> {
    let counter = kind.modules().into_iter().find(|(name, _)| *name == "Counter");
    let (name, module) = counter.expect("it is a standard class");
    let session = client.session().open().await;
    let session = session.map_err(|error| ClusterBenchError::call("opening a session", error))?;
    let put = session.put_class(name, module).deadline(Duration::from_secs(60)).await;
    put.map_err(|error| ClusterBenchError::call("shipping Counter", error))?;
    session.close().await;
    Ok(())
}
