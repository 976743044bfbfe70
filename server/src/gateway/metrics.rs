//! Metrics in the text format of Prometheus: `GET /metrics`.
//!
//! What the replica counts has names of its own (`gesmas_…`); `docs/metrics.md` lists them all, and a
//! test holds that list against this one. What is not described here is not exported.
//! Invariant: a metric keeps its name and meaning.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, text::encode},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use super::{Shared, problem::Problem, watch::Times};
use crate::failure::{Failure, exit::Exit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Only rises while the replica runs.
    Counter,
    /// A state.
    Gauge,
    /// How long the gateway's requests take.
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

/// The gateway's own metric.
const TIMES: &str = "http_request_seconds";

/// What the replica and its gateway count: their own name, kind, and meaning.
const DESCRIBED: [(&str, Kind, &str); 46] = [
    ("agreed_step", Gauge, "Last step whose state a majority voted for alike"),
    ("batches", Counter, "Batches of the log that were applied"),
    ("blocked_invocations", Counter, "Calls that blocked at least once"),
    ("blocked_now", Gauge, "Calls that are blocked"),
    ("cancellations", Counter, "Calls that were cancelled while they were blocked"),
    ("clients_cut_off", Counter, "Clients that read slower than they were written to"),
    ("clients_ended_idle", Counter, "Clients that had no session and asked for nothing for long"),
    ("connections", Gauge, "Connections of clients"),
    ("divergences", Counter, "Votes in which another replica's state differed"),
    ("duplicates", Counter, "Requests that came again"),
    ("faulty_objects", Gauge, "Objects that keep faults of handlers"),
    (TIMES, Histogram, "Time until a request over HTTP was answered, by method and route"),
    ("inputs", Counter, "Inputs that the driver took"),
    ("invocations", Counter, "Calls and handlers that were begun"),
    ("is_leader", Gauge, "Whether this replica leads"),
    ("live_activations", Gauge, "Blocked calls that keep their instance"),
    ("log_applied", Gauge, "Index of the last log entry that was applied"),
    ("log_decided", Gauge, "Index of the last log entry that was decided"),
    ("log_first", Gauge, "Index of the first entry that the log holds"),
    ("log_syncs", Counter, "Syncs of the log to the disk"),
    ("messages_sent", Counter, "Messages that were sent to clients"),
    ("now_seconds", Gauge, "Ordered time, since the Unix epoch"),
    ("parked", Counter, "Blocked calls whose instance was dropped"),
    ("peers_connected", Gauge, "Other replicas to which a connection stands"),
    ("reads", Counter, "Reads that were served"),
    ("rebuilt", Counter, "Instances that were rebuilt from a journal"),
    ("refusals", Counter, "Requests that were not admitted"),
    ("resumptions", Counter, "Blocked calls that went on"),
    ("sessions_attached", Gauge, "Sessions whose client is connected here"),
    ("snapshot_bytes", Gauge, "Size of the newest snapshot"),
    ("snapshot_index", Gauge, "Log index of the newest snapshot"),
    ("snapshot_pieces_given", Counter, "Pieces of snapshots that were given to others"),
    ("snapshots_failed", Counter, "Snapshots that could not be written"),
    ("snapshots_installed", Counter, "Snapshots that were taken from others"),
    ("snapshots_written", Counter, "Snapshots that were written"),
    ("spans_exported", Counter, "Spans that the collector of traces took"),
    ("spans_lost", Counter, "Spans that it did not get"),
    (
        "stands_still",
        Gauge,
        "Whether the replica stands still since it cannot make the next file of its log",
    ),
    ("standstills", Counter, "How often it stood still"),
    ("steps", Counter, "Steps of the kernel"),
    ("takeovers", Counter, "Elections that began because a leader's process was gone"),
    ("transfers", Counter, "Times this replica tried to take the lead because it was asked to"),
    ("turns", Counter, "Turns of the driver"),
    ("undone_segments", Counter, "Segments that were undone"),
    ("void_batches", Counter, "Batches of leaders that were none any more"),
    (
        "wakeups_in_vain",
        Counter,
        "Calls that went on without a permit and waited for the same again",
    ),
];

/// `GET /metrics`.
pub(super) async fn metrics(State(gateway): State<Shared>) -> Result<Response, Problem> {
    let mut counts = gateway.client.counters().await?;
    let status = gateway.client.cluster_status().await?;
    counts.extend([
        ("log_decided".into(), status.log_decided),
        ("now_seconds".into(), status.now / 1_000_000_000),
        ("is_leader".into(), u64::from(status.leader == Some(status.replica))),
        ("peers_connected".into(), status.connected.len() as u64),
    ]);
    let text = exposition(counts, gateway.times.clone()).map_err(|error| {
        Failure::new(Exit::Failed, "metrics", format!("the metrics cannot be written: {error}"))
    })?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

fn exposition(counts: Vec<(String, u64)>, times: Times) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("gesmas");
    registry.register_collector(Box::new(Counts { counts, times }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Counts {
    counts: Vec<(String, u64)>,
    times: Times,
}

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, count) in &self.counts {
            let Some((_, kind, help)) = DESCRIBED.iter().find(|(known, ..)| known == name) else {
                continue;
            };
            match kind {
                Counter => {
                    let metric = ConstCounter::new(*count);
                    let one = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
                    metric.encode(one)?;
                }
                Gauge => {
                    let metric = ConstGauge::new(i64::try_from(*count).unwrap_or(i64::MAX));
                    let one = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
                    metric.encode(one)?;
                }
                Histogram => {}
            }
        }
        let (_, _, help) =
            DESCRIBED.iter().find(|(known, ..)| *known == TIMES).expect("it is described");
        let kind = self.times.metric_type();
        self.times.encode(encoder.encode_descriptor(TIMES, help, None, kind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::watch::times, *};

    #[test]
    fn the_documentation_lists_the_metrics() {
        let rows: Vec<_> = DESCRIBED
            .iter()
            .map(|(name, kind, help)| match kind {
                Counter => format!("| `gesmas_{name}_total` | counter | {help} |"),
                Gauge => format!("| `gesmas_{name}` | gauge | {help} |"),
                Histogram => format!("| `gesmas_{name}` | histogram | {help} |"),
            })
            .collect();
        let page = include_str!("../../../docs/metrics.md");
        let listed: Vec<_> = page.lines().filter(|line| line.starts_with("| `gesmas_")).collect();
        assert_eq!(listed, rows, "docs/metrics.md is to have these rows:\n{}", rows.join("\n"));
    }

    #[test]
    fn counters_and_gauges_are_exposed_as_such() {
        let text = exposition(vec![("steps".into(), 7), ("blocked_now".into(), 2)], times());
        let text = text.expect("a string takes text");
        for line in ["# TYPE gesmas_steps counter", "gesmas_steps_total 7", "gesmas_blocked_now 2"]
        {
            assert!(text.lines().any(|found| found == line), "{line:?} is missing in\n{text}");
        }
    }
}
