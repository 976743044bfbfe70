//! A collector of traces, for tests: an OTLP end over HTTP that keeps the spans it gets.
//!
//! Invariant: what is no OTLP request in protobuf fails the request and, when it is looked at, the test.
//! Not here: any other signal than traces.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::Span,
};
use prost::Message as _;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::wait;

/// A span that came, with what tests look at as text.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The span.
    pub span: Span,
    /// Its attributes, and under `resource.` those of whoever sent it.
    pub attributes: BTreeMap<String, String>,
}

impl Exported {
    /// An attribute; an empty text if it has none of this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct Kept {
    spans: Vec<Exported>,
    malformed: Vec<String>,
}

/// See the file's head.
pub struct Collector {
    address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
    task: JoinHandle<()>,
}

impl Collector {
    /// Listens on loopback.
    ///
    /// # Panics
    /// When it cannot.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a socket that listens has an address");
        let kept = Arc::<Mutex<Kept>>::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(kept.clone());
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves until it is dropped");
        });
        Self { address, kept, task }
    }

    /// The setting that sends spans here.
    #[must_use]
    pub fn settings(&self) -> String {
        format!("[tracing]\notlp = \"http://{}\"", self.address)
    }

    /// Waits for a span.
    ///
    /// # Panics
    /// When it does not come in time, or something came that is none.
    pub async fn span(&self, what: &str, is_it: impl Fn(&Exported) -> bool) -> Exported {
        wait::until_some(what, || {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(kept.malformed, [""; 0], "something is no OTLP");
            let found = kept.spans.iter().find(|span| is_it(span)).cloned();
            async { found }
        })
        .await
    }

    /// How many such spans have come.
    #[must_use]
    pub fn count(&self, is_it: impl Fn(&Exported) -> bool) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.spans.iter().filter(|span| is_it(span)).count()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(
    State(kept): State<Arc<Mutex<Kept>>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Vec<u8>, StatusCode> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let kind = headers.get(header::CONTENT_TYPE).cloned();
    let request = ExportTraceServiceRequest::decode(body);
    match request {
        Ok(request) if kind.as_ref().is_some_and(|kind| kind == "application/x-protobuf") => {
            kept.spans.extend(spans(request));
            Ok(ExportTraceServiceResponse::default().encode_to_vec())
        }
        other => {
            kept.malformed.push(format!("{kind:?}: {:?}", other.err()));
            Err(StatusCode::BAD_REQUEST)
        }
    }
}

fn spans(request: ExportTraceServiceRequest) -> Vec<Exported> {
    let mut found = Vec::new();
    for part in request.resource_spans {
        let resource = part.resource.map(|resource| texts(&resource.attributes, "resource."));
        let resource = resource.unwrap_or_default();
        for span in part.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            let mut attributes = texts(&span.attributes, "");
            attributes.extend(resource.clone());
            found.push(Exported { span, attributes });
        }
    }
    found
}

/// Attributes as text.
fn texts(attributes: &[KeyValue], prefix: &str) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|any| any.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(truth)) => truth.to_string(),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|pair| (format!("{prefix}{}", pair.key), text(&pair.value))).collect()
}
