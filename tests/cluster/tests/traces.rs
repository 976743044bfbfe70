//! Traces as a collector gets them: of calls that block and fail, of reads, of HTTP; and what becomes
//! of them when no collector is there.

use gesmas_abi::value::Bytes;
use gesmas_client::Session;
use gesmas_cluster_tests::{
    Class, Cluster, Collector, Exported, Http, arguments, hostile_class, wait,
};
use opentelemetry_proto::tonic::trace::v1::{span::SpanKind, status::StatusCode};
use reqwest::Method;
use serde_json::{Value, json};

/// Waits until a call on an object is blocked at this replica.
async fn blocked(http: &Http, class: &str, object: &str) {
    let path = format!("/v1/invocations?class={class}&object={object}");
    wait::until("that a call is blocked", || async {
        let answer = http.send(Method::GET, &path, Value::Null).await;
        answer.body["invocations"].as_array().map(Vec::len) == Some(1)
    })
    .await;
}

/// The span of a call or read of an object that ended so. A call that ships its class has others before,
/// of requests that were turned away.
async fn span_of(
    collector: &Collector,
    kind: &str,
    (object, method, outcome): (&str, &str, &str),
) -> Exported {
    let what = format!("a span of {method} of {object} that ended as {outcome}");
    let is_it = |span: &Exported| {
        span.attribute("gesmas.kind") == kind
            && span.attribute("gesmas.object") == object
            && span.attribute("gesmas.method") == method
            && span.attribute("gesmas.outcome") == outcome
    };
    let found = collector.span(&what, is_it).await;
    let span = &found.span;
    assert_eq!(span.kind(), SpanKind::Server, "{span:?}");
    assert!(span.start_time_unix_nano > 0, "{span:?}");
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
    found
}

fn status(exported: &Exported) -> StatusCode {
    exported.span.status.as_ref().map_or(StatusCode::Unset, |status| status.code())
}

async fn create_queue(session: &Session, object: &str) {
    let signature = Class::standard("Queue").signature("init");
    let created = session.create_object("Queue", object, signature, arguments((1_u32,))).await;
    created.expect("the queue is created");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_reads_have_spans() {
    let collector = Collector::start().await;
    let mut cluster = Cluster::start_with(&collector.settings()).await;
    let http = Http::new(cluster.http_address(1));
    let session = cluster.session_of(1).await;

    a_call_that_blocks(&collector, &http, &session).await;
    calls_that_fail(&collector, &session).await;
    reads(&collector, &session).await;
    spans_that_a_stop_ends(&collector, &mut cluster, &session).await;
}

async fn a_call_that_blocks(collector: &Collector, http: &Http, session: &Session) {
    create_queue(session, "jobs").await;
    let queue = Class::standard("Queue");
    let consume = queue.call(session, "jobs", "consume", Vec::new()).send();
    let number = consume.number().expect("it was made");
    blocked(http, "Queue", "jobs").await;
    let item = arguments((Bytes(b"resize".to_vec()),));
    queue.call(session, "jobs", "produce", item).await.expect("there is room");
    wait::bounded("the consumer", consume).await.expect("it gets the item");

    let found = span_of(collector, "call", ("jobs", "consume", "ok")).await;
    let span = &found.span;
    assert_eq!(span.name, "Queue/consume");
    assert_eq!(span.parent_span_id, [0_u8; 0], "it has no parent");
    let expected = [
        ("gesmas.class", "Queue".into()),
        ("gesmas.session", session.id().to_string()),
        ("gesmas.number", number.to_string()),
        ("gesmas.replied", "true".into()),
        ("resource.service.name", "gesmas".into()),
        ("resource.service.instance.id", "7e57/2".into()),
    ];
    for (name, value) in expected {
        assert_eq!(found.attribute(name), value, "{name} of {found:?}");
    }
    assert!(found.attribute("gesmas.step").parse::<u64>().is_ok_and(|step| step > 0), "{found:?}");
    let [event] = &span.events[..] else { panic!("it blocked once: {span:?}") };
    assert_eq!(event.name, "blocked");
    assert!(event.time_unix_nano >= span.start_time_unix_nano, "{span:?}");
    assert!(event.time_unix_nano <= span.end_time_unix_nano, "{span:?}");
    let semaphore = event.attributes.iter().find(|pair| pair.key == "gesmas.semaphore");
    assert!(format!("{semaphore:?}").contains("\"filled\""), "{semaphore:?}");

    let quick = span_of(collector, "call", ("jobs", "produce", "ok")).await;
    assert_eq!(quick.span.events.len(), 0, "it did not block: {quick:?}");
    span_of(collector, "call", ("jobs", "init", "ok")).await;
}

/// What a class means is no error of the span; what the log has a line about is one.
async fn calls_that_fail(collector: &Collector, session: &Session) {
    let unlock = Class::standard("Lock").call(session, "free", "unlock", arguments((7_u64,)));
    unlock.await.expect_err("nobody has it");
    let meant = span_of(collector, "call", ("free", "unlock", "failed")).await;
    assert_eq!((status(&meant), meant.attribute("gesmas.error_id")), (StatusCode::Unset, ""));

    let hostile = hostile_class();
    let signature = hostile.signature("init");
    let created = session.create_object("Hostile", "one", signature, arguments((1_u64,)));
    created.await.expect("the object is created");
    hostile.call(session, "one", "panic_now", Vec::new()).await.expect_err("it panics");
    let trapped = span_of(collector, "call", ("one", "panic_now", "trap-panicked")).await;
    assert_eq!(status(&trapped), StatusCode::Error);
    assert_eq!(trapped.attribute("gesmas.error_id").len(), 16, "{trapped:?}");
}

async fn reads(collector: &Collector, session: &Session) {
    let counter = Class::standard("Counter");
    counter.call(session, "seen", "increment", Vec::new()).await.expect("it counts");
    counter.read(session, "seen", "get", Vec::new()).stale().await.expect("it is read");
    let read = span_of(collector, "read", ("seen", "get", "ok")).await;
    assert_eq!(read.span.name, "Counter/get");
    assert_eq!(read.attribute("gesmas.stale"), "true");
    assert_eq!(read.attribute("gesmas.session"), session.id().to_string());

    counter.read(session, "unseen", "increment", Vec::new()).await.expect_err("it is no read");
    let failed = span_of(collector, "read", ("unseen", "increment", "not-a-read")).await;
    assert_eq!(status(&failed), StatusCode::Error);
}

/// What is open when a replica stops is exported before its process ends.
async fn spans_that_a_stop_ends(collector: &Collector, cluster: &mut Cluster, session: &Session) {
    create_queue(session, "late").await;
    let consume = Class::standard("Queue").call(session, "late", "consume", Vec::new());
    let consume = consume.without_deadline().send();
    blocked(&Http::new(cluster.http_address(1)), "Queue", "late").await;
    assert_eq!(cluster.stop(1).await.code(), Some(0));
    let open = span_of(collector, "call", ("late", "consume", "unknown")).await;
    assert_eq!(open.span.events.len(), 1, "{open:?}");
    drop(consume);
}

/// The trace, the caller's span, and whether it wants to see more: as W3C has it.
fn traceparent(trace: u8, sampled: bool) -> String {
    format!("00-{:032x}-00000000000000ff-0{}", trace, u8::from(sampled))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_over_http_continue_the_trace_of_their_caller() {
    let collector = Collector::start().await;
    let cluster = Cluster::start_with(&collector.settings()).await;
    let http = Http::new(cluster.http_address(2));
    let unwanted = http.with("traceparent", traceparent(1, false));
    let first = unwanted.call("Counter/visits/increment", Value::Null).await;
    let wanted = http.with("traceparent", traceparent(2, true));
    let second = wanted.call("Counter/visits/increment", Value::Null).await;
    assert_eq!((first.result(), second.result()), (&json!("1"), &json!("2")));

    let in_trace =
        |trace: u8| move |span: &Exported| span.span.trace_id == u128::from(trace).to_be_bytes();
    let is_http = |span: &Exported| !span.attribute("http.route").is_empty();
    let request = |span: &Exported| in_trace(2)(span) && is_http(span);
    let request = collector.span("the span of the request", request).await;
    assert_eq!(request.span.name, "POST /v1/objects/{class}/{object}/{method}");
    assert_eq!(request.span.parent_span_id, 0xff_u64.to_be_bytes());
    assert_eq!(request.attribute("http.response.status_code"), "200");
    assert_eq!(request.attribute("gesmas.method"), "increment");
    assert_eq!(collector.count(in_trace(1)), 0, "its caller did not want it");

    let call = |span: &Exported| in_trace(2)(span) && !is_http(span);
    let call = collector.span("the span of its call", call).await;
    assert_eq!(call.span.name, "Counter/increment");
    assert_eq!(call.span.parent_span_id, request.span.span_id);
    for name in ["gesmas.session", "gesmas.number"] {
        assert_eq!(call.attribute(name), request.attribute(name), "{name}");
    }

    let keyed = http.with("traceparent", traceparent(3, true)).with("idempotency-key", "once");
    let failed = keyed.call("Lock/free/unlock", json!({ "token": 7 })).await;
    assert_eq!(failed.problem(), (422, "failed"));
    let request = |span: &Exported| in_trace(3)(span) && is_http(span);
    let request = collector.span("the span of the request with a key", request).await;
    assert_eq!(request.attribute("gesmas.outcome"), "failed");
    let call = |span: &Exported| in_trace(3)(span) && span.span.name == "Lock/unlock";
    let call = collector.span("the span of its call", call).await;
    assert_eq!(call.span.parent_span_id, request.span.span_id);
}

/// Without a collector calls go on as ever; what is lost is counted, and one line tells of all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_not_there_costs_a_line_of_the_log() {
    let gone = Collector::start().await.settings();
    let mut cluster = Cluster::start_with(&gone).await;
    let session = cluster.session_of(0).await;
    let counter = Class::standard("Counter");
    for _ in 0..50 {
        counter.call(&session, "busy", "increment", Vec::new()).await.expect("it counts");
    }
    wait::until("that spans are lost", || async {
        cluster.look(0).await.counter("spans_lost") >= 50
    })
    .await;
    assert_eq!(cluster.look(0).await.counter("spans_exported"), 0);
    let lines = |cluster: &Cluster| cluster.logged(0).matches("spans were lost").count();
    wait::until("a line of the log", || async { lines(&cluster) > 0 }).await;
    assert_eq!(cluster.stop(0).await.code(), Some(0));
    // One when the first were lost, and one for the rest when it stops.
    assert!(lines(&cluster) <= 2, "{}", cluster.logged(0));
}
