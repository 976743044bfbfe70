//! A class is replaced in a real cluster: blocked calls, migration, and a leader that dies meanwhile.

use std::time::Duration;

use gesmas_abi::value::from_bytes;
use gesmas_client::{
    CallFailure, InvocationFilter, PendingCall, Session,
    protocol::{Bytes, CallError, CancelReason, Replace},
};
use gesmas_cluster_tests::{Class, Cluster, Ledger, arguments, wait};

/// Calls that are blocked when the class is replaced.
const BLOCKED: usize = 500;
/// How long a put may take: compilation by a majority, and an election on the way.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster with the first code.
async fn start() -> (Cluster, Session, Class) {
    let cluster = Cluster::start().await;
    let session = cluster.session().await;
    let first = Ledger::First.class();
    let put = session.put_class("Ledger", first.module.clone()).deadline(PATIENCE).await;
    put.expect("the class is loaded");
    (cluster, session, first)
}

fn text(result: Result<Bytes, CallFailure>) -> String {
    from_bytes(&result.expect("the call ends well")).expect("it returns a text")
}

async fn replace(
    session: &Session,
    ledger: Ledger,
    replace: Replace,
) -> Result<Bytes, CallFailure> {
    session.replace_class("Ledger", ledger.class().module, replace).deadline(PATIENCE).await
}

/// Blocks calls on an object and waits until all are.
async fn block(cluster: &Cluster, session: &Session, first: &Class) -> Vec<PendingCall> {
    let call = |_| first.call(session, "one", "wait_and_add", arguments((1_u32,)));
    let calls: Vec<_> = (0..BLOCKED).map(call).map(|call| call.deadline(PATIENCE).send()).collect();
    let client = cluster.client().await;
    wait::until("that all calls are blocked", || async {
        let filter = InvocationFilter { class: Some("Ledger".into()), ..Default::default() };
        let page = client.list_invocations(filter, 0, 1_000).await;
        page.is_ok_and(|page| page.items.len() == BLOCKED)
    })
    .await;
    calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_calls_end_in_their_code_although_the_leader_dies() {
    let (mut cluster, session, first) = start().await;
    let calls = block(&cluster, &session, &first).await;
    let (old, next) = (cluster.leader().await, Ledger::Next.class());
    let put = session.replace_class("Ledger", next.module.clone(), Replace::default());
    let put = put.deadline(PATIENCE).send();
    cluster.kill(old);
    wait::bounded("the replacement", put).await.expect("the class is replaced");
    cluster.restart(old);
    let detail = cluster.client_of(old).await.show_class("Ledger").await;
    // The replica that was away has compiled both before it serves.
    let pinned = detail.expect("it is loaded").pinned;
    assert!(pinned.len() <= 2, "{pinned:?}");
    let now = next.call(&session, "one", "add", arguments((0_u32,))).await;
    assert_eq!(text(now), "next: 0");
    let through = next.call(&session, "one", "let_through", arguments((BLOCKED as u64,)));
    through.await.expect("they are let through");
    let mut sums = Vec::new();
    for call in calls {
        sums.push(text(wait::bounded("a blocked call", call).await));
    }
    let expected: Vec<_> = (1..=BLOCKED).map(|sum| format!("first: {sum}")).collect();
    assert_eq!(sums, expected, "each in the first code, in order");
    let sum = next.read(&session, "one", "sum", Vec::new()).await;
    assert_eq!(text(sum), format!("next: {BLOCKED}"));
    cluster.caught_up(old).await;
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_layout_waits_or_cancels_and_a_failed_migration_is_mended() {
    let (mut cluster, session, first) = start().await;
    let calls = block(&cluster, &session, &first).await;
    for (object, sum) in [("good", 7_u32), ("bad", 13)] {
        let added = first.call(&session, object, "add", arguments((sum,))).await;
        assert_eq!(text(added), format!("first: {sum}"));
    }
    let refused = replace(&session, Ledger::Wide, Replace::default()).await;
    let refused = refused.expect_err("calls are blocked");
    assert_eq!(refused.code(), "class-pinned", "{refused}");
    let cancelling = Replace { cancel_pinned: true };
    let client = cluster.client().await;
    let module = Ledger::Wide.class().module;
    let trial = client.try_class("Ledger", module.into(), cancelling).await.expect("it is tried");
    assert_eq!((trial.refusal, trial.migrated, trial.more), (None, 2, false));
    let [(object, error)] = &trial.failures[..] else { panic!("{:?}", trial.failures) };
    assert_eq!(object, "Ledger/bad");
    assert!(error.contains("a sum of 13 cannot be migrated"), "{error}");

    replace(&session, Ledger::Wide, cancelling).await.expect("the class is replaced");
    for call in calls {
        let end = wait::bounded("a cancelled call", call).await.expect_err("it was in the way");
        let cancelled = CallError::Cancelled(CancelReason::Operator);
        assert_eq!(end, CallFailure::Failed(cancelled, None));
    }
    let wide = Ledger::Wide.class();
    // A read comes first: the migration is ordered for it.
    assert_eq!(text(wide.read(&session, "good", "sum", Vec::new()).await), "wide: 7");
    for attempt in 0..3 {
        if attempt == 2 {
            // Another leader finds the object as it was, and the migration fails there as well.
            let leader = cluster.leader().await;
            cluster.kill(leader);
            cluster.leader_other_than(leader).await;
            cluster.restart(leader);
        }
        let failed = wide.call(&session, "bad", "add", arguments((1_u32,))).await;
        let failed = failed.expect_err("it cannot be migrated");
        assert_eq!(failed.code(), "migrate-failed", "attempt {attempt}: {failed}");
        let failed = wide.read(&session, "bad", "sum", Vec::new()).await;
        assert_eq!(failed.expect_err("nor for a read").code(), "migrate-failed");
    }
    replace(&session, Ledger::Mended, Replace::default()).await.expect("it is mended");
    let mended = Ledger::Mended.class();
    assert_eq!(text(mended.call(&session, "bad", "add", arguments((1_u32,))).await), "mended: 14");
    assert_eq!(text(mended.read(&session, "good", "sum", Vec::new()).await), "mended: 7");
    let in_use = session.remove_class("Ledger").await.expect_err("it has objects");
    assert_eq!(in_use.code(), "class-in-use");
    for object in ["one", "good", "bad"] {
        session.remove_object("Ledger", object).await.expect("it is removed");
    }
    session.remove_class("Ledger").await.expect("nothing needs it");
    for index in cluster.indices() {
        let shown = cluster.client_of(index).await.show_class("Ledger").await;
        assert!(shown.is_err(), "it is gone");
    }
    cluster.assert_equal().await;
}
