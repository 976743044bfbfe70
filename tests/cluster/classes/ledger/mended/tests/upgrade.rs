//! How an author tests an upgrade: the version before is a dependency for tests.

use gesmas_ledger_first as first;
use gesmas_ledger_mended as mended;
use gesmas_testkit::{Class, Ended, Replace, World, call};

/// Where the crates of the versions are.
const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn before() -> Class {
    Class::of_crate(first::Ledger::native(), format!("{FOLDER}/../first"))
}

fn after() -> Class {
    Class::of_crate(mended::Ledger::native(), FOLDER)
}

fn a_sum_is_brought_along(world: &mut World) {
    let client = world.client();
    let old = first::LedgerStub::new(client.clone(), "one");
    let new = mended::LedgerStub::new(client, "one");
    assert_eq!(world.run(call!(old.add(7))).as_deref(), Ok("first: 7"));
    world.replace(&after(), Replace::default()).expect("nothing is in its way");
    assert_eq!(world.run(call!(new.add(1))).as_deref(), Ok("mended: 8"));
    world.restart();
    assert_eq!(world.run(call!(new.add(1))).as_deref(), Ok("mended: 9"));
}

fn a_blocked_call_is_in_the_way_or_is_cancelled(world: &mut World) {
    let client = world.client();
    let old = first::LedgerStub::new(client.clone(), "one");
    let new = mended::LedgerStub::new(client, "one");
    let waiting = world.start(call!(old.wait_and_add(7)));
    let refused = world.replace(&after(), Replace::default()).expect_err("it is in the way");
    assert!(matches!(refused, Ended::Failed(_)), "{refused:?}");
    assert_eq!(world.blocked(), ["wait_and_add at open"], "and waits on");
    world.replace(&after(), Replace { cancel_pinned: true }).expect("it is cancelled");
    assert!(waiting.result().is_err(), "its caller is told");
    assert_eq!(world.run(call!(new.add(1))).as_deref(), Ok("mended: 1"));
}

// Each world begins with the version before.
gesmas_testkit::on_both_engines!(
    before(); a_sum_is_brought_along, a_blocked_call_is_in_the_way_or_is_cancelled
);
