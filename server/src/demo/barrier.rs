//! Callers that pass barriers together.

use std::time::{Duration, Instant};

use gesmas_barrier::BarrierStub;
use gesmas_client::{Client, Session};
use indicatif::ProgressBar;
use tokio::task::JoinSet;

use super::{DemoError, Options, open};

/// The client's record of the barriers.
pub(super) struct Barriers {
    /// Barriers at which every caller was told the same generation, the next one.
    pub(super) passed: u64,
    pub(super) calls: u64,
    pub(super) elapsed: Duration,
}

pub(super) async fn run(
    options: &Options,
    clients: &[Client],
    progress: &ProgressBar,
) -> Result<Barriers, DemoError> {
    let setup = open(&clients[0], "opening a session").await?;
    BarrierStub::new(setup.clone(), "demo")
        .create(options.barrier_callers)
        .await
        .map_err(|error| DemoError::call("creating the barrier", error))?;
    let mut callers = JoinSet::new();
    let mut sessions = Vec::new();
    for caller in 0..options.barrier_callers as usize {
        sessions.push(open(&clients[caller % clients.len()], "opening a caller").await?);
    }
    let started = Instant::now();
    for (caller, session) in sessions.into_iter().enumerate() {
        let progress = (caller == 0).then(|| progress.clone());
        callers.spawn(pass(session, options.barriers, progress));
    }
    let mut records = Vec::new();
    while let Some(caller) = callers.join_next().await {
        records.push(caller.map_err(|error| DemoError::call("a barrier's caller", error))??);
    }
    let elapsed = started.elapsed();
    setup.close().await;
    let passed = (0..options.barriers)
        .zip(0_usize..)
        .filter(|(generation, place)| {
            records.iter().all(|record| record.get(*place) == Some(generation))
        })
        .count() as u64;
    let calls = options.barriers * u64::from(options.barrier_callers);
    Ok(Barriers { passed, calls, elapsed })
}

/// Passes barriers and returns the generations it was told.
async fn pass(
    session: Session,
    barriers: u64,
    progress: Option<ProgressBar>,
) -> Result<Vec<u64>, DemoError> {
    let barrier = BarrierStub::new(session, "demo");
    let mut generations = Vec::new();
    for _ in 0..barriers {
        let generation = barrier.wait().await;
        generations.push(generation.map_err(|error| DemoError::call("a barrier", error))?);
        if let Some(progress) = &progress {
            progress.inc(1);
        }
    }
    Ok(generations)
}
