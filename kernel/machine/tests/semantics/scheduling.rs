//! Algorithm 1 of the paper, and P and V: who runs, in which order.

use expect_test::expect;
use gesmas_machine::{Ballot, Batch, Effect, LogEntry, Time};

use crate::{
    check,
    lab::Lab,
    standard::{BARRIER, PIECES},
};

#[test]
fn nobody_barges_past_a_waiter_that_has_the_permit() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        ann calls Pieces/x p s
        bob calls Pieces/x v_then_p s
        ann calls Pieces/x v s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Pieces/x p s
            > bob calls Pieces/x v_then_p s
              ann#1 ok passed
            > ann calls Pieces/x v s
              ann#2 ok
              bob#1 ok passed
        "#]],
    );
}

#[test]
fn the_ready_list_is_drained_before_the_next_command_of_a_batch() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        open eve
        ann calls Pieces/x p s; bob calls Pieces/x p s; eve calls Pieces/x vs s 2; eve calls Pieces/x try s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > ann calls Pieces/x p s; bob calls Pieces/x p s; eve calls Pieces/x vs s 2; eve calls Pieces/x try s
              eve#1 ok
              ann#1 ok passed
              bob#1 ok passed
              eve#2 ok would-block
        "#]],
    );
}

const CHAIN: &str = "
class Chain
init create 0
update link 2
  P $0
  V $1
  return $0 to $1
update start 1
  V $0
  return started
update forever 2
again:
  V $0
  P $1
  goto again
update give 2
  V $0 $1
  return
";

#[test]
fn a_woken_coroutine_wakes_the_next_and_each_runs_to_its_end_first() {
    check(
        &[CHAIN],
        "
        open ann
        ann calls Chain/c link b c; ann calls Chain/c link a b; ann calls Chain/c link c d
        ann calls Chain/c start a
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Chain/c link b c; ann calls Chain/c link a b; ann calls Chain/c link c d
            > ann calls Chain/c start a
              ann#4 ok started
              ann#2 ok a to b
              ann#1 ok b to c
              ann#3 ok c to d
        "#]],
    );
}

#[test]
fn coroutines_that_wake_each_other_for_ever_end() {
    let mut lab = Lab::with_limits(&[CHAIN], |limits| limits.segments_per_step = 5);
    let trace = lab.play(
        "
        open ann
        open bob
        ann calls Chain/c forever ping pong
        bob calls Chain/c forever pong ping
        ann calls Chain/c give ping 0
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > open bob
          bob is session 3
        > ann calls Chain/c forever ping pong
        > bob calls Chain/c forever pong ping
          bob#1 error: the method failed: it used up its budget for one step: segments_per_step is 5
        > ann calls Chain/c give ping 0
          ann#2 ok
    "#]]
    .assert_eq(&trace);
    assert!(lab.machine().invocations(10).len() <= 1, "the one that still waits waits for ever");
}

#[test]
fn a_barrier_lets_all_go_in_order() {
    check(
        &[BARRIER],
        "
        open ann
        open bob
        open eve
        ann calls Barrier/b arrive 3
        bob calls Barrier/b arrive 3
        read bob Barrier/b here
        bob cancels 1
        read bob Barrier/b here
        bob calls Barrier/b arrive 3
        eve calls Barrier/b arrive 3
        read eve Barrier/b here
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > ann calls Barrier/b arrive 3
            > bob calls Barrier/b arrive 3
            > read bob Barrier/b here
              ok 2
            > bob cancels 1
              bob#1 error: the call was cancelled: its caller gave it up
            > read bob Barrier/b here
              ok 1
            > bob calls Barrier/b arrive 3
            > eve calls Barrier/b arrive 3
              eve#1 ok last
              ann#1 ok passed
              bob#2 ok passed
            > read eve Barrier/b here
              ok none
        "#]],
    );
}

#[test]
fn a_batch_of_another_ballot_is_void() {
    let mut lab = Lab::new(&[PIECES]);
    lab.play("open ann");
    let (hash, step) = (lab.machine().state_hash(), lab.machine().step());
    let stale = Ballot { number: 0, ..lab.ballot };
    let batch = Batch { ballot: stale, stamp: Time(1_000_000), commands: Vec::new() };
    assert_eq!(lab.apply(&LogEntry::Batch(batch)), [Effect::BatchVoid]);
    assert_eq!((hash, step), (lab.machine().state_hash(), lab.machine().step()));
}

#[test]
fn a_stopped_leader_that_continues_is_void_and_time_never_goes_back() {
    let mut lab = Lab::new(&[PIECES]);
    lab.play("open ann");
    let old = lab.ballot;
    let new = Ballot { number: 2, replica: 2, ..old };
    lab.apply(&LogEntry::LeaderStart { ballot: new, now: Time(5_000) });
    assert_eq!(lab.machine().now(), Time(5_000));
    assert_eq!(lab.batch(Time(6_000), Vec::new()), [Effect::BatchVoid]);
    assert_eq!(lab.machine().now(), Time(5_000));
    lab.apply(&LogEntry::LeaderStart { ballot: old, now: Time(9_000) });
    assert_eq!((lab.machine().ballot(), lab.machine().now()), (new, Time(5_000)));
    let newest = Ballot { number: 3, ..new };
    lab.apply(&LogEntry::LeaderStart { ballot: newest, now: Time(2_000) });
    assert_eq!((lab.machine().ballot(), lab.machine().now()), (newest, Time(5_000)));
    lab.ballot = newest;
    lab.batch(Time(10), Vec::new());
    assert_eq!(lab.machine().now(), Time(5_001), "a stamp that is late still moves time on");
}

#[test]
fn the_end_of_time_is_reached_once() {
    let mut lab = Lab::new(&[PIECES]);
    lab.play(
        "open ann\nann within 18446744073709551615 calls Pieces/x p_for s 18446744073709551615",
    );
    assert_eq!(lab.machine().next_due(), Some(Time(u64::MAX)));
    lab.batch(Time(u64::MAX - 1), Vec::new());
    assert_eq!(lab.machine().invocations(1).len(), 1);
    lab.batch(Time(u64::MAX), Vec::new());
    lab.batch(Time(0), Vec::new());
    assert_eq!((lab.machine().now(), lab.machine().invocations(1).len()), (Time(u64::MAX), 0));
}
