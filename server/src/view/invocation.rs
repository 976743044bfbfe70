//! A blocked call as operators see it.

use gesmas_client::protocol::{InvocationState, InvocationSummary};
use serde_json::{Value, json};

use crate::json::format_time;

/// The invocation as JSON.
pub(crate) fn as_json(invocation: &InvocationSummary) -> Value {
    let (semaphore, since) = state(&invocation.state);
    json!({
        "invocation": invocation.invocation,
        "object": object(invocation),
        "method": invocation.method,
        "session": invocation.session,
        "request": invocation.request,
        "semaphore": semaphore,
        "since": since,
        "deadline": invocation.deadline.map(format_time),
        "journal_bytes": invocation.journal_bytes,
        "detached": invocation.detached,
    })
}

/// Name of its object.
pub(crate) fn object(invocation: &InvocationSummary) -> String {
    format!("{}/{}", invocation.class, invocation.object)
}

/// What an invocation waits for, and since when.
pub(crate) fn state(state: &InvocationState) -> (Option<String>, Option<String>) {
    match state {
        InvocationState::Ready => (None, None),
        InvocationState::Blocked { semaphore, since } => {
            (Some(semaphore_name(semaphore)), Some(format_time(*since)))
        }
    }
}

/// The name of a semaphore: its field, and its key if it has one.
pub(crate) fn semaphore_name(name: &[u8]) -> String {
    let mut parts = name.splitn(2, |byte| *byte == 0);
    let field = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    match parts.next() {
        None => field,
        Some(key) => format!("{field}/{}", key.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semaphores_are_named_by_field_and_key() {
        assert_eq!(semaphore_name(b"free"), "free");
        assert_eq!(semaphore_name(b"turn\0\0\x01"), "turn/\\x00\\x01");
    }
}
