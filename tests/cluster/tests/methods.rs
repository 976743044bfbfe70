//! Calls that are wrong and methods that mean harm: each ends with its own error, its segment is
//! undone, and everything else goes on.

use std::{future::IntoFuture as _, time::Duration};

use gesmas_abi::value::from_bytes;
use gesmas_client::{
    Call, CallFailure, Read, Session,
    protocol::{Bytes, CallError, Trap},
};
use gesmas_cluster_tests::{Bystander, Class, Cluster, arguments, hostile_class, wait};
use gesmas_hostile::HostileStub;
use gesmas_sdk::stub::StubError;

/// A cluster with an object `Hostile/one` whose mark is 5.
async fn start() -> (Cluster, Bystander, Session, Class) {
    let cluster = Cluster::start().await;
    let bystander = Bystander::start(&cluster).await;
    let session = cluster.session().await;
    HostileStub::new(session.clone(), "one").create(5).await.expect("the object is created");
    (cluster, bystander, session, hostile_class())
}

async fn failure_of(call: Call) -> CallFailure {
    wait::bounded("a call", call.into_future()).await.expect_err("the call fails")
}

async fn failure_of_read(read: Read) -> CallFailure {
    wait::bounded("a read", read.into_future()).await.expect_err("the read fails")
}

/// The mark of `Hostile/one`.
async fn mark(session: &Session) -> u64 {
    HostileStub::new(session.clone(), "one").mark().await.expect("a read works")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_wrong_say_in_which_way() {
    let (cluster, mut bystander, session, class) = start().await;
    let right = class.signature("leave_mark");
    let five = || arguments((5_u64,));
    let call = |class: &str, object: &str, method: &str, signature, arguments: Vec<u8>| {
        failure_of(session.call(class, object, method, signature, arguments))
    };
    let long = "x".repeat(300);
    let failures = [
        ("class-unknown", call("Nothing", "one", "run", 0, vec![]).await),
        ("object-unknown", call("Hostile", "none", "leave_mark", right, five()).await),
        ("method-unknown", call("Hostile", "one", "nothing", right, five()).await),
        ("class-mismatch", call("Hostile", "one", "leave_mark", right ^ 1, five()).await),
        ("trap-arguments-malformed", call("Hostile", "one", "leave_mark", right, vec![1, 2]).await),
        ("trap-arguments-malformed", call("Hostile", "one", "leave_mark", right, vec![0; 9]).await),
        ("not-callable", call("Hostile", "one", "alarm", class.signature("alarm"), vec![]).await),
        ("not-callable", call("Hostile", "one", "init", class.signature("init"), five()).await),
        ("not-an-update", call("Hostile", "one", "mark", class.signature("mark"), vec![]).await),
        ("invalid", call("Host ile", "one", "mark", 0, vec![]).await),
        ("invalid", call("Hostile", "", "mark", 0, vec![]).await),
        ("invalid", call("Hostile", &long, "mark", 0, vec![]).await),
        ("limit", call("Hostile", "one", "leave_mark", right, vec![0; (1 << 20) + 1]).await),
        ("not-a-read", failure_of_read(class.read(&session, "one", "leave_mark", five())).await),
        ("object-unknown", failure_of_read(class.read(&session, "none", "mark", vec![])).await),
        (
            "class-mismatch",
            failure_of_read(session.read("Hostile", "one", "mark", 1, vec![])).await,
        ),
        ("class-unknown", failure_of_read(session.read("Nothing", "one", "mark", 1, vec![])).await),
    ];
    for (code, failure) in failures {
        assert_eq!(failure.code(), code, "{failure}");
        assert_logged(&cluster, &failure);
    }
    bystander.check().await;
    assert_eq!(mark(&session).await, 5);
    bystander.finish(&cluster).await;
}

/// Whoever is told of an error finds more about it under its id.
fn assert_logged(cluster: &Cluster, failure: &CallFailure) {
    let id = failure.id().unwrap_or_else(|| panic!("it has no id: {failure}")).to_string();
    let logged = (0..3).any(|replica| cluster.logged(replica).contains(&id));
    assert!(logged, "no replica has logged {id}: {failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_created_as_they_were_asked_for_or_not_at_all() {
    let (cluster, bystander, session, class) = start().await;
    let create = |object: &str, arguments: Vec<u8>| {
        session.create_object("Hostile", object, class.signature("init"), arguments)
    };
    create("one", arguments((5_u64,))).await.expect("the same again is nothing new");
    let failures = [
        ("object-exists", failure_of(create("one", arguments((6_u64,)))).await),
        ("init-failed", failure_of(create("two", arguments((1_000_u64,)))).await),
        ("init-failed", failure_of(create("two", vec![1])).await),
        ("class-mismatch", failure_of(session.create_object("Hostile", "two", 1, vec![])).await),
    ];
    for (code, failure) in failures {
        assert_eq!(failure.code(), code, "{failure}");
    }
    let read = failure_of_read(class.read(&session, "two", "mark", vec![])).await;
    assert_eq!(read.code(), "object-unknown", "nothing is left of an init that failed");
    bystander.finish(&cluster).await;
}

fn trap(failure: &CallFailure) -> &Trap {
    match failure {
        CallFailure::Failed(CallError::Trapped(trap), _) => trap,
        other => panic!("it did not trap: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_that_mean_harm_end_with_their_own_error_and_leave_no_trace() {
    let (cluster, mut bystander, session, class) = start().await;
    let methods = [
        ("panic_now", "trap-panicked", "on purpose"),
        ("panic_now", "trap-panicked", "src/lib.rs:"),
        ("spin", "trap-out-of-fuel", "fuel"),
        ("recurse", "trap-stack-overflow", "too deep"),
        // The stack that a compiler keeps in memory ends at address 0.
        ("recurse_with_locals", "trap-fault", "out of bounds"),
        ("allocate", "trap-out-of-memory", "memory"),
        ("write_forever", "trap-out-of-fuel", "fuel"),
        ("write_too_much", "trap-limit", "value_bytes"),
        ("return_too_much", "trap-limit", "reply_bytes"),
        ("continue_forever", "trap-step-budget", "segments_per_step"),
    ];
    for (method, code, part) in methods {
        let failure = failure_of(class.call(&session, "one", method, vec![])).await;
        assert_eq!(failure.code(), code, "{method}: {failure}");
        let message = &trap(&failure).message;
        assert!(message.contains(part), "{method}: {message}");
        assert_logged(&cluster, &failure);
        bystander.check().await;
        if method != "continue_forever" {
            assert_eq!(mark(&session).await, 5, "{method} is undone");
        }
    }
    // Segments before the last one stand.
    assert_eq!(mark(&session).await, 108);
    let mark = HostileStub::new(session.clone(), "one").leave_mark(6).await;
    assert_eq!(mark.expect("the object itself goes on too"), 6);
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_full_takes_no_more_and_can_be_emptied() {
    let (cluster, mut bystander, session, _) = start().await;
    let object = HostileStub::new(session.clone(), "one");
    let mut length = 0;
    let failure = loop {
        assert!(length < 1_000, "the object takes {length} values");
        match wait::bounded("a call", object.fill()).await {
            Ok(filled) => length = filled,
            Err(StubError::Other(failure)) => break failure,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(failure.code(), "trap-limit", "{failure}");
    assert!(trap(&failure).message.contains("object_bytes"), "{failure}");
    bystander.check().await;
    // The segment was undone as a whole, and removing always works.
    assert_eq!(object.empty().await.expect("a value is removed"), length - 1);
    for _ in 0..3 {
        object.empty().await.expect("a value is removed");
    }
    assert_eq!(object.fill().await.expect("there is room again"), length);
    assert_eq!(mark(&session).await, 5);
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coroutines_that_wake_each_other_for_ever_use_up_their_budget() {
    let (cluster, mut bystander, session, class) = start().await;
    let other = cluster.session().await;
    let call =
        |session, method| class.call(session, "one", method, vec![]).without_deadline().send();
    let back = call(&other, "wake_back");
    let client = cluster.client().await;
    wait::until("that the first waits", || async {
        let shown = client.show_object("Hostile", "one", 1).await;
        shown.is_ok_and(|object| object.summary.waiters == 1)
    })
    .await;
    let forever = call(&session, "wake_forever");
    let first = wait::bounded("the end of one of them", async {
        tokio::select! { end = forever => end, end = back => end }
    });
    let failure = first.await.expect_err("it used up its budget");
    assert_eq!(failure.code(), "trap-step-budget", "{failure}");
    bystander.check().await;
    // The other one was dropped, which cancels it, should it still wait.
    wait::until("that nobody waits", || async {
        let shown = client.show_object("Hostile", "one", 1).await;
        shown.is_ok_and(|object| object.summary.waiters == 0)
    })
    .await;
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_do_more_than_read_are_stopped() {
    let (cluster, mut bystander, session, class) = start().await;
    let methods = [
        ("block_in_read", "trap-forbidden", "block in a read"),
        ("write_in_read", "trap-forbidden", "write in a read"),
        ("draw_in_read", "trap-forbidden", "draw"),
        ("spin_in_read", "trap-out-of-fuel", "fuel"),
        ("panic_in_read", "trap-panicked", "src/lib.rs:"),
    ];
    for index in cluster.indices() {
        let near = cluster.session_of(index).await;
        for (method, code, part) in methods {
            let failure = failure_of_read(class.read(&near, "one", method, vec![])).await;
            assert_eq!(failure.code(), code, "{method}: {failure}");
            let message = &trap(&failure).message;
            assert!(message.contains(part), "{method}: {message}");
        }
        bystander.check().await;
    }
    assert_eq!(mark(&session).await, 5);
    bystander.finish(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_up_that_fails_is_undone_and_the_call_says_so() {
    let (cluster, mut bystander, session, class) = start().await;
    for method in ["panic_in_cleanup", "spin_in_cleanup"] {
        let call = class.call(&session, "one", method, vec![]);
        let failure = failure_of(call.deadline(Duration::from_millis(300))).await;
        let CallFailure::Failed(CallError::CleanupFailed { .. }, _) = &failure else {
            panic!("{method}: {failure}")
        };
        assert_eq!(failure.code(), "cleanup-failed");
        assert_eq!(mark(&session).await, 5, "{method} is undone");
        bystander.check().await;
    }
    class.call(&session, "one", "arm", vec![]).await.expect("a timer is made");
    let left: Bytes =
        class.call(&session, "one", "leave_mark", arguments((7_u64,))).await.expect("it goes on");
    assert_eq!(from_bytes::<u64>(&left).expect("a mark"), 7);
    bystander.finish(&cluster).await;
}
