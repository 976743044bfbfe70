//! An object with its state, as operators see it.

use gesmas_abi::interface::Interface;
use gesmas_client::protocol::{ObjectDetail, ObjectSummary, TimerKind, TimerSummary};
use serde_json::{Value, json};

use super::{
    fault,
    state::{Content, File},
};
use crate::json::{Integers, format_time};

/// An object of a list as JSON.
pub(crate) fn row(object: &ObjectSummary) -> Value {
    json!({
        "object": format!("{}/{}", object.class, object.object),
        "incarnation": object.incarnation,
        "bytes": object.bytes,
        "waiting": object.waiters,
    })
}

/// When a timer or watch goes off.
pub(crate) fn when(timer: &TimerSummary) -> String {
    match timer.kind {
        TimerKind::At(time) => format!("at {}", format_time(time)),
        TimerKind::SessionOver(session) => format!("when session {session} is over"),
    }
}

/// The object as JSON.
pub(crate) fn as_json(
    detail: &ObjectDetail,
    files: &[File],
    interface: &Interface,
    integers: Integers,
) -> Value {
    let summary = &detail.summary;
    let mut entries = Vec::new();
    let mut semaphores = Vec::new();
    for file in files {
        match &file.content {
            Content::Value(value) => {
                entries.push(json!({ "path": file.path, "value": value }));
            }
            Content::Semaphore { count, waiters, owners } => semaphores.push(json!({
                "path": file.path,
                "count": count,
                "waiters": waiters,
                "owners": owners,
            })),
        }
    }
    let timers = detail.timers.iter().map(
        |timer| json!({ "timer": timer.alarm, "handler": timer.handler, "when": when(timer) }),
    );
    let faults = detail.faults.iter().map(|fault| fault::as_json(fault, Some(interface), integers));
    json!({
        "object": format!("{}/{}", summary.class, summary.object),
        "incarnation": summary.incarnation,
        "bytes": summary.bytes,
        "waiting": summary.waiters,
        "entries": entries,
        "semaphores": semaphores,
        "timers": timers.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
        "more": detail.more,
    })
}
