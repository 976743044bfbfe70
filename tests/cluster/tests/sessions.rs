//! Clients die, connections break, replicas freeze or leave: who keeps a session and who loses it.

use std::time::Duration;

use gesmas_abi::value::{Bytes, from_bytes, to_bytes};
use gesmas_client::{
    Client, Session, SessionState,
    protocol::{KeepAlive, OnBehalf, Outcome, OverReason, Request, RequestBody, ServerMessage},
};
use gesmas_cluster_tests::{Class, Cluster, Load, Proxy, Wire, arguments, wait};
use gesmas_counter::CounterStub;
use gesmas_lock::LockStub;
use gesmas_queue::QueueStub;

const SHORT: Duration = Duration::from_secs(1);

async fn short_session(client: &Client) -> Session {
    client.session().timeout(SHORT).open().await.expect("a session is opened")
}

/// A client dies: its connection is gone, and nobody closes its sessions.
async fn die(client: Client) {
    client.shutdown().await;
}

async fn waiters(client: &Client, class: &str, object: &str, count: u64) {
    wait::until("that calls wait", || async {
        let shown = client.show_object(class, object, 1).await;
        shown.is_ok_and(|object| object.summary.waiters == count)
    })
    .await;
}

async fn session_is_gone(client: &Client, session: u64) {
    wait::until("that a session expires", || async {
        let sessions = client.list_sessions(0, 1_000).await;
        sessions.is_ok_and(|page| page.items.iter().all(|open| open.session != session))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_passes_on_when_the_client_that_holds_it_dies() {
    let cluster = Cluster::start().await;
    let dying = cluster.client().await;
    let held = short_session(&dying).await;
    let first = LockStub::new(held.clone(), "alone").lock(1).await.expect("the lock is free");
    let session = cluster.session().await;
    let next = LockStub::new(session.clone(), "alone");
    let lock = Class::standard("Lock");
    let waiting = lock.call(&session, "alone", "lock", to_bytes(&1_u64)).without_deadline().send();
    let client = cluster.client().await;
    waiters(&client, "Lock", "alone", 1).await;
    die(dying).await;
    let second = wait::bounded("the lock", waiting).await.expect("the lock passes on");
    let second: u64 = from_bytes(&second).expect("a token");
    assert!(second > first, "token {second} is not greater than {first}");
    session_is_gone(&client, held.id()).await;
    let holder = next.holder().await.expect("a read works").expect("the lock is held");
    assert_eq!((holder.token, holder.session.0), (second, session.id()));
    next.unlock(second).await.expect("it is given back");
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_goes_to_the_living_when_a_client_dies_while_it_waits() {
    let cluster = Cluster::start().await;
    let (dying, living) = (cluster.client().await, cluster.session().await);
    let queue = QueueStub::new(living.clone(), "jobs");
    queue.create(4).await.expect("the queue is created");
    let dead = short_session(&dying).await;
    let class = Class::standard("Queue");
    let of_dead = class.call(&dead, "jobs", "consume", Vec::new()).without_deadline().send();
    let client = cluster.client().await;
    waiters(&client, "Queue", "jobs", 1).await;
    let of_living = class.call(&living, "jobs", "consume", Vec::new()).without_deadline().send();
    waiters(&client, "Queue", "jobs", 2).await;
    die(dying).await;
    session_is_gone(&client, dead.id()).await;
    waiters(&client, "Queue", "jobs", 1).await;
    queue.produce("one".into()).await.expect("it is produced");
    let item = wait::bounded("the item", of_living).await.expect("the living gets it");
    assert_eq!(from_bytes::<Bytes>(&item).expect("an item"), "one".into());
    assert_eq!(queue.length().await.expect("a read works"), 0);
    drop(of_dead);
    cluster.assert_equal().await;
}

fn consume_request(session: u64, number: u64) -> Request {
    Request {
        session,
        number,
        previous: number - 1,
        time_left_ns: None,
        acknowledged: Default::default(),
        body: RequestBody::Call {
            class: "Queue".into(),
            object: "jobs".into(),
            method: "consume".into(),
            signature: Class::standard("Queue").signature("consume"),
            arguments: Vec::new().into(),
            on_behalf: OnBehalf::Requester,
        },
    }
}

async fn reply(wire: &mut Wire, session: u64, number: u64) -> Outcome {
    wire.receive_until(|message| match message {
        ServerMessage::Reply(reply) if (reply.session, reply.number) == (session, number) => {
            Some(reply.outcome)
        }
        ServerMessage::SessionOver(over) => panic!("the session is over: {over:?}"),
        _ => None,
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_is_the_reply_of_a_client_that_is_gone_until_its_session_ends() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let queue = QueueStub::new(session.clone(), "jobs");
    queue.create(4).await.expect("the queue is created");
    let client = cluster.client().await;

    let (mut wire, _) = Wire::greet(cluster.address(0)).await;
    let gone = wire.open_session(1, 3_000_000_000).await;
    wire.send(consume_request(gone, 1)).await;
    waiters(&client, "Queue", "jobs", 1).await;
    drop(wire);
    queue.produce("first".into()).await.expect("it is produced");
    assert_eq!(queue.length().await.expect("a read works"), 0, "it was woken");

    // It comes back to another replica in time, asks again, and gets what was its own.
    let (mut wire, _) = Wire::greet(cluster.address(1)).await;
    wire.attach_session(gone).await;
    wire.send(consume_request(gone, 1)).await;
    let item = reply(&mut wire, gone, 1).await.expect("it has an item");
    assert_eq!(from_bytes::<Bytes>(&item).expect("an item"), "first".into());

    // The next time it does not: the item is gone with it, and those who wait get the next ones.
    wire.send(consume_request(gone, 2)).await;
    waiters(&client, "Queue", "jobs", 1).await;
    let class = Class::standard("Queue");
    let living = class.call(&session, "jobs", "consume", Vec::new()).without_deadline().send();
    waiters(&client, "Queue", "jobs", 2).await;
    drop(wire);
    queue.produce("second".into()).await.expect("it is produced");
    queue.produce("third".into()).await.expect("it is produced");
    let item = wait::bounded("the item", living).await.expect("the living gets the next one");
    assert_eq!(from_bytes::<Bytes>(&item).expect("an item"), "third".into());
    session_is_gone(&client, gone).await;
    assert_eq!(queue.length().await.expect("a read works"), 0);
    let (mut wire, _) = Wire::greet(cluster.address(2)).await;
    wire.send(KeepAlive { session: gone, correlation: 5 }).await;
    let over = wire.receive_until(|message| match message {
        ServerMessage::SessionOver(over) => Some(over),
        _ => None,
    });
    assert_eq!(over.await.session, gone);
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_does_nothing_to_the_session() {
    let cluster = Cluster::start().await;
    let proxies = [
        Proxy::start(cluster.address(0)).await,
        Proxy::start(cluster.address(1)).await,
        Proxy::start(cluster.address(2)).await,
    ];
    let addresses: Vec<_> = proxies.iter().map(Proxy::address).collect();
    let client = cluster.client_at(&addresses).await;
    let session = client.session().open().await.expect("a session");
    let queue = QueueStub::new(session.clone(), "jobs");
    queue.create(4).await.expect("the queue is created");
    let class = Class::standard("Queue");
    let waiting = class.call(&session, "jobs", "consume", Vec::new()).without_deadline().send();
    let watcher = cluster.client().await;
    waiters(&watcher, "Queue", "jobs", 1).await;
    // Everything breaks; meanwhile the item comes; then one way opens again.
    for proxy in &proxies {
        proxy.cut();
    }
    let mut states = session.states();
    let suspended = states.wait_for(|state| *state == SessionState::Suspended);
    drop(wait::bounded("that the client notices", suspended).await.expect("the session lives"));
    let other = QueueStub::new(cluster.session().await, "jobs");
    other.produce("item".into()).await.expect("it is produced");
    proxies[2].switch(cluster.address(1));
    let item = wait::bounded("the reply", waiting).await.expect("the request re-attaches");
    assert_eq!(from_bytes::<Bytes>(&item).expect("an item"), "item".into());
    assert_eq!(session.state(), SessionState::Connected);
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_loses_a_session_to_a_leader_that_froze() {
    let cluster = Cluster::start().await;
    let load = Load::start(&cluster, "load").await;
    let old = cluster.leader().await;
    // Sessions at all replicas, the leader that freezes included, with a timeout that is short.
    let mut sessions = Vec::new();
    for index in cluster.indices() {
        let mut addresses: Vec<_> = cluster.indices().map(|at| cluster.address(at)).collect();
        addresses.rotate_left(index);
        let client = cluster.client_at(&addresses).await;
        sessions.push(client.session().timeout(SHORT * 4).open().await.expect("a session"));
    }
    let mut held = Vec::new();
    for (index, session) in sessions.iter().enumerate() {
        let token = LockStub::new(session.clone(), format!("held-{index}")).lock(1).await;
        held.push(token.expect("the lock is free"));
    }
    cluster.freeze(old);
    let new = cluster.leader_other_than(old).await;
    let start = cluster.look(new).await.status.now;
    wait::until("that ordered time has passed a timeout twice over", || async {
        load.goes_on(1).await;
        let passed = cluster.look(new).await.status.now.saturating_sub(start);
        u128::from(passed) > (SHORT * 8).as_nanos()
    })
    .await;
    cluster.thaw(old);
    load.goes_on(50).await;
    cluster.look(old).await;
    load.finish().await;
    cluster.assert_equal().await;
    for (index, (session, token)) in sessions.iter().zip(held).enumerate() {
        assert!(!matches!(session.state(), SessionState::Lost(_)), "session {index} is lost");
        let lock = LockStub::new(session.clone(), format!("held-{index}"));
        lock.unlock(token).await.expect("the lock was held all the time");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_move_on_when_replicas_stop_in_good_order() {
    let mut cluster = Cluster::start().await;
    let load = Load::start(&cluster, "load").await;
    let client = cluster.client().await;
    let session = client.session().open().await.expect("a session");
    let queue = QueueStub::new(session.clone(), "jobs");
    queue.create(4).await.expect("the queue is created");
    let class = Class::standard("Queue");
    let waiting = class.call(&session, "jobs", "consume", Vec::new()).without_deadline().send();
    for index in cluster.indices() {
        let (mut wire, welcome) = Wire::greet(cluster.address(index)).await;
        assert_eq!(welcome.replica, index as u64 + 1);
        // The replica greets before it counts a connection among those that are told.
        wire.open_session(1_000 + index as u128, 60_000_000_000).await;
        let status = cluster.stop(index).await;
        assert_eq!(status.code(), Some(0), "{status}");
        let goodbye = wire.receive().await;
        assert!(matches!(goodbye, Some(ServerMessage::GoingAway(_))), "{goodbye:?}");
        assert_eq!(wire.receive().await, None, "the connection is closed");
        load.goes_on(20).await;
        cluster.restart(index);
        cluster.caught_up(index).await;
    }
    queue.produce("item".into()).await.expect("it is produced");
    let item = wait::bounded("the reply", waiting).await.expect("the blocked call was kept");
    assert_eq!(from_bytes::<Bytes>(&item).expect("an item"), "item".into());
    load.finish().await;
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_closed_or_killed_ends_its_calls() {
    let cluster = Cluster::start().await;
    let operator = cluster.session().await;
    let queue = QueueStub::new(operator.clone(), "jobs");
    queue.create(4).await.expect("the queue is created");
    let class = Class::standard("Queue");
    let victim = cluster.session().await;
    let of_victim = class.call(&victim, "jobs", "consume", Vec::new()).without_deadline().send();
    let client = cluster.client().await;
    waiters(&client, "Queue", "jobs", 1).await;
    operator.kill_session(victim.id()).await.expect("it is killed");
    let end = wait::bounded("the end of a killed session's call", of_victim).await;
    assert!(end.as_ref().is_err_and(|failure| failure.is_unknown()), "{end:?}");
    let mut states = victim.states();
    let lost = states.wait_for(|state| *state == SessionState::Lost(OverReason::Killed));
    drop(wait::bounded("word of the loss", lost).await.expect("the session tells its state"));
    let closing = cluster.session().await;
    let of_closing = class.call(&closing, "jobs", "consume", Vec::new()).without_deadline().send();
    waiters(&client, "Queue", "jobs", 1).await;
    closing.close().await;
    drop(of_closing);
    waiters(&client, "Queue", "jobs", 0).await;
    let counter = CounterStub::new(operator, "others");
    assert_eq!(counter.increment().await.expect("others go on"), 1);
    let produced = queue.produce(Bytes(arguments(()))).await;
    produced.expect("it is produced");
    assert_eq!(queue.length().await.expect("a read works"), 1);
    cluster.assert_equal().await;
}
