//! Replicas die, come back, lag: nothing acknowledged is lost, nobody who is blocked is forgotten.

use std::time::Duration;

use gesmas_abi::value::{Bytes, from_bytes};
use gesmas_barrier::BarrierStub;
use gesmas_client::{
    CallFailure, PendingCall, Session,
    protocol::{CallError, CancelReason},
};
use gesmas_cluster_tests::{Class, Cluster, Load, Proxy, arguments, wait};
use gesmas_counter::CounterStub;
use gesmas_queue::QueueStub;

/// A queue of this capacity.
async fn create_queue(session: &Session, name: &str, capacity: u32) {
    let created = QueueStub::new(session.clone(), name).create(capacity).await;
    created.expect("the queue is created");
}

/// Calls that wait for items, in this order.
fn consume(session: &Session, name: &str, count: usize) -> Vec<PendingCall> {
    let queue = Class::standard("Queue");
    let call = || queue.call(session, name, "consume", Vec::new()).without_deadline();
    (0..count).map(|_| call().send()).collect()
}

/// Calls that bring items `from` to `to`, in this order.
fn produce(session: &Session, name: &str, items: std::ops::Range<u64>) -> Vec<PendingCall> {
    let queue = Class::standard("Queue");
    let call = |item: u64| {
        let item = arguments((Bytes(item.to_le_bytes().to_vec()),));
        queue.call(session, name, "produce", item).without_deadline().send()
    };
    items.map(call).collect()
}

async fn item_of(call: PendingCall) -> u64 {
    let result = wait::bounded("a blocked call", call).await.expect("it gets its item");
    let item: Bytes = from_bytes(&result).expect("it is an item");
    u64::from_le_bytes(item.0.try_into().expect("items have 8 bytes"))
}

/// Waits until so many calls are blocked in an object, as a client of all replicas sees it.
async fn blocked(session: &Cluster, class: &str, object: &str, count: u64) {
    let client = session.client().await;
    wait::until("that calls are blocked", || async {
        let shown = client.show_object(class, object, 1).await;
        shown.is_ok_and(|object| object.summary.waiters == count)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_blocked_caller_gets_its_item_although_the_leader_is_killed() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let load = Load::start(&cluster, "load").await;
    // The producer begins at the leader, the consumers at all replicas.
    let mut addresses: Vec<_> = cluster.indices().map(|index| cluster.address(index)).collect();
    addresses.rotate_left(leader);
    let session = cluster.client_at(&addresses).await.session().open().await.expect("a session");
    create_queue(&session, "jobs", 2).await;
    let mut waiting = Vec::new();
    for part in 1..=3 {
        let consumer = cluster.session().await;
        waiting.extend(consume(&consumer, "jobs", 20));
        blocked(&cluster, "Queue", "jobs", part * 20).await;
    }
    let first: Vec<_> = waiting.drain(..20).collect();
    for produced in produce(&session, "jobs", 0..20) {
        wait::bounded("a call", produced).await.expect("it is produced");
    }
    let in_flight = produce(&session, "jobs", 20..60);
    cluster.kill(leader);
    load.goes_on(30).await;
    cluster.restart(leader);
    for (place, call) in (0..).zip(first.into_iter().chain(waiting)) {
        assert_eq!(item_of(call).await, place, "items go to those who wait, in their order");
    }
    for produced in in_flight {
        wait::bounded("a call in flight", produced).await.expect("it is produced, once");
    }
    load.goes_on(30).await;
    assert!(load.finish().await > 60);
    cluster.assert_equal().await;
    let left = QueueStub::new(session, "jobs").length().await;
    assert_eq!(left.expect("a read works"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_replica_is_killed_in_turn_and_comes_back() {
    let mut cluster = Cluster::start().await;
    let session = cluster.session().await;
    create_queue(&session, "turns", 4).await;
    let load = Load::start(&cluster, "load").await;
    for (turn, index) in (0..).zip(cluster.indices()) {
        let caller = cluster.session().await;
        let waiting = consume(&caller, "turns", 3);
        blocked(&cluster, "Queue", "turns", 3).await;
        cluster.kill(index);
        load.goes_on(20).await;
        for produced in produce(&session, "turns", turn * 3..turn * 3 + 3) {
            wait::bounded("a call", produced).await.expect("two of three are enough");
        }
        for (item, call) in (turn * 3..).zip(waiting) {
            assert_eq!(item_of(call).await, item);
        }
        cluster.restart(index);
        // It must have caught up before the next one is killed: two are needed.
        cluster.caught_up(index).await;
        load.goes_on(20).await;
    }
    load.finish().await;
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_of_all_replicas_loses_nothing_acknowledged() {
    let mut cluster = Cluster::start().await;
    let session = cluster.session().await;
    create_queue(&session, "jobs", 100).await;
    let counter = CounterStub::new(session.clone(), "kept");
    for count in 1..=50 {
        assert_eq!(counter.increment().await.expect("a call works"), count);
    }
    for produced in produce(&session, "jobs", 0..10) {
        wait::bounded("a call", produced).await.expect("it is produced");
    }
    let callers = [cluster.session_of(0).await, cluster.session_of(1).await];
    let barrier = BarrierStub::new(session.clone(), "all");
    barrier.create(3).await.expect("the barrier is created");
    let class = Class::standard("Barrier");
    let waiting: Vec<_> = callers
        .iter()
        .map(|caller| class.call(caller, "all", "wait", Vec::new()).without_deadline().send())
        .collect();
    blocked(&cluster, "Barrier", "all", 2).await;
    for index in cluster.indices() {
        cluster.kill(index);
    }
    for index in cluster.indices() {
        cluster.restart(index);
    }
    cluster.leader().await;
    let last = wait::bounded("the last party", barrier.wait()).await;
    assert_eq!(last.expect("the barrier opens"), 0);
    for call in waiting {
        let generation = wait::bounded("a blocked call", call).await.expect("it goes on");
        assert_eq!(from_bytes::<u64>(&generation).expect("a number"), 0);
    }
    assert_eq!(counter.increment().await.expect("a call works"), 51);
    for (item, call) in (0..).zip(consume(&session, "jobs", 10)) {
        assert_eq!(item_of(call).await, item);
    }
    for caller in &callers {
        let caller = CounterStub::new(caller.clone(), "sessions-live");
        caller.increment().await.expect("the session was kept");
    }
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_was_down_catches_up_with_what_it_missed() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let lagging = (leader + 1) % 3;
    let session = cluster.session_of(leader).await;
    create_queue(&session, "before", 10).await;
    cluster.kill(lagging);
    // A class that it has never compiled, calls that block, calls that end.
    let counter = CounterStub::new(session.clone(), "missed");
    for count in 1..=300 {
        assert_eq!(counter.increment().await.expect("two of three are enough"), count);
    }
    let waiting = consume(&session, "before", 5);
    blocked(&cluster, "Queue", "before", 5).await;
    cluster.restart(lagging);
    cluster.assert_equal().await;
    // What it has now is enough to go on without one of the others.
    cluster.kill(leader);
    let through_it = cluster.session_of(lagging).await;
    for produced in produce(&through_it, "before", 0..5) {
        wait::bounded("a call", produced).await.expect("it is produced");
    }
    let count = CounterStub::new(through_it, "missed").get().await;
    assert_eq!(count.expect("a read works"), 300);
    cluster.restart(leader);
    for (item, call) in (0..).zip(waiting) {
        assert_eq!(item_of(call).await, item);
    }
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_moves_from_replica_to_replica_with_its_blocked_call() {
    let cluster = Cluster::start().await;
    let proxy = Proxy::start(cluster.address(0)).await;
    let client = cluster.client_at(&[proxy.address()]).await;
    let session = client.session().open().await.expect("a session");
    create_queue(&session, "moves", 1).await;
    let waiting = consume(&session, "moves", 1);
    let counter = CounterStub::new(session.clone(), "moves");
    let mut count = 0;
    for index in cluster.indices().chain(cluster.indices()) {
        proxy.switch(cluster.address(index));
        for _ in 0..5 {
            count += 1;
            let increment = wait::bounded("a call of a session that moves", counter.increment());
            assert_eq!(increment.await.expect("no call fails"), count);
        }
        assert_eq!(counter.get().await.expect("its reads see its updates"), count);
    }
    let other = cluster.session().await;
    for produced in produce(&other, "moves", 7..8) {
        produced.await.expect("it is produced");
    }
    for call in waiting {
        assert_eq!(item_of(call).await, 7);
    }
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_through_any_replica_sees_what_was_acknowledged_through_another() {
    let cluster = Cluster::start().await;
    let mut counters = Vec::new();
    for index in cluster.indices() {
        counters.push(CounterStub::new(cluster.session_of(index).await, "seen"));
    }
    for round in 0..60 {
        let (writer, reader) = (&counters[round % 3], &counters[(round + 1 + round / 3 % 2) % 3]);
        let written = writer.increment().await.expect("a call works");
        let read = reader.get().await.expect("a read works");
        assert!(read >= written, "{read} was read after {written} was acknowledged");
    }
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_passes_across_a_failover() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let session = cluster.session().await;
    create_queue(&session, "late", 1).await;
    let queue = Class::standard("Queue");
    let call = queue.call(&session, "late", "consume", Vec::new());
    let call = call.deadline(Duration::from_secs(4)).send();
    let patient = consume(&session, "late", 1);
    blocked(&cluster, "Queue", "late", 2).await;
    cluster.kill(leader);
    let end = wait::bounded("a deadline", call).await;
    let cancelled = CallError::Cancelled(CancelReason::Deadline);
    assert!(matches!(&end, Err(CallFailure::Failed(error, _)) if *error == cancelled), "{end:?}");
    // The one who was cancelled has left the queue: the item is for the other one.
    for produced in produce(&session, "late", 1..2) {
        wait::bounded("a call", produced).await.expect("it is produced");
    }
    for call in patient {
        assert_eq!(item_of(call).await, 1);
    }
    cluster.restart(leader);
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_is_cancelled_and_cleans_up() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let barrier = BarrierStub::new(session.clone(), "three");
    barrier.create(3).await.expect("the barrier is created");
    let class = Class::standard("Barrier");
    let call = || class.call(&session, "three", "wait", Vec::new()).without_deadline().send();
    let (stays, goes) = (call(), call());
    blocked(&cluster, "Barrier", "three", 2).await;
    assert_eq!(barrier.waiting().await.expect("a read works"), 2);
    drop(goes);
    wait::until("that a party is not counted any more", || async {
        barrier.waiting().await.expect("a read works") == 1
    })
    .await;
    let third = call();
    blocked(&cluster, "Barrier", "three", 2).await;
    assert_eq!(barrier.wait().await.expect("the barrier opens"), 0);
    for call in [stays, third] {
        wait::bounded("a blocked call", call).await.expect("it goes on");
    }
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_is_gone_is_not_shown_as_connected() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let follower = cluster.indices().find(|index| *index != leader).expect("there are three");
    let connected = async |cluster: &Cluster, count: usize| {
        wait::until("that a peer is gone or back", || async {
            cluster.look(leader).await.status.connected.len() == count
        })
        .await;
    };
    connected(&cluster, 2).await;
    cluster.kill(follower);
    connected(&cluster, 1).await;
    cluster.restart(follower);
    connected(&cluster, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_process_is_gone_is_taken_over_from() {
    let mut cluster = Cluster::start().await;
    // A cluster that has just started may elect twice: whoever is killed then led a moment before.
    for round in 1..=5 {
        let leader = cluster.leader().await;
        let others: Vec<_> = cluster.indices().filter(|index| *index != leader).collect();
        let takeovers = async |cluster: &Cluster| {
            let mut sum = 0;
            for other in &others {
                sum += cluster.look(*other).await.counter("takeovers");
            }
            sum
        };
        let before = takeovers(&cluster).await;
        let counter = CounterStub::new(cluster.session_of(others[0]).await, "visits");
        cluster.kill(leader);
        let counted = counter.increment().await.expect("a call by way of another leader");
        assert_eq!(counted, round);
        // An election by missed heartbeats would have come later, and counts nothing.
        if takeovers(&cluster).await > before {
            return;
        }
        cluster.restart(leader);
        cluster.caught_up(leader).await;
    }
    panic!("leaders that were killed were missed as if they were silent");
}
