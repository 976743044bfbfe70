//! Questions of operators: as fresh as reads, and stale where that is asked for.
//!
//! Invariant: what was acknowledged through one replica shows in the answer of any other.

use gesmas_client::Client;
use gesmas_cluster_tests::{Cluster, Http, wait};
use gesmas_counter::CounterStub;
use reqwest::Method;
use serde_json::Value;

/// Enough that a follower which answered from what it had would be caught behind.
const ROUNDS: usize = 200;

async fn names(client: &Client) -> Vec<String> {
    let page = client.list_objects(Some("Counter".into()), None, 1_000).await;
    let page = page.expect("objects are listed");
    page.items.into_iter().map(|object| object.object).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_shows_what_was_acknowledged_through_another_replica() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let maker = cluster.client_of(leader).await;
    let session = maker.session().open().await.expect("a session is opened");
    let followers = cluster.indices().filter(|index| *index != leader);
    let mut askers = Vec::new();
    for follower in followers {
        askers.push(cluster.client_of(follower).await);
    }
    for round in 0..ROUNDS {
        let counter = CounterStub::new(session.clone(), format!("c{round:03}"));
        counter.add(1).await.expect("it counts");
        for asker in &askers {
            assert_eq!(names(asker).await.len(), round + 1, "in round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_only_stale_answers_come() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let session = cluster.session().await;
    CounterStub::new(session.clone(), "one").add(1).await.expect("it counts");
    let client = cluster.client_of(leader).await;
    assert_eq!(names(&client).await, ["one"]);
    // The gateway has a session to read in from now on, and has not seen the class of the counter.
    let http = Http::new(cluster.http_address(leader)).with("gesmas-consistency", "stale");
    let free = http.send(Method::GET, "/v1/objects/Lock/free/holder", Value::Null).await;
    assert_eq!(free.status, 200, "{free:?}");
    let others: Vec<_> = cluster.indices().filter(|index| *index != leader).collect();
    for other in &others {
        cluster.kill(*other);
    }
    let fresh = tokio::spawn({
        let client = client.clone();
        async move { names(&client).await }
    });
    assert_eq!(wait::bounded("a stale answer", names(&client.stale())).await, ["one"]);
    // Over HTTP as well.
    for path in ["/v1/objects/Counter/one/get", "/v1/objects/Counter/one", "/v1/classes/Counter"] {
        let answer = wait::bounded(path, http.send(Method::GET, path, Value::Null)).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    assert!(!fresh.is_finished(), "a fresh one needs a majority");
    cluster.restart(others[0]);
    let fresh = wait::bounded("a fresh answer", fresh).await;
    assert_eq!(fresh.expect("it does not panic"), ["one"]);
}
