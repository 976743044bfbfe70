//! Ordered time: deadlines, timed waits, timers.

use expect_test::expect;
use gesmas_machine::{Ballot, LogEntry, Time};

use crate::{
    check,
    lab::Lab,
    standard::{LIFE, PIECES},
};

#[test]
fn a_timed_wait_ends_and_may_be_repeated() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        ann calls Pieces/x p_for s 10
        bob calls Pieces/x p_for s 100
        +8 tick
        +1 tick
        bob calls Pieces/x count s
        ann calls Pieces/x v s
        ann calls Pieces/x p_for s 0
        ann calls Pieces/x p_until s 3
        ann calls Pieces/x v s
        ann calls Pieces/x p_until s 3
        ann calls Pieces/x p_for s 18446744073709551615
        ann calls Pieces/x p_until s 18446744073709551615
        ann calls Pieces/x vs s 2
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Pieces/x p_for s 10
            > bob calls Pieces/x p_for s 100
            > +8 tick
            > +1 tick
              ann#1 ok timed-out
            > bob calls Pieces/x count s
              bob#2 ok 0 free, 1 waiting
            > ann calls Pieces/x v s
              ann#2 ok
              bob#1 ok granted
            > ann calls Pieces/x p_for s 0
              ann#3 ok timed-out
            > ann calls Pieces/x p_until s 3
              ann#4 ok timed-out
            > ann calls Pieces/x v s
              ann#5 ok
            > ann calls Pieces/x p_until s 3
              ann#6 ok granted
            > ann calls Pieces/x p_for s 18446744073709551615
            > ann calls Pieces/x p_until s 18446744073709551615
            > ann calls Pieces/x vs s 2
              ann#9 ok
              ann#7 ok granted
              ann#8 ok granted
        "#]],
    );
}

#[test]
fn alarms_go_off_in_order_of_time_then_id_each_in_a_step_of_its_own() {
    let mut lab = Lab::new(&[LIFE]);
    lab.play("open ann");
    let before = lab.machine().step();
    let trace = lab.play(
        "
        ann calls Life/l after 30 third; ann calls Life/l after 10 first; ann calls Life/l after 10 second
        +30 ann calls Life/l look rung
        ",
    );
    expect![[r#"
        > ann calls Life/l after 30 third; ann calls Life/l after 10 first; ann calls Life/l after 10 second
          ann#1 ok 1
          ann#2 ok 2
          ann#3 ok 3
        > +30 ann calls Life/l look rung
          log of Life/l: first rang
          log of Life/l: second rang
          log of Life/l: third rang
          ann#4 ok third at 1035 session none by :scheduler
    "#]].assert_eq(&trace);
    assert_eq!(lab.machine().step().0 - before.0, 7, "four calls and three timers");
}

#[test]
fn a_timer_goes_off_in_a_later_batch_only() {
    check(
        &[LIFE],
        "
        open ann
        ann calls Life/l after 0 zero; ann calls Life/l look rung
        ann calls Life/l look rung
        ann calls Life/l after 18446744073709551615 never
        ann calls Life/l after 20 cancelled
        ann calls Life/l cancel 3
        ann calls Life/l cancel 3
        ann calls Life/l cancel 12345
        +1000 tick
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Life/l after 0 zero; ann calls Life/l look rung
              ann#1 ok 1
              ann#2 ok none
            > ann calls Life/l look rung
              log of Life/l: zero rang
              ann#3 ok zero at 1006 session none by :scheduler
            > ann calls Life/l after 18446744073709551615 never
              ann#4 ok 2
            > ann calls Life/l after 20 cancelled
              ann#5 ok 3
            > ann calls Life/l cancel 3
              ann#6 ok true
            > ann calls Life/l cancel 3
              ann#7 ok false
            > ann calls Life/l cancel 12345
              ann#8 ok false
            > +1000 tick
        "#]],
    );
}

#[test]
fn a_handler_wakes_a_waiter_before_the_commands_of_the_batch() {
    check(
        &[LIFE],
        "
        open ann
        open bob
        ann calls Life/l wait_for_rings
        bob calls Life/l after 5 bell
        +10 bob calls Life/l wait_for_rings
        bob calls Life/l after_hold 5
        +10 bob calls Life/l look held
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Life/l wait_for_rings
            > bob calls Life/l after 5 bell
              bob#1 ok 1
            > +10 bob calls Life/l wait_for_rings
              log of Life/l: bell rang
              ann#1 ok rung
            > bob calls Life/l after_hold 5
              bob#3 ok
            > +10 bob calls Life/l look held
              bob#4 ok no-session
        "#]],
    );
}

#[test]
fn a_deadline_counts_from_admission_and_goes_with_its_call() {
    let mut lab = Lab::new(&[PIECES]);
    let trace = lab.play(
        "
        open ann
        ann within 0 calls Pieces/x p s
        tick
        ann within 10 calls Pieces/x p s
        ann calls Pieces/x v s
        +20 tick
        ann within 10 calls Pieces/x p_for s 10
        +10 tick
        ann within 10 calls Pieces/x p_then_panic s
        ann calls Pieces/x v s
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann within 0 calls Pieces/x p s
        > tick
          ann#1 error: the call was cancelled: its deadline passed
        > ann within 10 calls Pieces/x p s
        > ann calls Pieces/x v s
          ann#3 ok
          ann#2 ok passed
        > +20 tick
        > ann within 10 calls Pieces/x p_for s 10
        > +10 tick
          ann#4 ok cancelled
        > ann within 10 calls Pieces/x p_then_panic s
        > ann calls Pieces/x v s
          ann#6 ok
          ann#5 error: the method failed: it panicked: after P
    "#]]
    .assert_eq(&trace);
    assert_eq!(lab.machine().next_due(), None, "no deadline outlives its call");
}

#[test]
fn a_new_leaders_time_sets_off_nothing_before_its_first_batch() {
    let mut lab = Lab::new(&[LIFE]);
    lab.play("open ann\nann calls Life/l after 50 bell");
    let step = lab.machine().step();
    lab.ballot = Ballot { number: 9, ..lab.ballot };
    let effects = lab.apply(&LogEntry::LeaderStart { ballot: lab.ballot, now: Time(9_000) });
    assert!(effects.is_empty(), "{effects:?}");
    assert_eq!(lab.machine().step(), step, "an alarm goes off in a batch");
    expect![[r#"
        > ann calls Life/l look rung
          log of Life/l: bell rang
          ann#2 ok bell at 9001 session none by :scheduler
    "#]]
    .assert_eq(&lab.play("ann calls Life/l look rung"));
}
