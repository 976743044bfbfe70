//! Errors that clients are told of: each is in this replica's log under its id.
//!
//! What belongs to the ordinary run of things (out of order, a class that is being compiled, busy)
//! has no id and is not logged; nor has what a class or its caller meant. The error of an ordered call has the id of its step, equal on all replicas.

use std::sync::atomic::{AtomicU64, Ordering};

use gesmas_protocol::{CallError, ErrorCode, ErrorId, ErrorMessage, Position, Refusal};

/// The next id of this process: its number in the upper half, so that ids of two lives differ.
fn next() -> ErrorId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    ErrorId((1 << 63) | (u64::from(std::process::id()) << 32) | count)
}

/// Tells of an error of a connection.
pub(super) fn message(correlation: Option<u64>, code: ErrorCode, message: String) -> ErrorMessage {
    let id = next();
    tracing::warn!(%id, %code, message, "a client was told of an error");
    ErrorMessage { id: id.0, correlation, code, message }
}

/// Logs a refusal that a client cannot handle by itself.
pub(super) fn log_refusal(refusal: &Refusal, session: u64, number: u64) -> Option<ErrorId> {
    match refusal {
        Refusal::OutOfOrder { .. }
        | Refusal::Forgotten
        | Refusal::ClassPending { .. }
        | Refusal::SessionUnknown
        | Refusal::Busy
        | Refusal::Unavailable
        | Refusal::MigrationPending { .. } => None,
        // Most clients ship the class and say nothing; one that cannot shows its user the id.
        Refusal::ClassUnknown { .. } => {
            let id = next();
            tracing::info!(%id, session, number, %refusal, "a class is asked for that is not loaded");
            Some(id)
        }
        Refusal::Limit(_) | Refusal::Invalid { .. } | Refusal::Denied { .. } => {
            let id = next();
            tracing::warn!(%id, session, number, code = refusal.code(), %refusal, "a request was refused");
            Some(id)
        }
    }
}

/// Logs the error of an ordered call, unless its class or caller meant it.
pub(super) fn log_call(error: &CallError, position: Position, session: u64, number: u64) {
    if error.is_meant() {
        return;
    }
    let id = ErrorId::of_step(position);
    tracing::warn!(%id, session, number, code = error.code(), %error, "a call failed");
}

/// Logs the error of a read.
pub(super) fn log_read(error: &CallError, correlation: u64) -> Option<ErrorId> {
    if error.is_meant() {
        return None;
    }
    let id = next();
    tracing::warn!(%id, correlation, code = error.code(), %error, "a read failed");
    Some(id)
}
