//! What one replica says of itself and of its group.

use gesmas_client::protocol::ClusterStatus;
use serde_json::{Value, json};

use crate::json::format_time;

/// The status as JSON.
pub(crate) fn as_json(endpoint: &str, status: &ClusterStatus) -> Value {
    json!({
        "endpoint": endpoint,
        "replica": status.replica,
        "cluster": format!("{:032x}", status.cluster),
        "leader": status.leader,
        "ballot": status.ballot,
        "step": status.position.step,
        "log_decided": status.log_decided,
        "log_applied": status.log_applied,
        "now": format_time(status.now),
        "state_hash": status.state_hash,
        "members": status.members,
        "connected": status.connected,
        "engine": status.engine,
        "server": status.server,
    })
}
