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

#[test]
fn continuing_begins_a_segment_with_an_empty_journal() {
    let mut lab = Lab::with_limits(&[PIECES], |limits| limits.journal_bytes = 40);
    let trace = lab.play(
        "
        open ann
        ann calls Pieces/x loop_with s 20
        ann calls Pieces/x vs s 19
        ann calls Pieces/x v s
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Pieces/x loop_with s 20
        > ann calls Pieces/x vs s 19
          ann#2 ok
        > ann calls Pieces/x v s
          ann#3 ok
          ann#1 ok done
        > ann calls Pieces/x loop_with s continue_badly
    "#]]
    .assert_eq(&trace);
}

const CONTINUE: &str = "
class Continue
init create 0
update to_nobody 0
  write before stands
  continue nobody
update to_read 0
  continue look before
update then_panic 0
  write before stands
  acquire s -> p
  continue panics
update panics 0
  write after undone
  panic at last
update again 0
  continue again
handler to_handler 0
  write handler ran
  return from the handler
update via_handler 0
  continue to_handler
update give 1
  V s $0
  return
read look 1
  read $0 -> x
  return $x
";

#[test]
fn a_continued_method_is_a_segment_of_its_own() {
    let mut lab = Lab::with_limits(&[CONTINUE], |limits| limits.segments_per_step = 9);
    let trace = lab.play(
        "
        open ann
        ann calls Continue/c to_nobody
        read ann Continue/c look before
        ann calls Continue/c to_read
        ann calls Continue/c give 1
        ann calls Continue/c then_panic
        read ann Continue/c look before
        read ann Continue/c look after
        ann calls Continue/c again
        ann calls Continue/c via_handler
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Continue/c to_nobody
          ann#1 error: the method failed: its class has no such handler or method: nobody
        > read ann Continue/c look before
          error: the object does not exist and its class needs arguments to create it
        > ann calls Continue/c to_read
          ann#2 error: the method failed: its class has no such handler or method: look
        > ann calls Continue/c give 1
          ann#3 ok
        > ann calls Continue/c then_panic
          ann#4 error: the method failed: it panicked: at last
        > read ann Continue/c look before
          ok stands
        > read ann Continue/c look after
          ok none
        > ann calls Continue/c again
          ann#5 error: the method failed: it used up its budget for one step: segments_per_step is 9
        > ann calls Continue/c via_handler
          ann#6 ok from the handler
    "#]]
    .assert_eq(&trace);
}

#[test]
fn fuel_is_bounded_for_a_segment_and_for_a_step() {
    const BURN: &str = "
class Burn
init create 0
update once 1
  write before undone
  burn $0
  return
update often 2
  burn $0
  V s
  P s
  burn $0
  add 1 18446744073709551615
  if $1 = 0 done
  continue often $0 $1
done:
  return done
read look 1
  burn $0
  return
";
    let mut lab = Lab::with_limits(&[BURN], |limits| {
        limits.fuel_per_segment = 100;
        limits.fuel_per_step = 250;
    });
    let trace = lab.play(
        "
        open ann
        ann calls Burn/b once 98
        ann calls Burn/b once 99
        ann calls Burn/b often 40 2
        ann calls Burn/b often 40 3
        read ann Burn/b look 99
        read ann Burn/b look 100
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Burn/b once 98
          ann#1 ok
        > ann calls Burn/b once 99
          ann#2 error: the method failed: it used up its fuel of 100 for one segment
        > ann calls Burn/b often 40 2
          ann#3 ok done
        > ann calls Burn/b often 40 3
          ann#4 error: the method failed: it used up its budget for one step: fuel_per_step is 250
        > read ann Burn/b look 99
          ok
        > read ann Burn/b look 100
          error: the method failed: it used up its fuel of 100 for one segment
    "#]]
    .assert_eq(&trace);
}
