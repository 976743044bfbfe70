//! `Gesmas-Consistency`: whether an answer shows everything that was acknowledged before it was asked
//! for (`linearizable`, the default), or what the replica has (`stale`), which needs no majority.
//!
//! Not here: what a replica says of itself (`/v1/cluster`, `/metrics`), which it always answers.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use gesmas_client::Client;

use super::{Shared, problem::Problem};

/// Whether the request takes a stale answer.
pub(super) fn is_stale(headers: &HeaderMap) -> Result<bool, Problem> {
    let Some(value) = headers.get("gesmas-consistency") else { return Ok(false) };
    match value.to_str().map(str::trim) {
        Ok("linearizable") => Ok(false),
        Ok("stale") => Ok(true),
        _ => {
            let message =
                format!("Gesmas-Consistency is \"linearizable\" or \"stale\", not {value:?}");
            Err(Problem::bad("header", message))
        }
    }
}

/// Asks the questions of a request as its header says.
pub(super) struct Asker(pub(super) Client);

impl FromRequestParts<Shared> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let stale = is_stale(&parts.headers)?;
        Ok(Self(if stale { state.client.stale() } else { state.client.clone() }))
    }
}
