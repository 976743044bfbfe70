//! The events of a session as a stream: `GET /v1/sessions/ID/events`, server-sent events.
//!
//! ```text
//! id: 17
//! event: event
//! data: {"payload":{"text":"changed"}}
//! ```
//! The number of an event is its id, so a browser that reconnects says by itself, in
//! `Last-Event-ID`, up to where it has come; that acknowledges all before. `gap` stands for events
//! that made way before they were acknowledged, `over` for the end of the session, after which the
//! stream ends. A second stream of a session ends the first, which then ends without `over`.
//! Invariants: nothing is acknowledged by being sent, since what is sent may never arrive; `over` is
//! said only of a session that is over.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::HeaderMap,
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::Stream;
use gesmas_client::{Events, SessionEvent, SessionState};
use serde_json::json;

use super::{Shared, calls::parse_session, lenders::Lender, problem::Problem};
use crate::json::bytes;

/// Pause after which a comment shows that the stream lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Follows the events of a session.
pub(super) async fn stream(
    State(gateway): State<Shared>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let session = parse_session(&path?.0)?;
    let after = match headers.get("last-event-id").map(|value| value.to_str()) {
        None => 0,
        Some(Ok(text)) if text.trim().is_empty() => 0,
        Some(text) => text
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| Problem::bad("header", "Last-Event-ID is the number of an event"))?,
    };
    let lender = gateway.lenders.hold(session).await?;
    let events = lender.attachment().events_after(after);
    let state = Some(Following { lender, events });
    let stream = futures_util::stream::unfold(state, async |following| {
        let mut following = following?;
        match following.events.next().await {
            Some(event) => Some((Ok(as_event(event)), Some(following))),
            // Another stream may have taken over the events of a session that lives on.
            None => match following.lender.attachment().state() {
                SessionState::Lost(_) => Some((Ok(over()), None)),
                SessionState::Connected | SessionState::Suspended => None,
            },
        }
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)))
}

/// What a stream holds as long as somebody listens.
struct Following {
    /// Holding it keeps the session alive.
    lender: Lender,
    events: Events,
}

fn as_event(event: SessionEvent) -> Event {
    match event {
        SessionEvent::Event { number, payload, .. } => {
            let data = json!({ "payload": bytes(&payload) });
            Event::default().id(number.to_string()).event("event").data(data.to_string())
        }
        SessionEvent::Gap { from, to } => {
            let data = json!({ "from": from.to_string(), "to": to.to_string() });
            Event::default().id(to.to_string()).event("gap").data(data.to_string())
        }
    }
}

fn over() -> Event {
    Event::default().event("over").data("{}")
}
