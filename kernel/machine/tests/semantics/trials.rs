//! Replacements are tried: what a trial says, and that nothing of it stays.
//!
//! The laboratory tries on all machines, each in slices of its own (`try`), and demands that images,
//! hashes, counts and bodies are as before.

use expect_test::expect;

use crate::{
    check,
    lab::Lab,
    model::Dice,
    replacement::{ALL, compiled},
};

#[test]
fn a_trial_says_what_would_fail_and_leaves_no_trace() {
    check(
        &ALL,
        &format!(
            "
            open ann
            ann calls Door/a say; ann calls Door/b say
            try Door@2
            try Door@3
            try Door@4
            try Door@6
            try Door@3 within 1
            ann calls Door/b wait
            try Door@2
            try Door@3
            try Door@3 cancelling
            root replaces Door@3 cancelling
            {}
            try Door@2
            try Door@5
            ann calls Door/a say; ann calls Door/b say
            ",
            compiled(3),
        ),
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Door/a say; ann calls Door/b say
              ann#1 ok old
              ann#2 ok old
            > try Door@2
              tried: 2 migrated, failed: []
            > try Door@3
              tried: 2 migrated, failed: []
            > try Door@4
              tried: 0 migrated, failed: [(Door/a, "the object could not be migrated: it panicked: no way"), (Door/b, "the object could not be migrated: it panicked: no way")]
            > try Door@6
              tried: 2 migrated, failed: []
            > try Door@3 within 1
              tried: 1 migrated, failed: [], and there are more
            > ann calls Door/b wait
            > try Door@2
              tried: 2 migrated, failed: []
            > try Door@3
              would be refused: the new code of class Door has another layout of state, and calls are blocked in the old one: 1
            > try Door@3 cancelling
              tried: 2 migrated, failed: []
            > root replaces Door@3 cancelling
              compile Door
            > replica 1 compiled Door@3; replica 2 compiled Door@3
              ann#3 error: the call was cancelled: an operator ended it
              root#2 ok 32 bytes
            > try Door@2
              would be refused: the new code of class Door has no `migrate` from the layouts that objects have
            > try Door@5
              tried: 2 migrated, failed: []
            > ann calls Door/a say; ann calls Door/b say
              log of Door/a: migrated to 3 from old
              ann#4 ok third old
              log of Door/b: migrated to 3 from old
              ann#5 ok third old
        "#]],
    );
}

/// Calls that wait, own and hold, timers and watches.
const GATE: &str = "
class Gate
init create 0
  count free 1
update wait 1
  P $0 -> x
  if $x = cancelled gone
  return
gone:
  V free
  write left x
  after 5 ring -> id
  cancelled
update own 1
  acquire free
  P $0
update hold 0
  hold free -> x
  return $x
update alarm 1
  after $0 ring -> id
  return $id
update tell 1
  watch $0 ring -> id
  return
update open 1
  V $0
  return
handler ring 0
  V door
";

/// Its `migrate` changes all that a body can change besides its store.
const GATE_2: &str = "
class Gate version 2 layout 2
init create 0
  count free 1
migrate upgrade 0
  V gate
  V door 3
  V free
  acquire free -> a
  after 3 ring -> id
  watch 2 ring -> id2
  notify 2 migrated
  owners free -> held
  token -> t
  random -> r
  read left -> left
  write left $left.$t
  read fails -> fails
  if $fails = none good
  panic it fails
good:
  return
update wait 1
  P $0
  return second
update open 1
  V $0
  return
update fail 0
  write fails x
  return
handler ring 0
  V gate
";

/// Back to the first layout, by other code.
const GATE_3: &str = "
class Gate version 3 layout 1
init create 0
  count free 1
migrate downgrade 0
  V door
  write back x
update wait 1
  P $0
  return third
update open 1
  V $0
  return
handler ring 0
  V gate
";

#[test]
fn a_trial_of_a_migration_that_gives_permits_cancels_those_in_its_way_first() {
    check(
        &[GATE, GATE_2, GATE_3],
        &format!(
            "
            open ann
            ann calls Gate/g wait door; ann calls Gate/g own door; ann calls Gate/g wait gate
            try Gate@2
            try Gate@2 cancelling
            ann calls Gate/g open door
            try Gate@2 cancelling
            root replaces Gate@2 cancelling
            {0}
            ann calls Gate/g wait door; ann calls Gate/g wait none
            try Gate@3 cancelling
            ann cancels 6
            +10 tick
            ",
            "replica 1 compiled Gate@2; replica 2 compiled Gate@2"
        ),
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Gate/g wait door; ann calls Gate/g own door; ann calls Gate/g wait gate
            > try Gate@2
              would be refused: the new code of class Gate has another layout of state, and calls are blocked in the old one: 3
            > try Gate@2 cancelling
              tried: 1 migrated, failed: []
            > ann calls Gate/g open door
              ann#4 ok
              ann#1 ok
            > try Gate@2 cancelling
              tried: 1 migrated, failed: []
            > root replaces Gate@2 cancelling
              compile Gate
            > replica 1 compiled Gate@2; replica 2 compiled Gate@2
              ann#2 error: the call was cancelled: an operator ended it
              ann#3 error: the call was cancelled: an operator ended it
              root#2 ok 32 bytes
            > ann calls Gate/g wait door; ann calls Gate/g wait none
              ann event 1: migrated
              ann#5 ok second
            > try Gate@3 cancelling
              tried: 1 migrated, failed: []
            > ann cancels 6
              ann#6 error: the call was cancelled: its caller gave it up
            > +10 tick
        "#]],
    );
}

#[test]
fn whatever_a_migration_does_its_trial_leaves_no_trace() {
    let versions = ["Gate@2", "Gate@3"];
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let mut lab = Lab::new(&[GATE, GATE_2, GATE_3]);
        lab.play("open ann\nopen bob");
        let (mut calls, mut tried, mut replaced) = (0, 0, 0);
        for _ in 0..120 {
            let gate = dice.pick(&["gate", "door"]);
            let object = dice.pick(&["Gate/a", "Gate/b", "Gate/c"]);
            calls += 1;
            let call = match dice.below(10) {
                0..=3 => format!("wait {gate}"),
                4 => format!("own {gate}"),
                5 => "hold".into(),
                6 => format!("alarm {}", dice.below(20)),
                7 => format!("tell {}", 2 + dice.below(2)),
                8 => "fail".into(),
                _ => format!("open {gate}"),
            };
            lab.play(&format!("ann calls {object} {call}"));
            if dice.below(6) == 0 {
                lab.play(&format!("ann cancels {}", 1 + dice.below(calls)));
            }
            lab.play(&format!("+{} tick", 1 + dice.below(4)));
            let version = dice.pick(&versions);
            let how = dice.pick(&["", " cancelling"]);
            let within = dice.pick(&["", "", " within 30"]);
            let trace = lab.play(&format!("try {version}{how}{within}"));
            tried += u64::from(trace.contains("tried:"));
            if dice.below(8) == 0 {
                lab.play(&format!("root replaces {version}{how}"));
                let code = format!("compiled {version}");
                let trace = lab.play(&format!("replica 1 {code}; replica 2 {code}"));
                replaced += u64::from(trace.contains("ok"));
            }
            lab.take_trace();
        }
        assert!(tried > 20 && replaced > 0, "seed {seed}: {tried} tried, {replaced} replaced");
    }
}

#[test]
fn code_that_comes_back_meets_no_object_of_a_later_layout() {
    check(
        &ALL,
        &format!(
            "
            open ann
            ann calls Door/old say
            root replaces Door@3
            {}
            ann calls Door/third say
            root replaces Door@5
            {}
            try Door@3
            root replaces Door@3
            {}
            ann calls Door/third say
            ann calls Door/old say
            root replaces Door@5
            {}
            ann calls Door/old say
            ann calls Door/third say
            try Door@3
            root replaces Door@3
            ",
            compiled(3),
            compiled(5),
            compiled(3),
            compiled(5),
        ),
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Door/old say
              ann#1 ok old
            > root replaces Door@3
              compile Door
            > replica 1 compiled Door@3; replica 2 compiled Door@3
              root#2 ok 32 bytes
            > ann calls Door/third say
              ann#2 ok third new
            > root replaces Door@5
              compile Door
            > replica 1 compiled Door@5; replica 2 compiled Door@5
              root#3 ok 32 bytes
            > try Door@3
              tried: 2 migrated, failed: []
            > root replaces Door@3
              compile Door
            > replica 1 compiled Door@3; replica 2 compiled Door@3
              root#4 ok 32 bytes
            > ann calls Door/third say
              ann#3 ok third new
            > ann calls Door/old say
              log of Door/old: migrated to 3 from old
              ann#4 ok third old
            > root replaces Door@5
              compile Door
            > replica 1 compiled Door@5; replica 2 compiled Door@5
              root#5 ok 32 bytes
            > ann calls Door/old say
              log of Door/old: migrated to 4 from old
              ann#5 ok fifth old
            > ann calls Door/third say
              log of Door/third: migrated to 4 from new
              ann#6 ok fifth new
            > try Door@3
              would be refused: the new code of class Door has no `migrate` from the layouts that objects have
            > root replaces Door@3
              root#6 error: the new code of class Door has no `migrate` from the layouts that objects have
        "#]],
    );
}
