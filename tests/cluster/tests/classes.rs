//! What standard classes promise to programs in Rust, through real replicas: elections and registers.

use gesmas_abi::value::Bytes;
use gesmas_client::Session;
use gesmas_cluster_tests::{Cluster, wait};
use gesmas_election::{ElectionError, ElectionStub};
use gesmas_register::{Expected, RegisterStub};
use gesmas_sdk::stub::StubError;

fn election(session: &Session) -> ElectionStub<Session> {
    ElectionStub::new(session.clone(), "scheduler")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_candidate_leads_and_the_next_when_its_session_is_over() {
    let cluster = Cluster::start().await;
    let (first, second) = (cluster.session().await, cluster.session().await);
    assert_eq!(election(&first).leader().await.expect("a read"), None);
    let token = election(&first).campaign("first".into()).await.expect("nobody leads yet");
    let leader = election(&second).leader().await.expect("a read").expect("the first leads");
    assert_eq!((leader.token, leader.candidate), (token, "first".into()));
    let refused = election(&second).try_campaign("second".into()).await;
    assert_eq!(refused.expect("a call that does not block"), None);

    let waits = tokio::spawn({
        let election = election(&second);
        async move { election.campaign("second".into()).await }
    });
    let watches = tokio::spawn({
        let election = election(&cluster.session().await);
        async move { election.observe(token).await }
    });
    let read = election(&second);
    wait::until("that the second waits", || async {
        read.candidates().await.is_ok_and(|candidates| candidates == 1)
    })
    .await;
    first.close().await;
    let next = wait::bounded("the second", waits).await.expect("no panic").expect("it leads");
    assert!(next > token, "tokens rise: {next} after {token}");
    let news = wait::bounded("the observer", watches).await.expect("no panic").expect("news");
    let news = news.expect("the second leads by then");
    assert_eq!((news.token, news.candidate), (next, "second".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_leader_s_token_ends_a_leadership() {
    let cluster = Cluster::start().await;
    let (first, second) = (cluster.session().await, cluster.session().await);
    let token = election(&first).campaign("first".into()).await.expect("nobody leads yet");
    for (session, wrong) in [(&second, token + 1), (&first, token - 1)] {
        let refused = election(session).resign(wrong).await;
        assert!(matches!(refused, Err(StubError::Failed(ElectionError::NotLeader))), "{refused:?}");
    }
    election(&first).resign(token).await.expect("it leads");
    assert_eq!(election(&second).leader().await.expect("a read"), None);
    let again = election(&first).resign(token).await;
    assert!(matches!(again, Err(StubError::Failed(ElectionError::NotLeader))), "{again:?}");
    let next = election(&second).try_campaign("second".into()).await.expect("a call");
    assert!(next > Some(token), "{next:?} after {token}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_counts_the_bytes_that_it_sends() {
    let cluster = Cluster::start().await;
    let client = cluster.client().await;
    let session = client.session().open().await.expect("a session");
    let config = RegisterStub::new(session, "config");
    config.set("warm".into(), "up".into()).await.expect("a call");
    let before = client.bytes_sent();
    assert!(before > 0, "there was a greeting");
    config.set("key".into(), Bytes(vec![7; 10_000])).await.expect("a call");
    let sent = client.bytes_sent() - before;
    assert!((10_000..10_500).contains(&sent), "{sent} bytes for a value of 10,000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_register_is_changed_only_by_whoever_knows_its_version() {
    let cluster = Cluster::start().await;
    let config = RegisterStub::new(cluster.session().await, "config");
    let key = || "colour".into();
    assert_eq!(config.get(key()).await.expect("a read"), None);
    let created = config.compare_and_set(key(), Expected::Nothing, "blue".into()).await;
    let blue = created.expect("a call").expect("there was nothing");
    let twice = config.compare_and_set(key(), Expected::Nothing, "green".into()).await;
    assert_eq!(twice.expect("a call"), None);
    let red = config.compare_and_set(key(), Expected::Version(blue), "red".into()).await;
    let red = red.expect("a call").expect("it was blue");
    let late = config.compare_and_set(key(), Expected::Version(blue), "late".into()).await;
    assert_eq!(late.expect("a call"), None);
    let entry = config.get(key()).await.expect("a read").expect("it has a value");
    assert_eq!((entry.value, entry.version), ("red".into(), red));
    assert!(red > blue, "versions rise: {red} after {blue}");

    assert!(!config.compare_and_remove(key(), Expected::Version(blue)).await.expect("a call"));
    assert!(config.compare_and_remove(key(), Expected::Version(red)).await.expect("a call"));
    let anew = config.set(key(), "anew".into()).await.expect("a call");
    assert!(anew > red, "a version does not come again after a removal");
    for name in ["a", "b", "z"] {
        config.set(name.into(), name.into()).await.expect("a call");
    }
    let page = config.keys("a".into(), 2).await.expect("a read");
    assert_eq!((page.keys, page.next), (vec!["b".into(), key()], Some(key())));
    assert_eq!(config.length().await.expect("a read"), 4);
    let removed = config.remove("z".into()).await.expect("a call").expect("it was there");
    assert_eq!(removed.value, "z".into());
    assert_eq!(config.remove("z".into()).await.expect("a call"), None);
}
