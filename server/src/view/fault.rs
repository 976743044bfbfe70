//! A fault of a handler as operators see it.

use gesmas_abi::interface::{Interface, TypeOwned};
use gesmas_client::protocol::FaultSummary;
use serde_json::{Value, json};

use crate::json::{Integers, decode, format_time};

/// What the handler was called with, by the names of its parameters; none if the interface that is
/// known does not fit, or the arguments are too long to be shown.
pub(crate) fn arguments(
    fault: &FaultSummary,
    interface: Option<&Interface>,
    integers: Integers,
) -> Option<Value> {
    let handler = interface?.method(&fault.handler)?;
    if handler.parameters.is_empty() {
        return fault.arguments.as_ref()?.is_empty().then(|| json!({}));
    }
    let fields = handler.parameters.clone();
    let types = TypeOwned::Record { name: fault.handler.clone(), fields };
    decode(&types, fault.arguments.as_ref()?, integers).ok()
}

/// The fault as JSON.
pub(crate) fn as_json(
    fault: &FaultSummary,
    interface: Option<&Interface>,
    integers: Integers,
) -> Value {
    json!({
        "fault": fault.fault,
        "object": format!("{}/{}", fault.class, fault.object),
        "handler": fault.handler,
        "arguments": arguments(fault, interface, integers),
        "at": format_time(fault.at),
        "error": fault.error,
    })
}
