//! From what is known of a span to what OTLP sends: ids, names, attributes.
//!
//! Attributes of gesmas begin with `gesmas.`; those of HTTP are of OpenTelemetry's conventions.
//! Invariants: a name is one of few: it has classes, methods and routes, never objects or numbers. A
//! span's status is an error if and only if the log has a line about it, or HTTP says 5xx.
//! Not here: when spans begin and end.

use std::{borrow::Cow, time::SystemTime};

use opentelemetry::{
    InstrumentationScope, KeyValue, Value,
    trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState},
};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator, SpanData};

use super::span::{CallEnd, CallSpan, HttpSpan, ReadSpan, Span, Subject};

/// Method of a creation.
const INIT: &str = "init";

/// The context of a new span: in the trace of its parent, or in one of its own.
pub(crate) fn new_context(parent: Option<&SpanContext>) -> SpanContext {
    let ids = RandomIdGenerator::default();
    let trace = parent.map_or_else(|| ids.new_trace_id(), SpanContext::trace_id);
    let state = parent.map_or(TraceState::NONE, |parent| parent.trace_state().clone());
    SpanContext::new(trace, ids.new_span_id(), TraceFlags::SAMPLED, false, state)
}

/// What all spans are made by.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("gesmas").with_version(env!("CARGO_PKG_VERSION")).build()
}

/// A span as the exporter takes it.
pub(super) fn convert(span: Span, scope: &InstrumentationScope) -> SpanData {
    match span {
        Span::Call(call) => of_call(call, scope),
        Span::Read(read) => of_read(read, scope),
        Span::Http(http) => of_http(*http, scope),
    }
}

/// What all kinds of spans have.
struct Common {
    context: SpanContext,
    parent: Option<SpanContext>,
    name: String,
    start: SystemTime,
    end: SystemTime,
    attributes: Vec<KeyValue>,
    status: Status,
}

impl Common {
    fn into_span(self, scope: &InstrumentationScope) -> SpanData {
        let parent = self.parent;
        SpanData {
            span_context: self.context,
            parent_span_id: parent.as_ref().map_or(SpanId::INVALID, SpanContext::span_id),
            parent_span_is_remote: parent.is_some_and(|parent| parent.is_remote()),
            span_kind: SpanKind::Server,
            name: Cow::Owned(self.name),
            start_time: self.start,
            // The clock may have been set back meanwhile.
            end_time: self.end.max(self.start),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: self.status,
            instrumentation_scope: scope.clone(),
        }
    }
}

fn of_call(call: CallSpan, scope: &InstrumentationScope) -> SpanData {
    let (name, mut attributes) = of_subject(&call.subject, "call");
    attributes.extend([
        KeyValue::new("gesmas.session", number(call.session)),
        KeyValue::new("gesmas.number", number(call.number)),
        KeyValue::new("gesmas.replied", call.replied),
    ]);
    let status = of_end(&call.outcome, &mut attributes);
    let context = new_context(call.parent.as_ref());
    let (parent, start, end) = (call.parent, call.start, call.end);
    let common = Common { context, parent, name, start, end, attributes, status };
    let mut span = common.into_span(scope);
    if let Some(blocked) = call.blocked {
        let semaphore = String::from_utf8_lossy(&blocked.semaphore).into_owned();
        let attributes = vec![
            KeyValue::new("gesmas.semaphore", semaphore),
            KeyValue::new("gesmas.invocation", number(blocked.invocation.0)),
        ];
        span.events.events.push(Event::new("blocked", blocked.at, attributes, 0));
    }
    span
}

fn of_read(read: ReadSpan, scope: &InstrumentationScope) -> SpanData {
    let (name, mut attributes) = of_subject(&read.subject, "read");
    attributes.push(KeyValue::new("gesmas.stale", read.stale));
    attributes.extend(read.session.map(|session| KeyValue::new("gesmas.session", number(session))));
    let status = of_end(&read.outcome, &mut attributes);
    let (start, end) = (read.start, read.end);
    let context = new_context(None);
    Common { context, parent: None, name, start, end, attributes, status }.into_span(scope)
}

fn of_http(http: HttpSpan, scope: &InstrumentationScope) -> SpanData {
    let mut attributes = vec![
        KeyValue::new("http.request.method", http.method),
        KeyValue::new("url.path", http.path),
    ];
    let name = format!("{} {}", http.method, http.route);
    attributes.push(KeyValue::new("http.route", http.route));
    if let Some((class, object, method)) = http.call.target {
        attributes.extend(of_names(class, object, method));
    }
    if let Some((session, call)) = http.call.place {
        attributes.push(KeyValue::new("gesmas.session", number(session)));
        attributes.push(KeyValue::new("gesmas.number", number(call)));
    }
    let status = match http.status {
        Some(status) => {
            attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
            let error = || Status::error(http.code.clone().unwrap_or_default());
            if status >= 500 { error() } else { Status::Unset }
        }
        // Nobody is there to be told of anything: what the conventions say of a client that is gone.
        None => Status::Unset,
    };
    let code = match http.status {
        Some(_) => http.code,
        None => Some("hung-up".into()),
    };
    attributes.extend(code.map(|code| KeyValue::new("gesmas.outcome", code)));
    let (context, parent, start, end) = (http.context, http.parent, http.start, http.end);
    Common { context, parent, name, start, end, attributes, status }.into_span(scope)
}

/// Name and attributes of a call or read.
fn of_subject(subject: &Subject, kind: &'static str) -> (String, Vec<KeyValue>) {
    let Subject { object, method } = subject;
    let method = method.as_ref().map_or(INIT, |method| method.as_str());
    let class = object.class.as_str();
    let name = format!("{class}/{method}");
    let mut attributes = vec![KeyValue::new("gesmas.kind", kind)];
    attributes.extend(of_names(class.into(), object.name.to_string(), method.into()));
    (name, attributes)
}

fn of_names(class: String, object: String, method: String) -> [KeyValue; 3] {
    [
        KeyValue::new("gesmas.class", class),
        KeyValue::new("gesmas.object", object),
        KeyValue::new("gesmas.method", method),
    ]
}

/// Adds how it ended; gives the status.
fn of_end(end: &CallEnd, attributes: &mut Vec<KeyValue>) -> Status {
    attributes.push(KeyValue::new("gesmas.outcome", end.code.clone()));
    attributes.extend(end.step.map(|step| KeyValue::new("gesmas.step", number(step))));
    let id = end.id.map(|id| KeyValue::new("gesmas.error_id", format!("{id:016x}")));
    attributes.extend(id);
    if end.failed { Status::error(end.code.clone()) } else { Status::Unset }
}

/// A number as OTLP has it, which knows no unsigned ones; one that is too large is a text.
fn number(value: u64) -> Value {
    i64::try_from(value).map_or_else(|_| value.to_string().into(), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_span_is_in_the_trace_of_its_parent() {
        let root = new_context(None);
        let child = new_context(Some(&root));
        assert!(root.is_valid() && root.is_sampled());
        assert_eq!(child.trace_id(), root.trace_id());
        assert_ne!(child.span_id(), root.span_id());
        assert_ne!(new_context(None).trace_id(), root.trace_id());
    }

    #[test]
    fn numbers_beyond_what_otlp_has_are_texts() {
        assert_eq!(number(7), Value::from(7_i64));
        assert_eq!(number(u64::MAX), Value::from(u64::MAX.to_string()));
    }
}
