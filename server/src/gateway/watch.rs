//! What the gateway sees of its own requests: how long each took, and which failed.
//!
//! Invariants: a request is timed however it ends, also when its client hangs up; labels are of the
//! gateway's own routes and of known methods, so no client can make the number of series grow.
//! Not here: the time from a call's admission to its end in the cluster, which includes no HTTP.

use std::time::Instant;

use axum::{
    extract::{MatchedPath, Request, State},
    http::Method,
    middleware::Next,
    response::Response,
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
};

use super::{Shared, errors::Told};

/// Bounds of the buckets, seconds: a call takes a millisecond, a blocked one as long as it blocks.
const BOUNDS: [f64; 14] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0, 300.0];

/// The route of requests that have none.
const NOWHERE: &str = "none";

/// What kind of request it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Labels {
    pub(super) method: &'static str,
    pub(super) route: String,
}

impl Labels {
    pub(super) fn of(request: &Request) -> Self {
        let method = match *request.method() {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::DELETE => "DELETE",
            Method::HEAD => "HEAD",
            _ => "other",
        };
        let route = request.extensions().get::<MatchedPath>();
        Self { method, route: route.map_or(NOWHERE, MatchedPath::as_str).into() }
    }
}

/// Times of requests, from when their head was read to when the head of the answer was ready.
pub(super) type Times = Family<Labels, Histogram>;

/// No times yet.
pub(super) fn times() -> Times {
    Family::new_with_constructor(|| Histogram::new(BOUNDS))
}

/// Takes a time when it is dropped: at the end of a request, or when its client has hung up.
struct Timing<'a> {
    times: &'a Times,
    labels: Labels,
    start: Instant,
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        let seconds = self.start.elapsed().as_secs_f64();
        self.times.get_or_create(&self.labels).observe(seconds);
    }
}

/// Lets a request pass, and takes down how it went.
pub(super) async fn watch(State(gateway): State<Shared>, request: Request, next: Next) -> Response {
    let labels = Labels::of(&request);
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let timing = Timing { times: &gateway.times, labels, start: Instant::now() };
    let mut response = next.run(request).await;
    drop(timing);
    if let Some(told) = response.extensions_mut().remove::<Told>() {
        gateway.errors.note(method.as_str(), &path, response.status(), told);
    }
    response
}
