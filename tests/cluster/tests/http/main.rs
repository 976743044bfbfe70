//! HTTP against real replicas: calls, keys, sessions, failures, and curl; events are in `events.rs`.

mod events;

use std::{process::Command, time::Duration};

use gesmas_cluster_tests::{Cluster, Http, wait};
use reqwest::Method;
use serde_json::{Value, json};

/// A client of each replica.
fn clients(cluster: &Cluster) -> Vec<Http> {
    cluster.indices().map(|index| Http::new(cluster.http_address(index))).collect()
}

/// Waits until so many calls on an object are blocked.
async fn blocked(http: &Http, class: &str, object: &str, count: usize) {
    let path = format!("/v1/invocations?class={class}&object={object}");
    wait::until("that calls are blocked", || async {
        let answer = http.send(Method::GET, &path, Value::Null).await;
        answer.body["invocations"].as_array().map(Vec::len) == Some(count)
    })
    .await;
}

async fn make_queue(http: &Http, object: &str) {
    let path = format!("/v1/objects/Queue/{object}");
    let answer = http.send(Method::PUT, &path, json!({ "capacity": 8 })).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_are_called_by_name_and_mistakes_are_named() {
    let cluster = Cluster::start().await;
    let [http, other, _] = &clients(&cluster)[..] else { panic!("there are three replicas") };
    assert_eq!(http.call("Counter/c/increment", Value::Null).await.result(), "1");
    assert_eq!(http.call("Counter/c/add", json!({ "number": "-3" })).await.result(), "-2");
    assert_eq!(other.call("Counter/c/add", json!([9_007_199_254_740_993_i64])).await.status, 200);
    let read = other.send(Method::GET, "/v1/objects/Counter/c/get", Value::Null).await;
    assert_eq!(read.result(), "9007199254740991");
    make_queue(http, "jobs").await;
    for item in [json!("plain"), json!({ "text": "plain" }), json!({ "base64": "cGxhaW4=" })] {
        assert_eq!(http.call("Queue/jobs/produce", json!({ "item": item })).await.status, 200);
        let taken = other.call("Queue/jobs/consume", Value::Null).await;
        assert_eq!(taken.result(), &json!({ "text": "plain" }));
    }
    http.call("Queue/jobs/produce", json!({ "item": { "base64": "/w==" } })).await;
    let shown = other.send(Method::GET, "/v1/objects/Queue/jobs", Value::Null).await;
    assert_eq!(shown.body["entries"][0]["value"], json!({ "base64": "/w==" }), "{shown:?}");
    for (path, arguments, problem) in [
        ("Queue/jobs/produce", json!({ "item": 3 }), (400, "argument")),
        ("Queue/jobs/produce", json!({}), (400, "argument")),
        ("Queue/jobs/produce", json!({ "item": "a", "more": 1 }), (400, "argument")),
        ("Queue/jobs/produce", json!("a"), (400, "argument")),
        ("Queue/jobs/nothing", json!({}), (404, "method-unknown")),
        ("Queue/jobs/init", json!({ "capacity": 1 }), (404, "not-callable")),
        ("Queue/none/consume", json!({}), (404, "object-unknown")),
        ("Nothing/none/consume", json!({}), (404, "class-unknown")),
        ("Queue/a%20b/consume", json!({}), (400, "name")),
        ("Lock/l/lock", json!({ "owner": 1 }), (422, "failed")),
    ] {
        assert_eq!(http.call(path, arguments).await.problem(), problem, "{path}");
    }
    let exists = http.send(Method::PUT, "/v1/objects/Queue/jobs", json!({ "capacity": 9 })).await;
    assert_eq!(exists.problem(), (409, "object-exists"));
    let nothing = http.send(Method::GET, "/v1/nothing", Value::Null).await;
    assert_eq!(nothing.problem(), (404, "path-unknown"));
    let update = http.send(Method::GET, "/v1/objects/Queue/jobs/consume", Value::Null).await;
    assert_eq!(update.problem(), (405, "method-not-allowed"));
    for (header, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
        let answer = http.with(header, value).send(Method::GET, "/v1/cluster", Value::Null).await;
        assert_eq!(
            answer.problem(),
            (403, if header == "host" { "host-unknown" } else { "origin-unknown" })
        );
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(http.send(Method::GET, path, Value::Null).await.status, 200, "{path}");
    }
    assert_metrics_are_described(&cluster, http).await;
}

/// What is at a limit passes, and what is over it is refused by the limit's name, as a mistake of the caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_reached_and_named() {
    let cluster = Cluster::start().await;
    let [http, other, _] = &clients(&cluster)[..] else { panic!("there are three replicas") };
    make_queue(http, "jobs").await;
    // Four bytes say how long the item is.
    let greatest = "x".repeat((1 << 20) - 4);
    let put = http.call("Queue/jobs/produce", json!({ "item": greatest })).await;
    assert_eq!(put.status, 200, "the greatest item");
    let taken = other.call("Queue/jobs/consume", Value::Null).await;
    assert!(taken.result()["text"] == json!(greatest), "it comes out as it was");
    let over = http.call("Queue/jobs/produce", json!({ "item": greatest + "x" })).await;
    assert_eq!(over.problem(), (422, "limit"));
    assert_eq!(over.body["detail"], "limit argument_bytes is 1048576");
    let value = json!({ "key": "k", "value": "x".repeat(20_000) });
    let limits = cluster.session().await;
    limits.set_limit("value_bytes", 10_000).await.expect("it is in its range");
    let over = http.call("Register/r/set", value).await;
    assert_eq!(over.problem(), (422, "trap-limit"), "{over:?}");
    assert_eq!(over.body["detail"], "the method failed: limit value_bytes is 10000");
    for (path, arguments, error) in [
        ("Register/r/set", json!({ "key": "", "value": "v" }), json!("EmptyKey")),
        (
            "Register/r/get",
            json!({ "key": "k".repeat(1_025) }),
            json!({ "KeyTooLong": { "most": 1_024 } }),
        ),
        ("Register/r/keys", json!({ "after": "", "limit": 0 }), json!("ZeroLimit")),
    ] {
        let refused = http.call(path, arguments).await;
        assert_eq!(refused.problem(), (422, "failed"), "{path}: {refused:?}");
        assert_eq!(refused.body["error"], error, "{path}");
    }
    let delay = http.call("DelayQueue/d/put", json!({ "item": "i", "delay": "-1s" })).await;
    assert_eq!(delay.problem(), (400, "argument"));
    for (path, arguments) in [
        ("Queue/never", json!({ "capacity": 0 })),
        ("WorkQueue/never", json!({ "most_deliveries": 0 })),
        ("RateLimiter/never", json!({ "permits": 1, "period": "0s", "burst": 1 })),
    ] {
        let path = format!("/v1/objects/{path}");
        let refused = http.send(Method::PUT, &path, arguments).await;
        assert_eq!(refused.problem(), (422, "init-refused"), "{path}: {refused:?}");
    }
}

/// Whatever the replica counts is exported.
async fn assert_metrics_are_described(cluster: &Cluster, http: &Http) {
    let response = http.request(Method::GET, "/metrics").send().await.expect("it answers");
    let text = response.text().await.expect("it is a text");
    for (name, _) in cluster.look(0).await.counters {
        let exported = format!("# HELP gesmas_{name} ");
        assert!(text.contains(&exported), "{name} is not described");
    }
    let labels = r#"method="POST",route="/v1/objects/{class}/{object}/{method}""#;
    let timed = format!("gesmas_http_request_seconds_count{{{labels}}}");
    assert!(text.contains(&timed), "calls are timed by route:\n{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_sent_once_and_failures_are_listed() {
    let cluster = Cluster::start().await;
    let http = Http::new(cluster.http_address(0));
    let page = http.request(Method::GET, "/").send().await.expect("it answers");
    let headers = page.headers().clone();
    assert_eq!(page.status(), 200);
    assert_eq!(headers["cache-control"], "no-cache");
    assert_eq!(headers["content-type"], "text/html; charset=utf-8");
    let policy = headers["content-security-policy"].to_str().expect("it is a text");
    assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{policy}");
    let tag = headers["etag"].to_str().expect("it is a text");
    let again = http.with("if-none-match", tag).request(Method::GET, "/").send().await;
    assert_eq!(again.expect("it answers").status(), 304);
    for path in ["/page/nothing.js", "/page/..%2fpage.rs"] {
        let missing = http.send(Method::GET, path, Value::Null).await;
        assert_eq!(missing.problem(), (404, "path-unknown"), "{path}");
    }
    for _ in 0..2 {
        let unknown = http.call("Queue/none/consume", json!({ "secret": 1 })).await;
        assert_eq!(unknown.problem().0, 400);
    }
    let errors = http.send(Method::GET, "/v1/errors", Value::Null).await;
    let newest = &errors.body["errors"][0];
    for (member, wanted) in [
        ("path", json!("/v1/objects/Queue/none/consume")),
        ("method", json!("POST")),
        ("status", json!(400)),
        ("code", json!("argument")),
        ("count", json!("2")),
        ("id", Value::Null),
    ] {
        assert_eq!(newest[member], wanted, "{member} of {errors:?}");
    }
    assert_eq!(errors.body["errors"].as_array().map(Vec::len), Some(3), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_call_is_listed_with_the_session_it_is_made_for() {
    let cluster = Cluster::start().await;
    let http = Http::new(cluster.http_address(0));
    make_queue(&http, "jobs").await;
    let session = http.session("60s").await;
    let taker = http.with("prefer", "wait=0").with("idempotency-key", "for-somebody");
    let taker = taker.with("gesmas-session", &session);
    assert_eq!(taker.call("Queue/jobs/consume", Value::Null).await.status, 202);
    blocked(&http, "Queue", "jobs", 1).await;
    let nobody = http.with("prefer", "wait=0").with("idempotency-key", "for-nobody");
    assert_eq!(nobody.call("Queue/jobs/consume", Value::Null).await.status, 202);
    blocked(&http, "Queue", "jobs", 2).await;
    let path = format!("/v1/invocations?session={session}");
    let listed = http.send(Method::GET, &path, Value::Null).await;
    let listed = listed.body["invocations"].as_array().expect("it is a list").clone();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["session"], json!(session));
    let all = http.send(Method::GET, "/v1/invocations?class=Queue", Value::Null).await;
    let sessions = all.body["invocations"].as_array().expect("it is a list").iter();
    let sessions: Vec<_> = sessions.map(|call| &call["session"]).collect();
    assert_eq!(sessions, [&json!(session), &Value::Null], "one is made for nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_a_key_runs_once_and_one_without_is_cancelled_by_hanging_up() {
    let cluster = Cluster::start().await;
    let [http, other, third] = &clients(&cluster)[..] else { panic!("there are three replicas") };
    make_queue(http, "jobs").await;
    let hung_up = tokio::spawn({
        let http = http.clone();
        async move { http.call("Queue/jobs/consume", Value::Null).await }
    });
    blocked(other, "Queue", "jobs", 1).await;
    hung_up.abort();
    blocked(other, "Queue", "jobs", 0).await;

    let keyed = http.with("idempotency-key", "take-1");
    let running = keyed.with("prefer", "wait=0").call("Queue/jobs/consume", Value::Null).await;
    assert_eq!((running.status, &running.body), (202, &json!({ "state": "running" })));
    blocked(other, "Queue", "jobs", 1).await;
    let again = other.with("idempotency-key", "take-1");
    let waits = tokio::spawn(async move { again.call("Queue/jobs/consume", Value::Null).await });
    assert_eq!(other.call("Queue/jobs/produce", json!({ "item": "a" })).await.status, 200);
    assert_eq!(other.call("Queue/jobs/produce", json!({ "item": "b" })).await.status, 200);
    let taken = wait::bounded("a retry", waits).await.expect("it does not panic");
    assert_eq!(taken.result(), &json!({ "text": "a" }));
    for retry in [http, third] {
        let retry = retry.with("idempotency-key", "take-1");
        let outcome = retry.call("Queue/jobs/consume", Value::Null).await;
        assert_eq!(outcome.result(), &json!({ "text": "a" }), "the one outcome");
        let another = retry.call("Queue/jobs/produce", json!({ "item": "c" })).await;
        assert_eq!(another.problem(), (422, "key-reused"));
    }
    let length = http.call("Queue/jobs/length", Value::Null).await;
    assert_eq!(length.result(), "1", "one item was taken");
    let late = http.with("gesmas-deadline", "50ms");
    make_queue(http, "empty").await;
    let late = late.call("Queue/empty/consume", Value::Null).await;
    assert_eq!(late.problem(), (504, "cancelled"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn increments_with_keys_are_made_once_through_the_death_of_a_leader() {
    const CLIENTS: usize = 8;
    const EACH: usize = 20;
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let all = clients(&cluster);
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let all = all.clone();
            tokio::spawn(async move {
                for number in 0..EACH {
                    let key = format!("{client}-{number}");
                    increment(&all, client, &key).await;
                }
            })
        })
        .collect();
    wait::until("that some increments are made", || async {
        let count = all[(leader + 1) % 3].call("Counter/kept/get", Value::Null).await;
        count.status == 200 && count.result() != "0"
    })
    .await;
    cluster.kill(leader);
    for task in tasks {
        wait::bounded("increments", task).await.expect("no client panics");
    }
    let count = all[(leader + 1) % 3].call("Counter/kept/get", Value::Null).await;
    assert_eq!(count.result(), &(CLIENTS * EACH).to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_without_a_majority_is_not_ready() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let http = Http::new(cluster.http_address(leader));
    let ready = || async { http.send(Method::GET, "/readyz", Value::Null).await.status };
    assert_eq!(ready().await, 200);
    let others: Vec<_> = cluster.indices().filter(|index| *index != leader).collect();
    others.iter().for_each(|index| cluster.kill(*index));
    wait::until("that it is not ready", || async { ready().await == 503 }).await;
    others.iter().for_each(|index| cluster.restart(*index));
    wait::until("that it is ready again", || async { ready().await == 200 }).await;
}

/// Sends an increment until it has an outcome, through one replica after the other.
async fn increment(all: &[Http], first: usize, key: &str) {
    let attempt = std::sync::atomic::AtomicUsize::new(first);
    wait::until("that an increment is made", || async {
        let attempt = attempt.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let http = all[attempt % all.len()].with("idempotency-key", key);
        let path = "/v1/objects/Counter/kept/increment";
        let answer = http.try_send(Method::POST, path, &Value::Null).await;
        answer.is_some_and(|answer| answer.status == 200)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_owns_what_it_locks_through_any_replica() {
    let mut cluster = Cluster::start().await;
    let all = clients(&cluster);
    let leader = cluster.leader().await;
    let (home, other) = (&all[leader], &all[(leader + 1) % 3]);
    let holder = home.session("20s").await;
    let locked = home.with("gesmas-session", &*holder);
    let token = locked.call("Lock/l/lock", json!({ "owner": 1 })).await;
    assert_eq!(token.result(), "1");
    let rival = other.session("20s").await;
    let waiting = {
        let rival = other.with("gesmas-session", &*rival);
        tokio::spawn(async move { rival.call("Lock/l/lock", json!({ "owner": 1 })).await })
    };
    blocked(other, "Lock", "l", 1).await;
    // The replica through which the lock was taken dies; the session goes on through another.
    cluster.kill(leader);
    cluster.leader_other_than(leader).await;
    let path = format!("/v1/sessions/{holder}/keep-alive");
    wait::until("that the session is kept alive", || async {
        other.send(Method::POST, &path, Value::Null).await.status == 204
    })
    .await;
    let unlocked = other.with("gesmas-session", &*holder);
    let unlocked = unlocked.call("Lock/l/unlock", json!({ "token": token.result() })).await;
    assert_eq!(unlocked.result(), &Value::Null);
    let second = wait::bounded("the rival", waiting).await.expect("it does not panic");
    assert_eq!(second.result(), "2", "it waited through the death of a leader");
    let third = other.session("20s").await;
    let next = {
        let third = other.with("gesmas-session", &*third);
        tokio::spawn(async move { third.call("Lock/l/lock", json!({ "owner": 1 })).await })
    };
    blocked(other, "Lock", "l", 1).await;
    let closed = other.send(Method::DELETE, &format!("/v1/sessions/{rival}"), Value::Null).await;
    assert_eq!(closed.status, 204);
    let third = wait::bounded("the next", next).await.expect("it does not panic");
    assert_eq!(third.result(), "3", "the end of a session gives its lock to the next");
    let over = other.with("gesmas-session", &*rival).call("Lock/l/try_lock", json!([1])).await;
    assert_eq!(over.problem(), (404, "session-unknown"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outcome_of_a_call_with_a_key_outlives_the_session_it_was_made_for() {
    let cluster = Cluster::start().await;
    let [http, other, _] = &clients(&cluster)[..] else { panic!("there are three replicas") };
    let session = http.session("20s").await;
    let lock = |http: &Http, key: &str| {
        let http = http.with("gesmas-session", &*session).with("idempotency-key", key);
        async move { http.call("Lock/l/lock", json!({ "owner": 1 })).await }
    };
    let token = lock(http, "first").await.result().clone();
    let closed = http.send(Method::DELETE, &format!("/v1/sessions/{session}"), Value::Null).await;
    assert_eq!(closed.status, 204);
    for replica in [http, other] {
        assert_eq!(lock(replica, "first").await.result(), &token);
    }
    assert_eq!(lock(other, "second").await.problem(), (404, "session-unknown"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_silent_expires_and_one_that_waits_does_not() {
    let cluster = Cluster::start().await;
    let [http, other, _] = &clients(&cluster)[..] else { panic!("there are three replicas") };
    let silent = http.session("5s").await;
    let waiting = http.session("5s").await;
    let lock = |session: &str| {
        let http = http.with("gesmas-session", session);
        async move { http.call("Lock/l/lock", json!({ "owner": 1 })).await }
    };
    assert_eq!(lock(&silent).await.result(), "1");
    // It waits for as long as the other's silence lasts, and is kept alive by that.
    let locked = wait::bounded("the lock", lock(&waiting)).await;
    assert_eq!(locked.result(), "2");
    let gone = other.send(Method::GET, &format!("/v1/sessions/{silent}"), Value::Null).await;
    assert_eq!(gone.problem(), (404, "session-unknown"));
    let short = http.send(Method::POST, "/v1/sessions", json!({ "timeout": "1s" })).await;
    assert_eq!(short.problem(), (400, "timeout"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_describes_what_there_is() {
    let cluster = Cluster::start().await;
    let http = Http::new(cluster.http_address(0));
    let document = http.send(Method::GET, "/v1/openapi.json", Value::Null).await.body;
    assert_eq!(document["openapi"], "3.1.0");
    let produce = &document["paths"]["/v1/objects/Queue/{object}/produce"]["post"];
    let body = &produce["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(body["required"], json!(["item"]));
    assert_references_resolve(&document, &document);
    let mut ids = Vec::new();
    for path in document["paths"].as_object().expect("there are paths").values() {
        for operation in path.as_object().expect("a path has operations").values() {
            ids.push(operation["operationId"].as_str().expect("it is named").to_owned());
        }
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "every operation has a name of its own");
    assert!(count > 100, "all standard classes are described");
}

fn assert_references_resolve(document: &Value, part: &Value) {
    match part {
        Value::Array(items) => {
            items.iter().for_each(|item| assert_references_resolve(document, item));
        }
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let pointer = reference.trim_start_matches('#');
                assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
            }
            members.values().for_each(|member| assert_references_resolve(document, member));
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_is_enough() {
    let cluster = Cluster::start().await;
    let base = format!("http://{}/v1/objects", cluster.http_address(1));
    let curl = |arguments: &[&str], path: &str| {
        let mut command = Command::new("curl");
        let timeout = Duration::from_secs(30).as_secs().to_string();
        command.args(["--silent", "--show-error", "--max-time", &timeout]).args(arguments);
        let output = command.arg(format!("{base}/{path}")).output().expect("curl is installed");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it prints text")
    };
    assert_eq!(curl(&["-X", "PUT", "-d", r#"{"capacity": 16}"#], "Queue/jobs"), "");
    let item = r#"{"item": "resize cat.png"}"#;
    assert_eq!(curl(&["-d", item], "Queue/jobs/produce"), r#"{"result":null}"#);
    let taken = curl(&["-X", "POST"], "Queue/jobs/consume");
    assert_eq!(taken, r#"{"result":{"text":"resize cat.png"}}"#);
}
