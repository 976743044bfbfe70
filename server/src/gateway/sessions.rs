//! Sessions of HTTP clients: `/v1/sessions`.
//!
//! A session that is opened here is like any other: it lives as long as it is heard of, and what it
//! owns is given back when it is over. It is heard of by its keep-alives, and by every request that
//! names it while the request is under way.

use std::time::Duration;

use axum::{
    Json,
    body::Bytes as Body,
    extract::{
        Path, Query, State,
        rejection::{BytesRejection, PathRejection, QueryRejection},
    },
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use gesmas_client::{Client, protocol::SessionSummary};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Shared,
    calls::{self, parse_duration, parse_session},
    consistency::Asker,
    keyed::session_nonce,
    operators::{Slice, texts},
    problem::Problem,
};
use crate::{
    failure::{Failure, exit::Exit},
    json::format_duration,
    view,
};

/// Timeout of sessions that name none.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Shortest timeout: a keep-alive every few seconds is what HTTP clients can be asked for, and what
/// the gateway does itself while a request is under way.
const TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// How long the leader may take to confirm a keep-alive.
const CONFIRMATION: Duration = Duration::from_secs(5);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Opening {
    timeout: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SignOfLife {
    /// Number of the last event that was consumed.
    events: Option<String>,
}

/// A body of JSON, or nothing.
fn body<T: Default + for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Problem> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| Problem::bad("json", error.to_string()))
}

/// `POST /v1/sessions`: opens one. With an `Idempotency-Key`, a retry gets the same.
pub(super) async fn open(
    State(gateway): State<Shared>,
    headers: HeaderMap,
    bytes: Result<Body, BytesRejection>,
) -> Result<Response, Problem> {
    let opening: Opening = body(&bytes?)?;
    let timeout = match opening.timeout {
        None => TIMEOUT,
        Some(text) => parse_duration("timeout", &text)?,
    };
    if timeout < TIMEOUT_MIN {
        let least = format_duration(u64::try_from(TIMEOUT_MIN.as_nanos()).unwrap_or(u64::MAX));
        let message = format!("a session's timeout is at least {least} over HTTP");
        return Err(Problem::bad("timeout", message));
    }
    let mut builder = gateway.client.session().timeout(timeout);
    if let Some(key) = calls::key(&headers)? {
        builder = builder.nonce(session_nonce(&key));
    }
    let (id, timeout) = builder.open_for_others().await?;
    let timeout = format_duration(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    let body = json!({ "session": id.to_string(), "timeout": timeout });
    let mut response = (StatusCode::CREATED, Json(body)).into_response();
    let location = HeaderValue::from_str(&format!("/v1/sessions/{id}"));
    let location = location.expect("digits are a header's value");
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// `POST /v1/sessions/ID/keep-alive`: shows that the client lives, and what it has of its events.
pub(super) async fn keep_alive(
    State(gateway): State<Shared>,
    path: Result<Path<String>, PathRejection>,
    bytes: Result<Body, BytesRejection>,
) -> Result<StatusCode, Problem> {
    let session = parse_session(&path?.0)?;
    let sign: SignOfLife = body(&bytes?)?;
    let events = sign.events.map(|text| {
        text.parse::<u64>().map_err(|_| {
            Problem::bad("events", format!("events are acknowledged by a number, not {text:?}"))
        })
    });
    let events = events.transpose()?;
    let lender = gateway.lenders.hold(session).await?;
    if let Some(events) = events {
        lender.attachment().acknowledge_events(events);
    }
    match tokio::time::timeout(CONFIRMATION, lender.attachment().prove_alive()).await {
        Ok(Ok(())) => Ok(StatusCode::NO_CONTENT),
        Ok(Err(_)) => Err(unknown(session)),
        Err(_) => {
            let message = "no leader has confirmed that it heard of the session";
            Err(Failure::new(Exit::Unreachable, "unavailable", message).into())
        }
    }
}

fn unknown(session: u64) -> Problem {
    let message = format!("session {session} is not open");
    Failure::new(Exit::NotFound, "session-unknown", message).into()
}

/// `DELETE /v1/sessions/ID`: ends it. One that is over already stays so.
pub(super) async fn close(
    State(gateway): State<Shared>,
    path: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let session = parse_session(&path?.0)?;
    let seat = gateway.requesters.seat().await?;
    match seat.session.kill_session(session).await {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(failure) => match Problem::from(failure) {
            gone if gone.code() == "session-unknown" => Ok(StatusCode::NO_CONTENT),
            problem => Err(problem),
        },
    }
}

async fn summary(client: &Client, session: u64) -> Result<SessionSummary, Problem> {
    let before = session.checked_sub(1).ok_or_else(|| unknown(session))?;
    let page = client.list_sessions(before, 1).await?;
    let found = page.items.into_iter().next().filter(|found| found.session == session);
    found.ok_or_else(|| unknown(session))
}

/// `GET /v1/sessions/ID`: what the replica knows of it.
pub(super) async fn show(
    Asker(client): Asker,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, Problem> {
    let session = parse_session(&path?.0)?;
    let summary = summary(&client, session).await?;
    Ok(Json(texts(view::session::as_json(&summary))))
}

/// `GET /v1/sessions`: those that are open.
pub(super) async fn list(
    Asker(client): Asker,
    slice: Result<Query<Slice>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let slice = slice?.0;
    let page = client.list_sessions(slice.after_number()?, slice.limit()).await?;
    let rows: Vec<_> = page.items.iter().map(view::session::as_json).map(texts).collect();
    Ok(Json(json!({ "sessions": rows, "more": page.more })))
}
