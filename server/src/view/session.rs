//! A session as operators see it.

use gesmas_client::protocol::SessionSummary;
use serde_json::{Value, json};

use crate::json::format_duration;

/// The session as JSON.
pub(crate) fn as_json(session: &SessionSummary) -> Value {
    json!({
        "session": session.session,
        "principal": session.principal,
        "timeout": format_duration(session.timeout_ns),
        "last_admitted": session.last_admitted,
        "open_requests": session.open_requests,
        "stored_replies": session.stored_replies,
        "events": session.events,
        "permits": session.permits,
    })
}
