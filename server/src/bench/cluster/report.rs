//! The figures of the cluster, as data and as text.

use std::fmt;

use serde::Serialize;

use crate::bench::{
    load::Load,
    sample::{Latencies, Spread},
};

/// All points.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Replicas.
    pub replicas: u64,
    /// Length of each point, seconds.
    pub seconds: f64,
    /// The points.
    pub points: Vec<PointReport>,
}

/// One point.
#[derive(Clone, Debug, Serialize)]
pub struct PointReport {
    /// Which.
    pub point: String,
    /// Calls that ended while it was measured.
    pub calls: u64,
    /// Calls a second, over windows of a second.
    pub calls_per_second: Spread,
    /// Latencies of all these calls.
    pub latencies: Latencies,
    /// Calls that were acknowledged, those of the warm-up and the end included; the counter was
    /// found at this value.
    pub acknowledged: u64,
    /// Processor time of this program for each call, microseconds.
    pub client_processor_per_call: Option<f64>,
    /// The replicas.
    pub replicas: Vec<ReplicaReport>,
    /// Load of the machine.
    pub load: Load,
}

/// What one replica did.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReplicaReport {
    /// Whether it led when the point began.
    pub leads: bool,
    /// Syncs of its log.
    pub syncs_per_second: f64,
    /// Turns of its driver.
    pub turns_per_second: f64,
    /// Messages, frames and ticks that a turn took.
    pub inputs_per_turn: f64,
    /// Batches that its kernel applied.
    pub batches_per_second: f64,
    /// Processor time of the process for each call of all clients, microseconds.
    pub processor_per_call: Option<f64>,
    /// Times that its threads gave up the processor, for each call.
    pub switches_per_call: Option<f64>,
}

impl PointReport {
    /// The headings of the lines that points print as.
    #[must_use]
    pub fn headings() -> String {
        format!(
            "{:<44} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8}\n",
            "points", "calls/s", "least", "greatest", "p50 µs", "p99 µs", "calls"
        )
    }
}

impl fmt::Display for PointReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls_per_second: rate, latencies, .. } = self;
        writeln!(
            f,
            "{:<44} {:>8.0} {:>8.0} {:>8.0} {:>9.0} {:>9.0} {:>8}",
            self.point,
            rate.median,
            rate.least,
            rate.greatest,
            latencies.p50,
            latencies.p99,
            self.calls,
        )?;
        let part =
            |value: Option<f64>| value.map_or_else(|| "?".into(), |value| format!("{value:.1}"));
        for replica in &self.replicas {
            writeln!(
                f,
                "    {:<8} {:>6.0} syncs/s {:>6.0} turns/s {:>6.1} inputs/turn {:>6.0} batches/s \
                 {:>6} µs of processor and {:>5} switches a call",
                if replica.leads { "leader" } else { "follower" },
                replica.syncs_per_second,
                replica.turns_per_second,
                replica.inputs_per_turn,
                replica.batches_per_second,
                part(replica.processor_per_call),
                part(replica.switches_per_call),
            )?;
        }
        write!(
            f,
            "    clients  {} µs of processor a call; counter = {} acknowledged calls\n    {}",
            part(self.client_processor_per_call),
            self.acknowledged,
            self.load,
        )
    }
}
