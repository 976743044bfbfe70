//! Scenes of the kernel's own work for many objects or calls in one step: no class bounds it.

use super::{Scene, stage::Stage};

/// The scenes.
pub(super) const SCENES: &[Scene] = &[("Lock", many_locks), ("Queue", many_calls)];

fn many_locks(stage: &mut Stage) {
    const LOCKS: u64 = 10_000;
    let holder = stage.open();
    for lock in 0..LOCKS {
        let locked = stage.call_of(holder, &format!("lock-{lock}"), "lock", &(1_u64,));
        assert!(matches!(locked, Some(Ok(_))), "it is free");
    }
    stage
        .measure("(kernel) end of a session that holds 10,000 locks", |stage| stage.expire(holder));
}

fn many_calls(stage: &mut Stage) {
    stage.create(&(1_u32,));
    let sessions = stage.crowd(100_000, "consume", |_| ());
    stage.measure("(kernel) end of a session with 10,000 calls that wait", |stage| {
        stage.expire(sessions[0]);
    });
    stage.measure("(kernel) removal of an object with 90,000 calls that wait", Stage::remove);
}
