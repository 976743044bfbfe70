//! Who ends a blocked call, and what it may still do.

use expect_test::expect;

use crate::{
    check,
    lab::Lab,
    standard::{LOCK, PIECES},
};

#[test]
fn a_call_is_cancelled_by_deadline_caller_session_and_operator() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        open eve
        open zoe
        ann within 10 calls Pieces/x p s
        bob calls Pieces/x p s
        eve calls Pieces/x p s
        zoe calls Pieces/x p s
        bob calls Pieces/x count s
        +9 tick
        +1 tick
        bob cancels 1
        expire eve
        bob kills 4
        bob kills 4
        bob calls Pieces/x count s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > open zoe
              zoe is session 5
            > ann within 10 calls Pieces/x p s
            > bob calls Pieces/x p s
            > eve calls Pieces/x p s
            > zoe calls Pieces/x p s
            > bob calls Pieces/x count s
              bob#2 ok 0 free, 4 waiting
            > +9 tick
              ann#1 error: the call was cancelled: its deadline passed
            > +1 tick
            > bob cancels 1
              bob#1 error: the call was cancelled: its caller gave it up
            > expire eve
              eve is expired
            > bob kills 4
              zoe#1 error: the call was cancelled: an operator ended it
              bob#3 ok
            > bob kills 4
              bob#4 error: no invocation with this number is open
            > bob calls Pieces/x count s
              bob#5 ok 0 free, 0 waiting
        "#]],
    );
}

#[test]
fn a_clean_up_may_write_and_p_but_not_wait() {
    check(
        &[PIECES],
        "
        open ann
        ann calls Pieces/x cleanup_p s t
        ann cancels 1
        ann calls Pieces/x look cleanup
        ann calls Pieces/x v t
        ann calls Pieces/x cleanup_p s t
        ann cancels 4
        ann calls Pieces/x look cleanup
        ann calls Pieces/x count s
        ann calls Pieces/x count t
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Pieces/x cleanup_p s t
            > ann cancels 1
              ann#1 error: the call was cancelled: its caller gave it up
            > ann calls Pieces/x look cleanup
              ann#2 ok cancelled
            > ann calls Pieces/x v t
              ann#3 ok
            > ann calls Pieces/x cleanup_p s t
            > ann cancels 4
              ann#4 error: the call was cancelled: its caller gave it up
            > ann calls Pieces/x look cleanup
              ann#5 ok granted
            > ann calls Pieces/x count s
              ann#6 ok 0 free, 0 waiting
            > ann calls Pieces/x count t
              ann#7 ok 0 free, 0 waiting
        "#]],
    );
}

#[test]
fn a_clean_up_that_fails_is_undone() {
    check(
        &[PIECES],
        "
        open ann
        ann calls Pieces/x cleanup_panic s
        ann cancels 1
        ann calls Pieces/x look cleanup
        ann calls Pieces/x count other
        ann calls Pieces/x cleanup_fuel s
        ann cancels 4
        ann calls Pieces/x cleanup_swallow s
        ann cancels 5
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Pieces/x cleanup_panic s
            > ann cancels 1
              ann#1 error: the call was cancelled (its caller gave it up) and its clean-up failed: it panicked: in the clean-up
            > ann calls Pieces/x look cleanup
              ann#2 ok none
            > ann calls Pieces/x count other
              ann#3 ok 0 free, 0 waiting
            > ann calls Pieces/x cleanup_fuel s
            > ann cancels 4
              ann#4 error: the call was cancelled (its caller gave it up) and its clean-up failed: it used up its budget for one step: fuel_per_cleanup is 10000000
            > ann calls Pieces/x cleanup_swallow s
            > ann cancels 5
              ann#5 ok cancelled anyway
        "#]],
    );
}

#[test]
fn a_clean_up_has_fuel_and_journal_of_its_own() {
    let mut lab = Lab::with_limits(&[PIECES], |limits| {
        limits.journal_bytes = 9;
        limits.fuel_per_cleanup = 5;
    });
    let trace = lab.play(
        "
        open ann
        ann calls Pieces/x cleanup_p s t
        ann cancels 1
        ann calls Pieces/x cleanup_fuel s
        ann cancels 2
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Pieces/x cleanup_p s t
        > ann cancels 1
          ann#1 error: the call was cancelled: its caller gave it up
        > ann calls Pieces/x cleanup_fuel s
        > ann cancels 2
          ann#2 error: the call was cancelled (its caller gave it up) and its clean-up failed: it used up its budget for one step: fuel_per_cleanup is 5
    "#]].assert_eq(&trace);
}

#[test]
fn a_detached_call_ignores_deadline_caller_and_session() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        ann within 10 calls Pieces/x p_detached s
        +50 tick
        ann cancels 1
        expire ann
        bob calls Pieces/x count s
        bob calls Pieces/x look detached
        bob calls Pieces/x v s
        bob calls Pieces/x look detached
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann within 10 calls Pieces/x p_detached s
            > +50 tick
            > ann cancels 1
            > expire ann
              ann is expired
            > bob calls Pieces/x count s
              bob#1 ok 0 free, 1 waiting
            > bob calls Pieces/x look detached
              bob#2 ok none
            > bob calls Pieces/x v s
              bob#3 ok
            > bob calls Pieces/x look detached
              bob#4 ok ran
        "#]],
    );
}

#[test]
fn an_operator_ends_a_detached_call_too() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        ann calls Pieces/x p_detached s
        bob kills 1
        bob calls Pieces/x look detached
        bob kills 99
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Pieces/x p_detached s
            > bob kills 1
              ann#1 error: the call was cancelled: an operator ended it
              bob#1 ok
            > bob calls Pieces/x look detached
              bob#2 ok none
            > bob kills 99
              bob#3 error: no invocation with this number is open
        "#]],
    );
}

#[test]
fn a_cancelled_waiter_leaves_the_order_of_the_others() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        open eve
        open zoe
        ann calls Pieces/x p s
        bob calls Pieces/x p s
        eve calls Pieces/x p s
        bob cancels 1
        zoe calls Pieces/x vs s 3
        zoe calls Pieces/x count s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > open zoe
              zoe is session 5
            > ann calls Pieces/x p s
            > bob calls Pieces/x p s
            > eve calls Pieces/x p s
            > bob cancels 1
              bob#1 error: the call was cancelled: its caller gave it up
            > zoe calls Pieces/x vs s 3
              zoe#1 ok
              ann#1 ok passed
              eve#1 ok passed
            > zoe calls Pieces/x count s
              zoe#2 ok 1 free, 0 waiting
        "#]],
    );
}

#[test]
fn what_a_cancelled_call_owned_goes_to_the_next() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        bob calls Pieces/x v a
        ann calls Pieces/x own_then_wait a b
        bob calls Pieces/x p a
        ann cancels 1
        bob calls Pieces/x count a
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > bob calls Pieces/x v a
              bob#1 ok
            > ann calls Pieces/x own_then_wait a b
            > bob calls Pieces/x p a
            > ann cancels 1
              ann#1 error: the call was cancelled: its caller gave it up
              bob#2 ok passed
            > bob calls Pieces/x count a
              bob#3 ok 0 free, 0 waiting
        "#]],
    );
}

#[test]
fn a_timed_wait_of_a_session_permit() {
    check(
        &[LOCK],
        "
        open ann
        open bob
        ann calls Lock/l take
        bob calls Lock/l take_for 10
        +10 tick
        bob calls Lock/l take_for 10
        ann calls Lock/l give 1
        bob calls Lock/l owners
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Lock/l take
              ann#1 ok 1 token 1
            > bob calls Lock/l take_for 10
            > +10 tick
              bob#1 ok timed-out
            > bob calls Lock/l take_for 10
            > ann calls Lock/l give 1
              ann#2 ok true
              bob#2 ok 2
            > bob calls Lock/l owners
              bob#3 ok session 3
        "#]],
    );
}

/// The clean-up of a call of a session that is over gives back that session's own permit, cancels
/// its watch, and then panics: the undo must bring back what belongs to a session that is gone.
#[test]
fn the_clean_up_of_an_expired_session_may_touch_its_permits_and_watches_and_fail() {
    const TANGLE: &str = "
class Tangle
init create 0
  count lock 1
update tangle 1
  session -> me
  hold lock -> permit
  watch $me over $0 -> watch
  P never -> got
  cancel $watch -> had
  release $permit -> gave
  write cleaned $had $gave
  if $0 = panic fail
  cancelled
fail:
  panic in the clean-up
update want 0
  P lock
  return has it
update look 1
  read $0 -> x
  return $x
handler over 1
  write over $0
";
    for end in ["panic", "orderly"] {
        let trace = Lab::new(&[TANGLE]).play(&format!(
            "
            open ann
            open bob
            ann calls Tangle/t tangle {end}
            bob calls Tangle/t want
            expire ann
            bob calls Tangle/t look cleaned
            bob calls Tangle/t look over
            "
        ));
        if end == "panic" {
            expect![[r#"
                > open ann
                  ann is session 2
                > open bob
                  bob is session 3
                > ann calls Tangle/t tangle panic
                > bob calls Tangle/t want
                > expire ann
                  ann is expired
                  bob#1 ok has it
                > bob calls Tangle/t look cleaned
                  bob#2 ok none
                > bob calls Tangle/t look over
                  bob#3 ok panic
            "#]]
            .assert_eq(&trace);
        } else {
            expect![[r#"
                > open ann
                  ann is session 2
                > open bob
                  bob is session 3
                > ann calls Tangle/t tangle orderly
                > bob calls Tangle/t want
                > expire ann
                  ann is expired
                  bob#1 ok has it
                > bob calls Tangle/t look cleaned
                  bob#2 ok true true
                > bob calls Tangle/t look over
                  bob#3 ok none
            "#]]
            .assert_eq(&trace);
        }
    }
}
