//! A cluster that is restored from a backup: what is later than what, and who can go on.

use std::{fs, process::Command};

use gesmas_abi::value::Bytes;
use gesmas_client::{
    CallFailure, NotSentReason, Session, UnknownReason,
    protocol::{OverReason, Position, Read, ReadError, ReadReply, Refusal, ServerMessage},
};
use gesmas_cluster_tests::{Class, Cluster, Wire, arguments, gesmas_binary, wait};
use gesmas_queue::QueueStub;

/// Runs the command line and expects that it succeeds.
fn gesmas(arguments: &[&str]) {
    let output = Command::new(gesmas_binary()).args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Writes a backup and gives its path.
fn back_up(cluster: &Cluster) -> String {
    let folder = cluster.folder().join("backup");
    let folder = folder.to_str().expect("it is text");
    gesmas(&["--endpoints", &cluster.address(0).to_string(), "backup", folder]);
    let mut files = fs::read_dir(folder).expect("the folder is there");
    let file = files.next().expect("a file is in it").expect("it can be listed");
    file.path().to_str().expect("it is text").into()
}

/// Begins all replicas anew with a backup.
async fn restore(cluster: &mut Cluster, backup: &str) {
    for index in cluster.indices() {
        cluster.stop(index).await;
    }
    for index in cluster.indices() {
        let data = cluster.folder().join(format!("replica-{}", index + 1));
        fs::rename(&data, data.with_extension("old")).expect("it is there");
        let config = cluster.config(index).to_str().expect("it is text");
        gesmas(&["restore", backup, "--config", config]);
    }
    for index in cluster.indices() {
        cluster.restart(index);
    }
    cluster.leader().await;
}

async fn read(wire: &mut Wire, correlation: u64, seen: Position, stale: bool) -> ReadReply {
    let queue = Class::standard("Queue");
    wire.send(Read {
        correlation,
        session: None,
        after: 0,
        seen,
        time_left_ns: None,
        class: "Queue".into(),
        object: "q".into(),
        method: "length".into(),
        signature: queue.signature("length"),
        arguments: arguments(()).into(),
        stale,
    })
    .await;
    let reply = wire.receive_until(|message| match message {
        ServerMessage::ReadReply(reply) if reply.correlation == correlation => Some(reply),
        _ => None,
    });
    wait::bounded("the answer to a read", reply).await
}

fn queue(session: &Session) -> QueueStub<Session> {
    QueueStub::new(session.clone(), "q")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restore_nobody_waits_for_what_is_lost() {
    let mut cluster = Cluster::start().await;
    let (goes_on, is_behind) = (cluster.session().await, cluster.session().await);
    queue(&goes_on).create(1_000).await.expect("the queue is created");
    queue(&is_behind).produce(vec![1].into()).await.expect("it has room");
    let backup = back_up(&cluster);
    for item in 2..50 {
        queue(&is_behind).produce(vec![item].into()).await.expect("it has room");
    }
    let lost = cluster.look(0).await.status.position;
    assert_eq!(lost.epoch, 0);
    restore(&mut cluster, &backup).await;

    let now = cluster.look(0).await.status.position;
    assert!(now.epoch == 1 && now.step < lost.step, "{now:?} is after {lost:?}");
    // A session that has asked for nothing since goes on.
    queue(&goes_on).produce(vec![2].into()).await.expect("its numbers are those of the backup");
    // One whose answers are lost is over: what it asks for next would follow them.
    let item = arguments((Bytes(vec![50]),));
    let call = Class::standard("Queue").call(&is_behind, "q", "produce", item).send();
    let failure = wait::bounded("the end of a call", call).await;
    let restored = matches!(
        failure,
        Err(CallFailure::Unknown(UnknownReason::SessionOver(OverReason::Restored))
            | CallFailure::NotSent(NotSentReason::SessionOver(OverReason::Restored)))
    );
    assert!(restored, "{failure:?}");

    let (mut wire, _) = Wire::greet(cluster.address(1)).await;
    for stale in [false, true] {
        // What was seen in the old history is before all of the new one.
        let reply = read(&mut wire, 1, lost, stale).await;
        assert!(reply.result.is_ok() && reply.position.epoch == 1, "{reply:?}");
        let far = Position { epoch: 0, step: u64::MAX };
        assert!(read(&mut wire, 2, far, stale).await.result.is_ok());
        // Nobody can have seen what is to come.
        for seen in [(1, 1 << 40), (2, 0), (u64::MAX, 0)] {
            let seen = Position { epoch: seen.0, step: seen.1 };
            let reply = read(&mut wire, 3, seen, stale).await;
            let refused = matches!(reply.result, Err(ReadError::Refused(Refusal::Invalid { .. })));
            assert!(refused, "{seen:?}: {reply:?}");
        }
    }
    cluster.assert_equal().await;
}
