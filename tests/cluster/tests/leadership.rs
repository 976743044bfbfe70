//! Leaders that change because an operator says so.

use std::process::Command;

use gesmas_cluster_tests::{Cluster, Load, gesmas_binary, wait};

/// Runs `gesmas cluster transfer-leader`: exit code and output.
fn transfer(cluster: &Cluster, to: &str) -> (Option<i32>, String) {
    let endpoints: Vec<_> =
        cluster.indices().map(|index| cluster.address(index).to_string()).collect();
    let mut command = Command::new(gesmas_binary());
    command.args(["cluster", "transfer-leader", "--json", "--endpoints", &endpoints.join(",")]);
    if !to.is_empty() {
        command.args(["--to", to]);
    }
    let output = command.output().expect("the binary runs");
    let said = if output.status.success() { &output.stdout } else { &output.stderr };
    (output.status.code(), String::from_utf8_lossy(said).trim().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lead_goes_from_replica_to_replica_under_load() {
    let mut cluster = Cluster::start().await;
    let load = Load::start(&cluster, "through").await;
    for to in [1_u64, 2, 3, 1, 3, 2] {
        let (code, said) = transfer(&cluster, &to.to_string());
        assert_eq!(code, Some(0), "{said}");
        assert!(said.ends_with(&format!(r#""leader":{to}}}"#)), "{said}");
        load.goes_on(20).await;
    }
    // Without a number it is one that follows.
    let (code, said) = transfer(&cluster, "");
    assert_eq!(code, Some(0), "{said}");
    let leader = cluster.leader().await;
    let transfers: u64 = {
        let mut sum = 0;
        for index in cluster.indices() {
            sum += cluster.look(index).await.counter("transfers");
        }
        sum
    };
    assert!(transfers >= 6, "the first may have led already: {transfers}");
    // It is missed like any leader when it is gone.
    cluster.kill(leader);
    let next = cluster.leader_other_than(leader).await;
    assert_ne!(next, leader);
    load.goes_on(20).await;
    cluster.restart(leader);
    load.finish().await;
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_nobody_would_follow_does_not_take_the_lead() {
    let mut cluster = Cluster::start().await;
    assert_eq!(transfer(&cluster, "7").0, Some(5), "there is no such replica");
    let leader = cluster.leader().await;
    let [one, two] = cluster.indices().filter(|index| *index != leader).collect::<Vec<_>>()[..]
    else {
        panic!("there are three")
    };
    cluster.kill(leader);
    cluster.kill(two);
    let client = cluster.client_of(one).await;
    let refused = wait::until_some("that it hears nobody", || async {
        client.take_lead().await.err().map(|failure| failure.to_string())
    });
    let refused = refused.await;
    assert!(refused.contains("no leader") || refused.contains("no majority"), "{refused}");
}
