//! Segments stand or fall as a whole.

use expect_test::expect;

use crate::{
    check,
    lab::Lab,
    standard::{LIFE, PIECES},
};

/// Methods that change all that a segment can change, and then end as they are told.
const UNDO: &str = "
class Undo
init create 0
  count free 5
  write kept value
update prepare 0
  push items one
  insert map a 1
  acquire free -> p
  P never
  return
update wait 1
  P $0
  return woken
update wait_for 1
  P $0 for 1000
  return woken
update plain 0
  panic same
update without_ids 1
  write kept other
  write more $
  remove kept -> x
  push items two
  pop items -> x
  popback items -> x
  pushfront items three
  insert map a 2
  insert map b 3
  delete map a -> x
  V filled
  V timed
  V fresh 7
  try free -> x
  notify $0 hello
  notify $0 again
  notify $0 and again
  panic same
update with_ids 2
  hold free -> permit
  acquire free -> x
  release $permit -> x
  release $1 -> x
  after 7 ring -> alarm
  cancel $alarm -> x
  after 9 ring -> x
  watch $0 ring -> x
  watch 99999 ring -> x
  token -> x
  V filled 2
  write more $
  panic same
update owned 0
  hold free -> permit
  return $permit
update timer 0
  after 500 ring -> id
  watch 3 ring -> watch
  return $id $watch
update disarm 2
  cancel $0 -> a
  cancel $1 -> b
  V filled
  panic same
handler ring 0
  write rang it
";

/// Two laboratories with equal histories.
fn twins(prepare: &str) -> (Lab, Lab) {
    let (mut one, mut other) = (Lab::new(&[UNDO]), Lab::new(&[UNDO]));
    one.play(prepare);
    other.play(prepare);
    assert_eq!(one.machine().state_hash(), other.machine().state_hash());
    (one, other)
}

const PREPARE: &str = "
    open ann
    open bob
    open eve
    ann calls Undo/u prepare
    ann calls Undo/u wait filled
    bob calls Undo/u wait filled
    eve calls Undo/u wait_for timed
    bob calls Undo/u owned
    eve calls Undo/u timer
";

#[test]
fn undone_is_as_if_never_done_to_the_last_byte() {
    let (mut one, mut other) = twins(PREPARE);
    let trace = one.play("bob calls Undo/u without_ids 3");
    let same = other.play("bob calls Undo/u plain");
    assert_eq!(trace.lines().last(), same.lines().last());
    assert!(trace.contains("it panicked: same"), "{trace}");
    assert_eq!(one.machine().encode_image(), other.machine().encode_image());
    assert_eq!(one.machine().state_hash(), other.machine().state_hash());
}

#[test]
fn undone_permits_timers_and_watches_are_as_if_never_made() {
    for segment in ["bob calls Undo/u with_ids 3 2", "bob calls Undo/u disarm 2 3"] {
        let (mut one, mut other) = twins(PREPARE);
        let trace = one.play(segment);
        let same = other.play("bob calls Undo/u plain");
        assert_eq!(trace.lines().last(), same.lines().last(), "{trace}");
        assert_eq!(one.machine().total(), other.machine().total(), "{segment}");
        assert_eq!(one.machine().next_due(), other.machine().next_due());
        // What comes next is the same, too: who waits, in which order, and what goes off when.
        let rest = "
            expire eve
            +600 tick
            bob calls Undo/u wait free
            bob calls Undo/u wait free
        ";
        assert_eq!(one.play(rest), other.play(rest), "{segment}");
    }
}

#[test]
fn the_number_of_an_undone_token_is_not_given_again() {
    check(
        &[LIFE],
        "
        open ann
        ann calls Life/l token
        ann calls Life/l token_then_abort
        ann calls Life/l token
        ann calls Life/l random
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Life/l token
              ann#1 ok 1
            > ann calls Life/l token_then_abort
              ann#2 aborted: 2
            > ann calls Life/l token
              ann#3 ok 3
            > ann calls Life/l random
              ann#4 ok differ
        "#]],
    );
}

#[test]
fn an_error_of_the_class_commits_and_an_abort_undoes() {
    check(
        &[PIECES],
        "
        open ann
        ann calls Pieces/x vs s 2
        ann calls Pieces/x wait_then_fail s
        ann calls Pieces/x look kept
        ann calls Pieces/x wait_then_abort s
        ann calls Pieces/x look undone
        ann calls Pieces/x count s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Pieces/x vs s 2
              ann#1 ok
            > ann calls Pieces/x wait_then_fail s
              ann#2 failed: no luck
            > ann calls Pieces/x look kept
              ann#3 ok by fail
            > ann calls Pieces/x wait_then_abort s
              ann#4 aborted: no luck
            > ann calls Pieces/x look undone
              ann#5 ok none
            > ann calls Pieces/x count s
              ann#6 ok 1 free, 0 waiting
        "#]],
    );
}

#[test]
fn the_permit_that_resumed_an_undone_segment_goes_to_the_next() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        open eve
        ann calls Pieces/x p_then_panic s
        bob calls Pieces/x p_then_panic s
        eve calls Pieces/x p s
        ann calls Pieces/x v s
        ann calls Pieces/x look seen
        ann calls Pieces/x count s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > ann calls Pieces/x p_then_panic s
            > bob calls Pieces/x p_then_panic s
            > eve calls Pieces/x p s
            > ann calls Pieces/x v s
              ann#2 ok
              ann#1 error: the method failed: it panicked: after P
              bob#1 error: the method failed: it panicked: after P
              eve#1 ok passed
            > ann calls Pieces/x look seen
              ann#3 ok none
            > ann calls Pieces/x count s
              ann#4 ok 0 free, 0 waiting
        "#]],
    );
}

#[test]
fn a_v_that_is_undone_wakes_nobody() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        ann calls Pieces/x p s
        bob calls Pieces/x v_then_panic s
        bob calls Pieces/x count s
        bob calls Pieces/x v_then_panic other
        bob calls Pieces/x count other
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Pieces/x p s
            > bob calls Pieces/x v_then_panic s
              bob#1 error: the method failed: it panicked: after V
            > bob calls Pieces/x count s
              bob#2 ok 0 free, 1 waiting
            > bob calls Pieces/x v_then_panic other
              bob#3 error: the method failed: it panicked: after V
            > bob calls Pieces/x count other
              bob#4 ok 0 free, 0 waiting
        "#]],
    );
}

const OWNERS: &str = "
class Owners
init create 0
  count a 1
  count b 1
update both 0
  acquire a -> one
  acquire b -> two
  P go
  return ended
update both_panic 0
  acquire a -> one
  acquire b -> two
  P go
  panic after go
update want 1
  P $0
  return has $0
update go 0
  V go
  return
update release_one 0
  acquire a -> one
  release $one -> first
  release $one -> second
  value a -> n
  return $first $second $n
update give_other 1
  release $0 -> had
  return $had
";

#[test]
fn permits_of_an_invocation_are_released_newest_first() {
    for method in ["both", "both_panic"] {
        check(
            &[OWNERS],
            &format!(
                "
                open ann
                open bob
                open eve
                ann calls Owners/o {method}
                bob calls Owners/o want a
                eve calls Owners/o want b
                eve calls Owners/o go
                "
            ),
            if method == "both" { &BOTH } else { &BOTH_PANIC },
        );
    }
}

const BOTH: expect_test::Expect = expect![[r#"
    > open ann
      ann is session 2
    > open bob
      bob is session 3
    > open eve
      eve is session 4
    > ann calls Owners/o both
    > bob calls Owners/o want a
    > eve calls Owners/o want b
    > eve calls Owners/o go
      eve#2 ok
      ann#1 ok ended
      eve#1 ok has b
      bob#1 ok has a
"#]];
const BOTH_PANIC: expect_test::Expect = expect![[r#"
    > open ann
      ann is session 2
    > open bob
      bob is session 3
    > open eve
      eve is session 4
    > ann calls Owners/o both_panic
    > bob calls Owners/o want a
    > eve calls Owners/o want b
    > eve calls Owners/o go
      eve#2 ok
      ann#1 error: the method failed: it panicked: after go
      eve#1 ok has b
      bob#1 ok has a
"#]];

#[test]
fn a_permit_is_released_once() {
    check(
        &[OWNERS],
        "
        open ann
        ann calls Owners/o release_one
        ann calls Owners/o both
        ann calls Owners/o give_other 2
        ann calls Owners/o give_other 2
        ann calls Owners/o give_other 77
        ann calls Owners/o want a
        ann calls Owners/o go
        ann calls Owners/o want a
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Owners/o release_one
              ann#1 ok true false 1
            > ann calls Owners/o both
            > ann calls Owners/o give_other 2
              ann#3 ok true
            > ann calls Owners/o give_other 2
              ann#4 ok false
            > ann calls Owners/o give_other 77
              ann#5 ok false
            > ann calls Owners/o want a
              ann#6 ok has a
            > ann calls Owners/o go
              ann#7 ok
              ann#2 ok ended
            > ann calls Owners/o want a
        "#]],
    );
}
