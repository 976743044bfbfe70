//! Kills: what is left of a machine is an image, and another goes on from it.
//!
//! Invariants: the other one has a new engine, so that nothing but the image survives; every call
//! that was suspended is rebuilt once, when it is resumed, and no other is.

use std::convert::Infallible;

use gesmas_machine::{
    CallError, Effect, InvocationView, Machine, Progress, SessionId, Settings, Snapshot,
};

use crate::{
    kind::Kind,
    run::{ALL, Kernel, Recorded, Run, apply, install},
    watched::Watched,
};

/// What kills did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    /// How many there were.
    pub kills: u64,
    /// Entries that were applied after them.
    pub entries: u64,
    /// Calls that were suspended in the images.
    pub suspended: u64,
    /// Of these, how many bodies were rebuilt.
    pub rebuilt: u64,
}

/// Kills a machine after each entry that leaves somebody suspended, and lets another run the rest.
pub fn kill_where_suspended<K: Kind>(kind: &K, run: &Run) -> Kills {
    let mut kills = Kills::default();
    for (applied, image) in images(kind, run).iter().enumerate() {
        let blocked = run.entries[..applied].last().map_or(0, |last| last.seen.work.blocked_now);
        if blocked > 0 {
            let _where = Where(format!("killed after {applied} entries"));
            let (suspended, rebuilt) = go_on(kind, run, applied, image);
            assert_eq!(suspended, blocked);
            kills.kills += 1;
            kills.entries += (run.entries.len() - applied) as u64;
            kills.suspended += suspended;
            kills.rebuilt += rebuilt;
        }
    }
    kills
}

/// Kills a machine after every entry of one run.
pub fn kill_after_every_entry<K: Kind>(kind: &K, run: &Run) -> Kills {
    let mut kills = Kills::default();
    let mut machine = Machine::new(Watched::new(kind.engine()), Settings::default());
    for (applied, recorded) in run.entries.iter().enumerate() {
        let _where = Where(format!("killed after every one of {applied} entries"));
        kills.suspended += machine.statistics().blocked_now;
        repeat(kind, &mut machine, recorded);
        kills.rebuilt += machine.statistics().rebuilt;
        kills.kills += 1;
        kills.entries += 1;
        machine = restore::<K>(kind, &written(&machine.snapshot()));
    }
    assert!(machine.encode_image() == run.image, "the state in the end differs");
    kills
}

/// Images of a run: before its first entry and after each. As in a replica, the machine has the whole
/// log before it and works in slices, and each is taken at the first moment that allows it.
fn images<K: Kind>(kind: &K, run: &Run) -> Vec<Vec<u8>> {
    let mut machine = Machine::new(Watched::new(kind.engine()), Settings::default());
    for recorded in &run.entries {
        machine.handle_entry(recorded.entry.clone()).expect("the engine is the group's");
    }
    let mut images = Vec::new();
    loop {
        machine.request_snapshot();
        let progress = machine.run(1);
        if let Some((snapshot, waiting)) = machine.poll_snapshot()
            && run.entries.len() - waiting == images.len()
        {
            if let Some(last) = run.entries[..images.len()].last() {
                assert_eq!(snapshot.state_hash(), last.seen.hash, "the image of the moment");
            }
            images.push(written(&snapshot));
        }
        match progress {
            Progress::More => {}
            Progress::Paused(code) => install(kind, &mut machine, code),
            Progress::Idle => break,
        }
    }
    assert_eq!(images.len(), run.entries.len() + 1, "no moment is left out");
    images
}

/// The bytes of a snapshot.
fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    let outcome: Result<(), Infallible> = snapshot.write(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    outcome.expect("memory takes everything");
    bytes
}

/// A machine of a process that has just started, from an image.
fn restore<K: Kind>(kind: &K, image: &[u8]) -> Kernel<K> {
    let snapshot = Snapshot::read(image).expect("an image of a machine is whole and sound");
    let machine =
        Machine::from_snapshot(snapshot, Watched::new(kind.engine()), Settings::default())
            .expect("the engine is the group's");
    machine.check_state().expect("the state is sound as it was read");
    machine
}

/// Runs the rest of a log from an image. Gives how many were suspended and how many were rebuilt.
fn go_on<K: Kind>(kind: &K, run: &Run, applied: usize, image: &[u8]) -> (u64, u64) {
    let mut machine = restore(kind, image);
    let suspended = machine.invocations(ALL);
    let rest = &run.entries[applied..];
    for (recorded, number) in rest.iter().zip(applied..) {
        let _where = Where(format!("entry {number}, from 0"));
        repeat(kind, &mut machine, recorded);
    }
    assert!(machine.encode_image() == run.image, "the state in the end differs");
    let (all, rebuilt) = (suspended.len() as u64, machine.statistics().rebuilt);
    assert_eq!(rebuilt, all - removed(&suspended, rest), "who was suspended is rebuilt, once");
    (all, rebuilt)
}

/// Of these calls, how many end with their object, without being resumed.
fn removed(suspended: &[InvocationView], rest: &[Recorded]) -> u64 {
    let ends_removed = |request: Option<(SessionId, u64)>| {
        let effects = rest.iter().flat_map(|recorded| &recorded.seen.effects);
        effects.into_iter().any(|effect| {
            matches!(effect, Effect::Reply { session, number, outcome, .. }
                if request == Some((*session, *number))
                    && *outcome == Err(CallError::ObjectRemoved))
        })
    };
    suspended.iter().filter(|view| ends_removed(view.request)).count() as u64
}

/// Applies an entry, and demands that it does what it did in the uninterrupted run.
fn repeat<K: Kind>(kind: &K, machine: &mut Kernel<K>, recorded: &Recorded) {
    let seen = apply(kind, machine, &recorded.entry);
    assert_eq!(seen, recorded.seen, "what comes of an entry differs from the uninterrupted run");
}

/// Says in a failure where it was: the innermost comes first.
struct Where(String);

impl Drop for Where {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}
