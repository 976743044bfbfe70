//! What sessions hold, when those who take it are cancelled at about the time when they get it.

use std::{
    any::Any,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gesmas_abi::value::{Bytes, from_bytes};
use gesmas_client::{Client, Clock, Fate, InvocationFilter, Session, protocol::CancelReason};
use gesmas_cluster_tests::{Class, Cluster, wait};
use gesmas_queue::QueueStub;

/// Races for each kind of hold.
const ROUNDS: u64 = 45;
/// By how much a cancellation comes later from round to round.
const STEP: Duration = Duration::from_micros(120);
const HOUR: Duration = Duration::from_secs(3_600);

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// Whatever it is: it is given back when it is dropped.
type Held = Box<dyn Any + Send>;

/// One kind of thing to hold.
struct Kind {
    name: &'static str,
    /// Holds it so that others wait.
    first: fn(Session, String) -> Pending<Held>,
    /// Takes it; waits while it is held.
    take: fn(Session, String) -> Pending<Held>,
    /// How many hold it, and how many wait for it.
    look: fn(Session, String) -> Pending<(u64, u64)>,
}

/// What a future comes to, boxed.
macro_rules! held {
    ($taking:expr) => {
        Box::pin(async move { Box::new($taking.await.expect("it is taken")) as Held })
    };
}

const KINDS: [Kind; 6] = [
    Kind {
        name: "lock",
        first: |session, name| held!(session.lock(name).acquire()),
        take: |session, name| held!(session.lock(name).acquire()),
        look: |session, name| {
            Box::pin(async move {
                let stub = session.lock(name).stub();
                let holder = stub.holder().await.expect("a read works");
                (u64::from(holder.is_some()), stub.waiting().await.expect("a read works"))
            })
        },
    },
    Kind {
        name: "reader",
        first: |session, name| held!(session.rw_lock(name).write()),
        take: |session, name| held!(session.rw_lock(name).read()),
        look: look_at_rw_lock,
    },
    Kind {
        name: "writer",
        first: |session, name| held!(session.rw_lock(name).read()),
        take: |session, name| held!(session.rw_lock(name).write()),
        look: look_at_rw_lock,
    },
    Kind {
        name: "semaphore",
        first: |session, name| {
            held!(async move {
                session.semaphore(name.as_str()).stub().create(2).await.expect("it is created");
                session.semaphore(name).acquire(1).await
            })
        },
        take: |session, name| held!(session.semaphore(name).acquire(2)),
        look: |session, name| {
            Box::pin(async move {
                let stub = session.semaphore(name).stub();
                let free = stub.available().await.expect("a read works");
                (2 - free, stub.waiting().await.expect("a read works"))
            })
        },
    },
    Kind {
        name: "election",
        first: |session, name| held!(session.election(name).campaign("one")),
        take: |session, name| held!(session.election(name).campaign("two")),
        look: |session, name| {
            Box::pin(async move {
                let stub = session.election(name).stub();
                let leader = stub.leader().await.expect("a read works");
                (u64::from(leader.is_some()), stub.candidates().await.expect("a read works"))
            })
        },
    },
    Kind {
        name: "lease",
        first: |session, name| held!(session.lease(name).acquire("one", HOUR)),
        take: |session, name| held!(session.lease(name).acquire("two", HOUR)),
        look: |session, name| {
            Box::pin(async move {
                let stub = session.lease(name).stub();
                let holder = stub.holder().await.expect("a read works");
                (u64::from(holder.is_some()), stub.waiting().await.expect("a read works"))
            })
        },
    },
];

fn look_at_rw_lock(session: Session, name: String) -> Pending<(u64, u64)> {
    Box::pin(async move {
        let lock = session.rw_lock(name);
        let waiting = lock.stub().waiting().await.expect("a read works");
        // It is given back before the session looks again, since its calls start in their order.
        let free = lock.try_write().await.expect("it is answered").is_some();
        (u64::from(!free), waiting)
    })
}

/// Gives a waiter up after some time, in the way of this round.
async fn give_up(round: u64, waiting: Pending<Held>) {
    let patience = STEP * u32::try_from(round).expect("there are few rounds");
    match round % 3 {
        0 => drop(tokio::time::timeout(patience, waiting).await),
        1 => {
            let task = tokio::spawn(waiting);
            tokio::time::sleep(patience).await;
            task.abort();
            // What it may have come to is dropped with its result.
            drop(task.await);
        }
        _ => {
            tokio::select! {
                held = waiting => drop(held),
                () = tokio::time::sleep(patience) => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_cancelled_when_the_wait_ends_leaves_nothing_held() {
    let cluster = Cluster::start().await;
    let (one, two) = (cluster.session().await, cluster.session().await);
    for kind in &KINDS {
        for round in 0..ROUNDS {
            let name = format!("{}-{round}", kind.name);
            let look = || (kind.look)(one.clone(), name.clone());
            let first = (kind.first)(one.clone(), name.clone()).await;
            let mut waiting = (kind.take)(two.clone(), name.clone());
            tokio::select! {
                _ = &mut waiting => panic!("{name} is held"),
                () = wait::until("that it waits", || async { look().await.1 == 1 }) => {}
            }
            drop(first);
            give_up(round, waiting).await;
            let what = format!("that nobody holds {name}");
            wait::until(&what, || async { look().await == (0, 0) }).await;
        }
    }
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_join_is_given_up_is_not_there() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let group = session.membership("workers");
    group.stub().create().await.expect("it is created");
    for round in 0..ROUNDS {
        let (joining, name) = (group.clone(), format!("host-{round}"));
        let join = async move { joining.join(name, "here").await };
        give_up(round, held!(join)).await;
        let size = || async { group.stub().size().await };
        wait::until("that nobody is there", || async { size().await == Ok(0) }).await;
    }
    let member = group.join("host", "here").await.expect("the name is free");
    member.update("there").await.expect("it is there");
    assert_eq!(group.stub().size().await, Ok(1));
    member.leave().await.expect("it was there");
    assert_eq!(group.stub().size().await, Ok(0));
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_without_a_limit_has_none_whatever_the_session_says() {
    let cluster = Cluster::start().await;
    let client = cluster.client().await;
    let hurried = client.session().deadline(Some(Duration::from_secs(20)));
    let (one, two) = (cluster.session().await, hurried.open().await.expect("it is opened"));
    for kind in &KINDS {
        let _first = (kind.first)(one.clone(), kind.name.into()).await;
        let mut waiting = (kind.take)(two.clone(), kind.name.into());
        let filter = || InvocationFilter { session: Some(two.id()), ..Default::default() };
        let listed = wait::until_some("that it waits", || async {
            client.list_invocations(filter(), 0, 9).await.ok()?.items.pop()
        });
        let listed = tokio::select! {
            _ = &mut waiting => panic!("{} is held", kind.name),
            listed = listed => listed,
        };
        assert_eq!(listed.deadline, None, "{}", kind.name);
        drop(waiting);
        wait::until("that it waits no more", || async {
            client.list_invocations(filter(), 0, 9).await.is_ok_and(|page| page.items.is_empty())
        })
        .await;
    }
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_by_hand_tells_what_became_of_it() {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let queue = QueueStub::new(session.clone(), "jobs");
    queue.create(4).await.expect("it is created");
    let class = Class::standard("Queue");
    let consume = || class.call(&session, "jobs", "consume", Vec::new());
    let client = cluster.client().await;
    let waits = || async {
        let shown = client.show_object("Queue", "jobs", 1).await;
        shown.is_ok_and(|object| object.summary.waiters == 1)
    };

    let failure = consume().deadline(Duration::from_millis(50)).await.expect_err("it is empty");
    assert_eq!(failure.fate(), Fate::Withdrawn(CancelReason::Deadline));
    let waiting = consume().without_deadline().send();
    wait::until("that it waits", waits).await;
    waiting.withdraw();
    let failure = wait::bounded("the end", waiting).await.expect_err("it is empty");
    assert_eq!(failure.fate(), Fate::Withdrawn(CancelReason::Caller));

    // One that is withdrawn too late has a result.
    let served = consume().without_deadline().send();
    wait::until("that it waits", waits).await;
    queue.produce("one".into()).await.expect("there is room");
    served.withdraw();
    let item = wait::bounded("the end", served).await.expect("it was served");
    assert_eq!(from_bytes::<Bytes>(&item).expect("an item"), "one".into());

    let failure = session.call("Queue", "jobs", "nothing", 0, Vec::new()).await;
    assert_eq!(failure.expect_err("there is no such method").fate(), Fate::Ended);
    session.clone().close().await;
    let late = consume().await.expect_err("the session is closed");
    assert_eq!(late.fate(), Fate::NeverRan);
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_doubted_after_a_sleep_until_the_cluster_has_heard_of_it() {
    let cluster = Cluster::start().await;
    let slept = Arc::new(AtomicU64::new(0));
    let clock = Clock::new({
        let (slept, start) = (slept.clone(), Instant::now());
        move || start.elapsed() + Duration::from_secs(slept.load(Ordering::Relaxed))
    });
    let endpoints = cluster.indices().map(|index| cluster.address(index).to_string());
    let builder = Client::builder().endpoints(endpoints).clock(clock);
    let client = builder.connect().await.expect("a replica answers");
    let session = client.session().open().await.expect("it is opened");
    let hold = session.lock("a").acquire().await.expect("it is free");
    assert!(!hold.is_lost());
    slept.store(3_600, Ordering::Relaxed);
    assert!(hold.is_lost(), "nobody knows what has happened meanwhile");
    wait::bounded("word of the loss", hold.lost()).await;
    // It was no sleep, so the cluster has kept the session; a real one would have ended it.
    wait::until("that it is known to live", || async { !hold.is_lost() }).await;
    hold.release().await.expect("it is held yet");
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_opened_before_is_opened_again_and_believed() {
    let cluster = Cluster::start().await;
    let client = cluster.client().await;
    let open = || client.session().nonce(77).open();
    let first = open().await.expect("it is opened");
    let id = first.id();
    assert!(!first.may_be_over());
    first.leave();
    let second = open().await.expect("it is opened again");
    assert_eq!(second.id(), id);
    assert!(!second.may_be_over(), "a keep-alive was answered before it was handed out");
    second.lock("a").acquire().await.expect("it is free").release().await.expect("it is held");
    cluster.assert_equal().await;
}
