//! The task that sends spans to the collector, in batches.
//!
//! It looks at the queue some times a second instead of waiting on it: whoever ends a span would have
//! to wake it otherwise, and waking another thread costs the driver more than a call.
//! Invariants: a batch is tried a few times and then lost; meanwhile the queue fills and loses what does
//! not fit. Losses of a minute are one line of the log, whatever their number. Stopping takes no
//! longer than [`FAREWELL`].
//! Not here: what spans are made of (`convert.rs`), and the connection (`collector.rs`).

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, RetryPolicy, SpanExporter, WithExportConfig as _,
    WithHttpConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use super::{
    Shared,
    collector::{Collector, PATIENCE},
    convert::{convert, scope},
    span::Span,
};
use crate::shell::Config;

/// Between two looks at the queue.
const PAUSE: Duration = Duration::from_millis(200);
/// Most spans of one request: what collectors are used to.
const BATCH: usize = 512;
/// How often a batch is sent before it is lost.
const ATTEMPTS: u32 = 3;
/// Between two attempts.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two lines of the log about losses.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// How long the last spans of a replica that stops may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why traces cannot be exported.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be exported: {0}")]
pub struct TraceError(#[from] ExporterBuildError);

/// The task, while it runs. Dropping this ends it, after the spans that are in the queue.
#[derive(Debug)]
pub struct Exporting {
    stopping: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Exporting {
    /// Sends what is in the queue, and ends.
    pub(crate) async fn stop(mut self) {
        self.stopping.send_replace(true);
        if tokio::time::timeout(FAREWELL, &mut self.task).await.is_err() {
            self.task.abort();
            tracing::warn!("the last spans were not exported: the collector is too slow");
        }
    }
}

/// See the file's head.
pub(super) struct Exporter {
    spans: mpsc::Receiver<Span>,
    sink: SpanExporter,
    collector: Collector,
    scope: InstrumentationScope,
    shared: Arc<Shared>,
    losses: Losses,
}

/// What the log was told of losses.
#[derive(Default)]
struct Losses {
    /// How many spans it knows of.
    told: u64,
    at: Option<Instant>,
    /// The newest reason, if it was not the queue.
    reason: Option<String>,
}

impl Exporter {
    pub(super) fn new(
        config: &Config,
        spans: mpsc::Receiver<Span>,
        shared: Arc<Shared>,
    ) -> Result<Self, ExporterBuildError> {
        let collector = Collector::default();
        let address = config.tracing.otlp.trim_end_matches('/');
        let mut sink = SpanExporter::builder()
            .with_http()
            .with_http_client(collector.clone())
            .with_retry_policy(RetryPolicy::disabled())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{address}/v1/traces"))
            .with_timeout(PATIENCE)
            .build()?;
        sink.set_resource(&resource(config));
        let losses = Losses::default();
        Ok(Self { spans, sink, collector, scope: scope(), shared, losses })
    }

    pub(super) fn spawn(self) -> Exporting {
        let (stopping, stop) = watch::channel(false);
        Exporting { stopping, task: tokio::spawn(self.run(stop)) }
    }

    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut looks = tokio::time::interval(PAUSE);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let stopping = tokio::select! {
                _ = looks.tick() => false,
                () = stopped(&mut stop) => true,
            };
            while let Some(batch) = self.next_batch() {
                self.export(batch, &mut stop).await;
                self.losses.tell(self.lost(), false);
            }
            self.losses.tell(self.lost(), stopping);
            if stopping {
                return;
            }
        }
    }

    fn lost(&self) -> u64 {
        self.shared.counts.lost.load(Ordering::Relaxed)
    }

    fn next_batch(&mut self) -> Option<Vec<SpanData>> {
        let mut batch = Vec::new();
        while batch.len() < BATCH
            && let Ok(span) = self.spans.try_recv()
        {
            batch.push(convert(span, &self.scope));
        }
        (!batch.is_empty()).then_some(batch)
    }

    async fn export(&mut self, batch: Vec<SpanData>, stop: &mut watch::Receiver<bool>) {
        let spans = batch.len() as u64;
        let counts = &self.shared.counts;
        for attempt in 1..=ATTEMPTS {
            match self.sink.export(batch.clone()).await {
                Ok(()) => {
                    let rejected = self.collector.take_rejected();
                    let missing = rejected.as_ref().map_or(0, |rejected| rejected.spans.min(spans));
                    counts.exported.fetch_add(spans - missing, Ordering::Relaxed);
                    counts.lost.fetch_add(missing, Ordering::Relaxed);
                    let message = |message| format!("the collector rejected them: {message}");
                    let reason = rejected.map(|rejected| message(rejected.message));
                    self.losses.reason = reason.or_else(|| self.losses.reason.take());
                    return;
                }
                Err(error) => self.losses.reason = Some(error.to_string()),
            }
            let stopping = *stop.borrow();
            if attempt == ATTEMPTS || stopping {
                break;
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                // Then it is tried once more, at once.
                () = stopped(stop) => {}
            }
        }
        counts.lost.fetch_add(spans, Ordering::Relaxed);
    }
}

/// Waits until the task is to end. That nobody can say so any more is the same.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _gone = stop.wait_for(|stopping| *stopping).await;
}

impl Losses {
    /// Logs losses that were not logged yet, if it is time for it.
    fn tell(&mut self, lost: u64, last: bool) {
        let due = last || self.at.is_none_or(|at| at.elapsed() >= TOLD_EVERY);
        if lost == self.told || !due {
            return;
        }
        let reason = self.reason.take();
        let reason = reason.as_deref().unwrap_or("more spans end than can be exported");
        tracing::warn!(lost = lost - self.told, reason, "spans were lost");
        (self.told, self.at) = (lost, Some(Instant::now()));
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

/// Who exports. What `OTEL_RESOURCE_ATTRIBUTES` says is added; what is said here stands.
fn resource(config: &Config) -> Resource {
    Resource::builder()
        .with_service_name("gesmas")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", format!("{}/{}", config.cluster, config.replica)),
        ])
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_a_minute_are_told_once() {
        let mut losses = Losses::default();
        losses.tell(0, true);
        assert!(losses.at.is_none(), "nothing was lost");
        losses.tell(3, false);
        assert_eq!(losses.told, 3, "the first are told at once");
        losses.tell(1_000, false);
        assert_eq!(losses.told, 3, "others have to wait");
        losses.tell(1_000, true);
        assert_eq!(losses.told, 1_000, "but not beyond the end");
    }
}
