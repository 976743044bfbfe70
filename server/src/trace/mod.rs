//! Traces: what became of single calls, sent to a collector that speaks OTLP.
//!
//! ```text
//! driver  ──┐ try_send                  one task: batches, retries, counts
//!           ├──────────► bounded queue ─────────────────────────────────────► collector
//! gateway ──┘                                          OTLP, protobuf over HTTP
//! ```
//!
//! Whoever ends a span puts what it knows of it into the queue, as it is; ids, names and attributes
//! are made of it by the task that exports (`convert.rs`). So a span costs the driver two looks at the
//! clock and a place in a queue, and the tracer of the SDK, which makes all that where a span ends, is
//! not used. Nor are the spans of the crate `tracing`: those are scopes of a program, and a call has
//! none between its request and its reply.
//! Invariants: nobody waits for the queue or for the collector: what does not fit is lost, counted, and
//! logged once in a while. No argument, result or payload is in a span: they can be secrets.
//! Not here: which calls have spans and when they begin (`shell/spans.rs`, `gateway/spans.rs`).

mod collector;
mod convert;
mod export;
mod parents;
mod sampling;
mod span;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::mpsc;

pub use self::export::{Exporting, TraceError};
pub(crate) use self::{
    convert::new_context,
    parents::ParentGuard,
    sampling::Coin,
    span::{Blocked, CallEnd, CallSpan, HttpCall, HttpSpan, ReadSpan, Span, Subject},
};
use self::{export::Exporter, parents::Parents};
use crate::shell::Config;

/// Spans that wait to be exported. With the pause between two exports this is what a second can bring
/// without loss; each takes some hundred bytes.
const QUEUE: usize = 16_384;

/// Takes spans, and counts those that are lost. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tracer {
    queue: mpsc::Sender<Span>,
    shared: Arc<Shared>,
    sample: f64,
}

#[derive(Debug, Default)]
struct Shared {
    counts: Counts,
    parents: Parents,
}

/// Counts since the start of the process.
#[derive(Debug, Default)]
struct Counts {
    exported: AtomicU64,
    lost: AtomicU64,
}

impl Tracer {
    /// Starts exporting, on the runtime of whoever calls; none when the configuration has no collector.
    ///
    /// # Errors
    /// [`TraceError`] when the environment asks for an export that cannot be had.
    pub(crate) fn start(config: &Config) -> Result<Option<(Self, Exporting)>, TraceError> {
        if config.tracing.otlp.is_empty() {
            return Ok(None);
        }
        let (queue, spans) = mpsc::channel(QUEUE);
        let shared = Arc::<Shared>::default();
        let exporter = Exporter::new(config, spans, shared.clone())?;
        let exporting = exporter.spawn();
        Ok(Some((Self { queue, shared, sample: config.tracing.sample }, exporting)))
    }

    /// Hands a span over, or counts it as lost. Never waits.
    pub(crate) fn end(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.lost();
        }
    }

    /// Counts a span that is not going to be: there is no room to remember it.
    pub(crate) fn lost(&self) {
        self.shared.counts.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// A coin for spans without a parent that says whether they are wanted.
    pub(crate) fn coin(&self) -> Coin {
        Coin::new(self.sample)
    }

    /// Spans of HTTP requests whose calls are on their way to this replica.
    pub(crate) fn parents(&self) -> &Parents {
        &self.shared.parents
    }

    /// Makes a span the parent of the call with this number, until the guard is dropped.
    pub(crate) fn adopt(
        &self,
        session: u64,
        number: u64,
        parent: opentelemetry::trace::SpanContext,
    ) -> ParentGuard {
        ParentGuard::new(self.clone(), (session, number), parent)
    }

    /// Spans that the collector took, and spans that were lost.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let Counts { exported, lost } = &self.shared.counts;
        (exported.load(Ordering::Relaxed), lost.load(Ordering::Relaxed))
    }
}
