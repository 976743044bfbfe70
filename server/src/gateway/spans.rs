//! Spans of requests over HTTP, and what they are parents of.
//!
//! A request under `/v1` has a span if its caller has decided so (`traceparent`), or, without one, as
//! often as the configuration says. It is the parent of the span of the call that it makes. Reads have
//! spans of their own, without a parent: they have no number by which the replica could know them.
//! Invariants: a span ends however its request ends, also when its client hangs up. What handlers
//! say of it is kept beside the task that serves it, so that they need not pass it on.
//! Not here: metrics of the same requests (`watch.rs`).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use axum::{
    extract::{MatchedPath, Request, State},
    http::HeaderMap,
    middleware::Next,
    response::Response,
};
use opentelemetry::{
    Context,
    propagation::TextMapPropagator as _,
    trace::{SpanContext, TraceContextExt as _},
};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::propagation::TraceContextPropagator;

use super::{Shared, errors::Told, watch};
use crate::trace::{Coin, HttpCall, HttpSpan, ParentGuard, Span, Tracer, new_context};

/// Where calls, sessions and questions of operators are; health and metrics are asked for all the time.
const TRACED: &str = "/v1/";

tokio::task_local! {
    /// The span of the request that this task serves.
    static CURRENT: RequestSpan;
}

/// What a gateway needs to make spans.
pub(super) struct HttpSpans {
    tracer: Tracer,
    coin: Mutex<Coin>,
}

impl HttpSpans {
    pub(super) fn new(tracer: Tracer) -> Self {
        Self { coin: Mutex::new(tracer.coin()), tracer }
    }

    fn begin(&self, request: &Request) -> Option<RequestSpan> {
        let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str)?;
        if !route.starts_with(TRACED) {
            return None;
        }
        let parent = parent(request.headers());
        let wanted = match &parent {
            Some(parent) => parent.is_sampled(),
            None => self.coin.lock().unwrap_or_else(PoisonError::into_inner).toss(),
        };
        wanted.then(|| RequestSpan {
            tracer: self.tracer.clone(),
            context: new_context(parent.as_ref()),
            parent,
            call: Arc::default(),
        })
    }
}

/// The caller's span. A `traceparent` that is malformed is none, as its specification wants.
fn parent(headers: &HeaderMap) -> Option<SpanContext> {
    let propagator = TraceContextPropagator::new();
    let context = propagator.extract_with_context(&Context::new(), &HeaderExtractor(headers));
    let parent = context.span().span_context().clone();
    parent.is_valid().then_some(parent)
}

/// The span of a request while it is served, as handlers see it.
#[derive(Clone)]
pub(super) struct RequestSpan {
    tracer: Tracer,
    context: SpanContext,
    parent: Option<SpanContext>,
    call: Arc<Mutex<HttpCall>>,
}

impl RequestSpan {
    /// That of the request which this task serves, if it has one.
    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Says which method the request calls.
    pub(super) fn set_target(&self, class: &str, object: &str, method: &str) {
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        call.target = Some((class.into(), object.into(), method.into()));
    }

    /// Makes it the parent of a call, until the guard is dropped.
    pub(super) fn adopt(&self, session: u64, number: u64) -> ParentGuard {
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        call.place = Some((session, number));
        self.tracer.adopt(session, number, self.context.clone())
    }
}

/// Ends a span when it is dropped: at the end of its request, or when its client has hung up.
struct Ending {
    span: RequestSpan,
    method: &'static str,
    route: String,
    path: String,
    start: SystemTime,
    /// Status and stable code of the answer.
    answer: Option<(u16, Option<String>)>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let RequestSpan { tracer, context, parent, call } = &self.span;
        let (status, code) = self.answer.take().unzip();
        tracer.end(Span::Http(Box::new(HttpSpan {
            context: context.clone(),
            parent: parent.clone(),
            method: self.method,
            route: std::mem::take(&mut self.route),
            path: std::mem::take(&mut self.path),
            start: self.start,
            end: SystemTime::now(),
            status,
            code: code.flatten(),
            call: call.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        })));
    }
}

/// Lets a request pass, under a span if it is to have one.
pub(super) async fn trace(State(gateway): State<Shared>, request: Request, next: Next) -> Response {
    let begun = gateway.spans.as_ref().and_then(|spans| spans.begin(&request));
    let Some(span) = begun else { return next.run(request).await };
    let labels = watch::Labels::of(&request);
    let mut ending = Ending {
        span: span.clone(),
        method: labels.method,
        route: labels.route,
        path: request.uri().path().to_owned(),
        start: SystemTime::now(),
        answer: None,
    };
    let response = CURRENT.scope(span, next.run(request)).await;
    let code = response.extensions().get::<Told>().map(|told| told.code().to_owned());
    ending.answer = Some((response.status().as_u16(), code));
    response
}
