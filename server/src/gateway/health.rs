//! Whether the service works: `/healthz` and `/readyz`.
//!
//! `/healthz` does what users do: it writes, waits for a timer, and has one call wake another, all on
//! the object `Queue/gesmas-health-N` of its replica. It says that the cluster serves through this
//! replica. `/readyz` looks only: whether it knows a leader, hears a majority and is not far behind,
//! so that a load balancer may send it clients.
//! Invariant: both answer within [`PATIENCE`].

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use gesmas_queue::QueueStub;
use serde_json::json;

use super::{Gateway, Shared, problem::Problem};
use crate::failure::{Failure, exit::Exit};

/// How long a check may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The timer that is waited for.
const TIMER: Duration = Duration::from_millis(1);
/// Entries of the log that a replica may be behind and still be sent clients.
const BEHIND_MAX: u64 = 10_000;

/// `GET /healthz`.
pub(super) async fn healthz(State(gateway): State<Shared>) -> Result<Response, Problem> {
    match tokio::time::timeout(PATIENCE, exercise(&gateway)).await {
        Ok(Ok(())) => Ok(Json(json!({ "status": "ok" })).into_response()),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(unhealthy("a write, a timer and a wake-up took too long")),
    }
}

fn unhealthy(message: &str) -> Problem {
    Failure::new(Exit::Unreachable, "unhealthy", message).into()
}

/// One write, one timer, one wake-up.
async fn exercise(gateway: &Gateway) -> Result<(), Problem> {
    // It hands the class to the client, should the cluster not have it yet.
    gateway.interfaces.of("Queue").await?;
    let status = gateway.client.cluster_status().await?;
    let session = gateway.client.session().deadline(Some(PATIENCE)).open().await?;
    let queue = QueueStub::new(session, format!("gesmas-health-{}", status.replica));
    queue.create(1).await.map_err(unwell)?;
    let (taken, given) = tokio::join!(queue.consume(), queue.produce(b"ok".to_vec().into()));
    given.and(taken).map_err(unwell)?;
    // What another check has put there at the same time may come instead; either is an answer.
    queue.consume_for(TIMER).await.map_err(unwell)?;
    Ok(())
}

fn unwell(error: impl std::fmt::Display) -> Problem {
    unhealthy(&error.to_string())
}

/// `GET /readyz`.
pub(super) async fn readyz(State(gateway): State<Shared>) -> Result<Response, Problem> {
    let status = tokio::time::timeout(PATIENCE, gateway.client.cluster_status()).await;
    let status = status.map_err(|_| unready("the replica does not answer"))??;
    let Some(leader) = status.leader else {
        return Err(unready("the replica knows no leader"));
    };
    // A leader that hears of nobody takes itself for one until the others have elected another.
    let majority = status.members.len() / 2 + 1;
    if status.connected.len() + 1 < majority {
        return Err(unready("the replica is connected to no majority"));
    }
    let behind = status.log_decided.saturating_sub(status.log_applied);
    if behind > BEHIND_MAX {
        return Err(unready(&format!("the replica has {behind} entries of its log to apply")));
    }
    let body =
        json!({ "status": "ready", "leader": leader.to_string(), "behind": behind.to_string() });
    Ok(Json(body).into_response())
}

fn unready(message: &str) -> Problem {
    Failure::new(Exit::Unreachable, "unready", message).into()
}
