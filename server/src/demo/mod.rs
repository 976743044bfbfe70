//! `gesmas demo`: three replicas, a leader that is killed, and an account of what happened.
//!
//! It starts three `gesmas serve` processes with real sockets and synced logs in a temporary
//! folder, ships Queue and Barrier as WebAssembly, moves items through a bounded queue while the
//! leader gets SIGKILL and is started again, lets callers pass barriers, and kills the session of a
//! blocked consumer.
//! Invariant: the account is made of the client's own records; what replicas count is set beside
//! it, and all replicas must count alike and have equal state hashes at the end.

mod audit;
mod barrier;
mod queue;
mod report;
mod victim;

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::audit::Audit;
pub use self::report::Report;
use crate::local_cluster::{LocalCluster, LocalClusterError};

/// Replicas.
const REPLICAS: u64 = 3;
/// Connections that the workers' sessions share.
const CONNECTIONS: usize = 8;

/// What the demo does, and how much of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Items that move through the queue.
    pub items: u64,
    /// Producers, and as many consumers.
    pub workers: u64,
    /// Capacity of the queue.
    pub capacity: u32,
    /// Barriers in a row.
    pub barriers: u64,
    /// Callers of each barrier.
    pub barrier_callers: u32,
    /// Print one JSON object instead of a progress bar and a summary.
    pub json: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            items: 20_000,
            workers: 64,
            capacity: 16,
            barriers: 20,
            barrier_callers: 200,
            json: false,
        }
    }
}

/// Why the demo came to no end.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The cluster failed.
    #[error(transparent)]
    Cluster(#[from] LocalClusterError),
    /// A call failed that had to succeed.
    #[error("{what}: {error}")]
    Call {
        /// What was called.
        what: &'static str,
        /// Why it failed.
        error: String,
    },
}

impl DemoError {
    fn call(what: &'static str, error: impl std::fmt::Display) -> Self {
        Self::Call { what, error: error.to_string() }
    }
}

/// Runs the demo.
///
/// # Errors
/// [`DemoError`] when it cannot come to its end. Broken promises are no error: the report has them.
pub async fn run(options: &Options) -> Result<Report, DemoError> {
    let progress = progress_bar(options);
    let mut cluster = LocalCluster::start("demo", REPLICAS).await?;
    progress.set_message("shipping Queue and Barrier as WebAssembly");
    let clients = cluster.clients(CONNECTIONS).await?;
    ship(&clients[0]).await?;

    progress.set_message("killing the session of a blocked consumer");
    let victim_lost = victim::run(&clients[0], &cluster).await?;

    progress.set_message("moving items; the leader is killed half-way");
    let moved = queue::run(options, &clients, &mut cluster, &progress).await?;

    progress.set_message("passing barriers");
    let barriers = barrier::run(options, &clients, &progress).await?;

    progress.set_message("comparing the replicas");
    let audit = Audit::of(&cluster).await?;
    progress.finish_and_clear();
    for client in clients {
        client.shutdown().await;
    }
    cluster.stop();
    Ok(Report::new(options, &moved, &barriers, &audit, victim_lost))
}

fn progress_bar(options: &Options) -> ProgressBar {
    let total = options.items + options.barriers;
    let target =
        if options.json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} {msg}");
    ProgressBar::with_draw_target(Some(total), target)
        .with_style(style.expect("the template is well-formed"))
}

/// Puts the two classes; the reply comes when they can be called.
async fn ship(client: &gesmas_client::Client) -> Result<(), DemoError> {
    let session = open(client, "shipping").await?;
    for name in ["Queue", "Barrier"] {
        let class = gesmas_classes::find(name).expect("it is a standard class");
        session
            .put_class(name, class.module)
            .deadline(Duration::from_secs(60))
            .await
            .map_err(|error| DemoError::call("shipping a class", error))?;
    }
    session.close().await;
    Ok(())
}

/// Opens a session whose calls wait as long as it takes.
async fn open(
    client: &gesmas_client::Client,
    what: &'static str,
) -> Result<gesmas_client::Session, DemoError> {
    let builder = client.session().timeout(Duration::from_secs(30)).deadline(None);
    builder
        .patience(Duration::from_secs(30))
        .open()
        .await
        .map_err(|error| DemoError::call(what, error))
}
