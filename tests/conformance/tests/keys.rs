//! Calls with keys as the gateway sees them: cancelled, forgotten, malformed.

use std::net::SocketAddr;

use gesmas_client::InvocationFilter;
use gesmas_cluster_tests::{Cluster, wait};
use gesmas_conformance::{Answer, post};
use serde_json::{Value, json};

async fn call(
    address: SocketAddr,
    target: &str,
    headers: &[(&str, &str)],
    arguments: Value,
) -> Answer {
    post(address, &format!("/v1/objects/{target}"), headers, &arguments).await
}

async fn count(address: SocketAddr, counter: &str) -> Value {
    call(address, &format!("{counter}/get"), &[], json!({})).await.body["result"].take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_cancelled_through_any_replica() {
    let cluster = Cluster::start().await;
    let [first, second, third] = [0, 1, 2].map(|index| cluster.http_address(index));
    let client = cluster.client().await;
    let create = client.session().open().await.expect("a session is opened");
    let queue = gesmas_queue::QueueStub::new(create, "jobs");
    queue.create(4).await.expect("the queue is created");
    let key = [("idempotency-key", "taken")];
    let cancel = [("idempotency-key", "taken"), ("gesmas-cancel", "true")];
    let waits = call(first, "Queue/jobs/consume", &key, json!({}));
    let cancelled = async {
        wait::until("that the call is blocked", || async {
            client
                .show_object("Queue", "jobs", 1)
                .await
                .is_ok_and(|object| object.summary.waiters == 1)
        })
        .await;
        let other = [("idempotency-key", "taken"), ("gesmas-cancel", "true")];
        let another = call(third, "Queue/jobs/try_consume", &other, json!({})).await;
        assert_eq!((another.status, another.code()), (422, "key-reused"), "{another:?}");
        call(second, "Queue/jobs/consume", &cancel, json!({})).await
    };
    let (waited, cancelled) = tokio::join!(waits, cancelled);
    for answer in [&waited, &cancelled] {
        assert_eq!((answer.status, answer.code()), (409, "cancelled"), "{answer:?}");
    }
    // The item is for somebody else, and whoever asks again under the key is told the same.
    queue.produce("kept".into()).await.expect("it is produced");
    let again = call(third, "Queue/jobs/consume", &key, json!({})).await;
    assert_eq!((again.status, again.code()), (409, "cancelled"), "{again:?}");
    assert_eq!(queue.length().await.expect("a read works"), 1);
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_cancelled_first_never_runs_and_one_that_was_served_stands() {
    let cluster = Cluster::start().await;
    let [first, second, third] = [0, 1, 2].map(|index| cluster.http_address(index));
    let never = [("idempotency-key", "never"), ("gesmas-cancel", "true")];
    for address in [first, second] {
        let cancelled = call(address, "Counter/c/increment", &never, json!({})).await;
        assert_eq!((cancelled.status, cancelled.code()), (409, "cancelled"), "{cancelled:?}");
    }
    // The sending that was overtaken arrives.
    let late = call(third, "Counter/c/increment", &never[..1], json!({})).await;
    assert_eq!((late.status, late.code()), (409, "cancelled"), "{late:?}");
    assert_eq!(count(first, "Counter/c").await, "0");

    let served = [("idempotency-key", "served"), ("gesmas-cancel", "true")];
    for (address, headers) in [(first, &served[..1]), (second, &served), (first, &served)] {
        let answer = call(address, "Counter/c/increment", headers, json!({})).await;
        assert_eq!((answer.status, &answer.body), (200, &json!({ "result": "1" })), "{answer:?}");
    }
    assert_eq!(count(third, "Counter/c").await, "1");

    for (name, value) in
        [("gesmas-cancel", "true"), ("gesmas-cancel", "maybe"), ("gesmas-forget", "x")]
    {
        let answer = call(first, "Counter/c/increment", &[(name, value)], json!({})).await;
        assert_eq!((answer.status, answer.code()), (400, "header"), "{name}: {value}");
    }
    assert_eq!(count(third, "Counter/c").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_is_kept_until_it_is_forgotten() {
    let cluster = Cluster::start().await;
    let [first, second, _] = [0, 1, 2].map(|index| cluster.http_address(index));
    let client = cluster.client().await;
    let key = [("idempotency-key", "once")];
    let answer = call(first, "Counter/c/increment", &key, json!({})).await;
    let outcome = answer.header("gesmas-outcome").expect("the answer names it").to_owned();
    let again = call(second, "Counter/c/increment", &key, json!({})).await;
    assert_eq!(again.body, json!({ "result": "1" }));
    assert_eq!(again.header("gesmas-outcome"), Some(&*outcome));
    let failed = call(first, "Lock/l/unlock", &[("idempotency-key", "fails")], json!([1])).await;
    assert_eq!((failed.status, failed.code()), (422, "failed"), "{failed:?}");
    assert!(failed.header("gesmas-outcome").is_some_and(|other| other != outcome), "{failed:?}");

    let forget = [("gesmas-forget", &*outcome)];
    call(second, "Counter/c/get", &forget, json!({})).await;
    wait::until("that the outcome is forgotten", || async {
        let sessions = client.list_sessions(0, 1_000).await.expect("a list of sessions");
        sessions.items.iter().all(|session| session.session.to_string() != outcome)
    })
    .await;
    let anew = call(second, "Counter/c/increment", &key, json!({})).await;
    assert_eq!(
        anew.body,
        json!({ "result": "2" }),
        "a key whose outcome is forgotten is a fresh one"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_a_deadline_ends_with_its_session() {
    let cluster = Cluster::start().await;
    let [first, second, _] = [0, 1, 2].map(|index| cluster.http_address(index));
    let client = cluster.client().await;
    let other = client.session().open().await.expect("a session is opened");
    let queue = gesmas_queue::QueueStub::new(other.clone(), "jobs");
    queue.create(4).await.expect("the queue is created");
    let opened = post(first, "/v1/sessions", &[], &json!({})).await;
    let session = opened.body["session"].as_str().expect("a session has a number").to_owned();

    // Nothing would end it.
    let nobody = [("idempotency-key", "nobody"), ("gesmas-deadline", "none")];
    let refused = call(first, "Queue/jobs/consume", &nobody, json!({})).await;
    assert_eq!((refused.status, refused.code()), (400, "header"), "{refused:?}");

    let headers =
        [("idempotency-key", "waits"), ("gesmas-deadline", "none"), ("gesmas-session", &*session)];
    let waits = call(first, "Queue/jobs/consume", &headers, json!({}));
    let ended = async {
        wait::until("that the call is blocked and has no deadline", || async {
            let filter = InvocationFilter::default();
            let blocked = client.list_invocations(filter, 0, 10).await.expect("a list");
            let deadlines: Vec<_> = blocked.items.iter().map(|call| call.deadline).collect();
            deadlines == [None]
        })
        .await;
        let ended = other.kill_session(session.parse().expect("a number")).await;
        ended.expect("it is ended");
    };
    let (waited, ()) = tokio::join!(waits, ended);
    // A retry, wherever, is told the same.
    let again = call(second, "Queue/jobs/consume", &headers, json!({})).await;
    for answer in [waited, again] {
        assert_eq!((answer.status, answer.code()), (409, "cancelled"), "{answer:?}");
    }
}
