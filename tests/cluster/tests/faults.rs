//! Handlers that fail: listed, called once more, and forgotten, over HTTP and by command.

use std::process::Command;

use gesmas_cluster_tests::{Cluster, Http, arguments, gesmas_binary, hostile_class, wait};
use gesmas_hostile::HostileStub;
use reqwest::Method;
use serde_json::{Value, json};

async fn list(http: &Http) -> Vec<Value> {
    let answer = http.send(Method::GET, "/v1/faults", Value::Null).await;
    answer.body["faults"].as_array().unwrap_or_else(|| panic!("{answer:?}")).clone()
}

/// Waits until a fault of this number or a later one is the only one.
async fn only_fault(http: &Http, from: u64) -> Value {
    wait::until_some("that the handler fails", || async {
        let found = list(http).await;
        found.into_iter().find(|fault| number(fault) >= from)
    })
    .await
}

fn number(fault: &Value) -> u64 {
    fault["fault"].as_str().and_then(|text| text.parse().ok()).expect("a fault has a number")
}

/// Runs a command against a replica; its output.
fn gesmas(cluster: &Cluster, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(gesmas_binary());
    command.args(words).arg("--endpoints").arg(cluster.address(0).to_string());
    let output = command.output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_handler_is_listed_retried_and_dropped() {
    let cluster = Cluster::start().await;
    let http = Http::new(cluster.http_address(1));
    let session = cluster.session().await;
    HostileStub::new(session.clone(), "one").create(1).await.expect("it is created");
    let class = hostile_class();
    let checked = class.call(&session, "one", "check_soon", arguments((7_u64,))).await;
    checked.expect("a timer is made");

    let fault = only_fault(&http, 1).await;
    assert_eq!(fault["object"], "Hostile/one");
    assert_eq!(fault["handler"], "check_mark");
    assert_eq!(fault["arguments"], json!({ "expected": "7" }));
    let error = fault["error"].as_str().expect("it says why");
    assert!(error.contains("the mark is 1"), "{error}");
    let shown = http.send(Method::GET, "/v1/objects/Hostile/one", Value::Null).await;
    assert_eq!(shown.body["faults"], json!([fault]));

    // It fails again, into a new fault.
    let path = |fault: &Value| format!("/v1/faults/Hostile/one/{}", number(fault));
    let retried = http.send(Method::POST, &format!("{}/retry", path(&fault)), Value::Null).await;
    assert_eq!(retried.status, 204, "{retried:?}");
    let again = only_fault(&http, number(&fault) + 1).await;
    assert_eq!(list(&http).await, std::slice::from_ref(&again));

    // What was wrong is mended, and the next retry ends well.
    class.call(&session, "one", "leave_mark", arguments((7_u64,))).await.expect("it is mended");
    let id = number(&again).to_string();
    let said = gesmas(&cluster, &["fault", "retry", "Hostile/one", &id]).expect("it is retried");
    assert_eq!(said.trim(), format!("the handler of fault {id} is called once more"));
    wait::until("that the handler ends well", || async {
        let read = class.read(&session, "one", "mark", Vec::new()).await;
        read.is_ok_and(|bytes| bytes == arguments((111_u64,)))
    })
    .await;
    assert_eq!(list(&http).await, [] as [Value; 0]);

    let checked = class.call(&session, "one", "check_soon", arguments((8_u64,))).await;
    checked.expect("a timer is made");
    let last = only_fault(&http, 1).await;
    let listed = gesmas(&cluster, &["fault", "ls", "Hostile"]).expect("faults are listed");
    assert!(listed.contains(r#"{"expected":8}"#) && listed.contains("the mark is 111"), "{listed}");
    let dropped = http.send(Method::DELETE, &path(&last), Value::Null).await;
    assert_eq!(dropped.status, 204, "{dropped:?}");
    let dropped = http.send(Method::DELETE, &path(&last), Value::Null).await;
    assert_eq!(dropped.problem(), (404, "fault-unknown"));
    let none = gesmas(&cluster, &["fault", "ls", "--json"]).expect("faults are listed");
    assert_eq!(none.trim(), "[]");
    cluster.assert_equal().await;
}
