//! The way to the collector: one HTTP/1.1 request a batch, over a connection of its own.
//!
//! A batch leaves a few times a second at most, so a connection that stays open would save nothing
//! that can be measured, and would have to be watched.
//! Invariants: a request takes no longer than [`PATIENCE`], and its answer is not longer than
//! [`ANSWER_MAX`].
//! Not here: encryption. A collector on the same host takes spans onward.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use tokio::net::TcpStream;

/// Longest time of a request, from connecting to the last byte of its answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer, bytes.
const ANSWER_MAX: usize = 64 << 10;
/// Port of addresses that name none.
const PORT: u16 = 80;

/// A client of the collector.
#[derive(Clone, Debug, Default)]
pub(super) struct Collector {
    rejected: Arc<Mutex<Option<Rejected>>>,
}

/// Spans that a collector did not take although it answered that all went well. They must not be
/// sent again: it would take the rest of their batch twice.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) spans: u64,
    /// Why, as it says.
    pub(super) message: String,
}

impl Collector {
    /// What it has rejected of the last batch.
    pub(super) fn take_rejected(&self) -> Option<Rejected> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note_rejected(&self, answer: &Response<Bytes>) {
        let told = ExportTraceServiceResponse::decode(answer.body().clone());
        // An answer that is none of these was not asked for anything more than its status.
        let Some(part) = told.ok().and_then(|told| told.partial_success) else { return };
        if let Ok(spans @ 1..) = u64::try_from(part.rejected_spans) {
            let rejected = Rejected { spans, message: part.error_message };
            *self.rejected.lock().unwrap_or_else(PoisonError::into_inner) = Some(rejected);
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = match tokio::time::timeout(PATIENCE, send(request)).await {
            Ok(answer) => answer?,
            Err(_) => return Err(format!("no answer within {PATIENCE:?}").into()),
        };
        if answer.status().is_success() {
            self.note_rejected(&answer);
        }
        Ok(answer)
    }
}

async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let authority = request.uri().authority().cloned().ok_or("the address names no host")?;
    let stream = TcpStream::connect((host(authority.host()), authority.port_u16().unwrap_or(PORT)));
    let stream = stream.await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).parse()?;
    *request.uri_mut() = path;
    request.headers_mut().insert("host", authority.as_str().parse()?);
    // The connection is driven here: it ends with the request.
    let exchange = async {
        let answer = sender.send_request(request.map(Full::new)).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await?.to_bytes();
        Ok::<_, HttpError>(Response::from_parts(head, body))
    };
    tokio::pin!(exchange);
    let answer = tokio::select! {
        answer = &mut exchange => answer?,
        ended = connection => {
            ended?;
            // What came before the end may not have been looked at yet.
            exchange.await?
        }
    };
    Ok(answer)
}

/// The address of a host: one of IPv6 is written in brackets.
fn host(name: &str) -> &str {
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use axum::{Router, routing::post};
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
    use tokio::net::TcpListener;

    use super::*;

    /// Sends a request to a collector that answers this; gives the answer's length.
    async fn answered(collector: &Collector, answer: Vec<u8>) -> Result<usize, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it listens");
        let router = Router::new().route("/v1/traces", post(async move || answer));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let request = Request::post(format!("http://{address}/v1/traces"));
        let request = request.body(Bytes::from_static(b"spans")).expect("it is a request");
        let answer = collector.send_bytes(request).await;
        server.abort();
        answer.map(|answer| answer.body().len()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn what_a_collector_rejects_is_known() {
        let collector = Collector::default();
        let part = |rejected_spans| ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans,
                error_message: "full".into(),
            }),
        };
        answered(&collector, part(3).encode_to_vec()).await.expect("it answers");
        let rejected = collector.take_rejected().expect("some were rejected");
        assert_eq!((rejected.spans, rejected.message.as_str()), (3, "full"));
        answered(&collector, part(0).encode_to_vec()).await.expect("it answers");
        answered(&collector, Vec::new()).await.expect("it answers");
        assert!(collector.take_rejected().is_none());
    }

    #[tokio::test]
    async fn an_answer_without_end_is_not_read_to_its_end() {
        let collector = Collector::default();
        assert_eq!(answered(&collector, vec![0; ANSWER_MAX]).await, Ok(ANSWER_MAX));
        answered(&collector, vec![0; ANSWER_MAX + 1]).await.expect_err("it is too long");
    }
}
