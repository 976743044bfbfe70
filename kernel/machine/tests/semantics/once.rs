//! Exactly once, in order.

use expect_test::expect;
use gesmas_machine::{Acknowledged, Command, Place};

use crate::{
    check,
    lab::Lab,
    standard::{PIECES, QUEUE},
};

#[test]
fn a_retry_attaches_or_gets_the_stored_reply_until_it_is_acknowledged() {
    check(
        &[PIECES],
        "
        open ann
        ann calls Pieces/x vs s 1
        ann repeats 1
        ann calls Pieces/x p t
        ann repeats 2
        ann acks 1-9
        ann repeats 1
        ann calls Pieces/x v t
        ann repeats 2
        ann acks 2
        ann repeats 2
        ann repeats 3
        ann calls Pieces/x count s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Pieces/x vs s 1
              ann#1 ok
            > ann repeats 1
              ann#1 ok
            > ann calls Pieces/x p t
            > ann repeats 2
            > ann acks 1-9
            > ann repeats 1
              ann#1 refused: its number was used and its reply is gone
            > ann calls Pieces/x v t
              ann#3 ok
              ann#2 ok passed
            > ann repeats 2
              ann#2 ok passed
            > ann acks 2
            > ann repeats 2
              ann#2 refused: its number was used and its reply is gone
            > ann repeats 3
              ann#3 ok
            > ann calls Pieces/x count s
              ann#4 ok 1 free, 0 waiting
        "#]],
    );
}

#[test]
fn acknowledgements_are_ranges() {
    check(
        &[PIECES],
        "
        open ann
        ann calls Pieces/x v s; ann calls Pieces/x v s; ann calls Pieces/x v s; ann calls Pieces/x v s
        ann acks 1-2 4-4 9-3 18446744073709551615-18446744073709551615
        ann repeats 1; ann repeats 2; ann repeats 3; ann repeats 4
        ann acks 0-18446744073709551615
        ann repeats 3
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Pieces/x v s; ann calls Pieces/x v s; ann calls Pieces/x v s; ann calls Pieces/x v s
              ann#1 ok
              ann#2 ok
              ann#3 ok
              ann#4 ok
            > ann acks 1-2 4-4 9-3 18446744073709551615-18446744073709551615
            > ann repeats 1; ann repeats 2; ann repeats 3; ann repeats 4
              ann#1 refused: its number was used and its reply is gone
              ann#2 refused: its number was used and its reply is gone
              ann#3 ok
              ann#4 refused: its number was used and its reply is gone
            > ann acks 0-18446744073709551615
            > ann repeats 3
              ann#3 refused: its number was used and its reply is gone
        "#]],
    );
}

#[test]
fn a_cancel_that_overtakes_is_admitted_in_the_place_of_its_request() {
    check(
        &[PIECES],
        "
        open ann
        ann loses calls Pieces/x v s
        ann cancels 2
        ann cancels 1
        ann repeats 1
        ann cancels 1
        ann calls Pieces/x count s
        ann acks 1
        ann repeats 1
        ann cancels 1
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann loses calls Pieces/x v s
            > ann cancels 2
              ann#2 refused: it is out of order: the last request admitted is 0
            > ann cancels 1
              ann#1 error: the call was cancelled: its caller gave it up
            > ann repeats 1
              ann#1 error: the call was cancelled: its caller gave it up
            > ann cancels 1
              ann#1 error: the call was cancelled: its caller gave it up
            > ann calls Pieces/x count s
              ann#2 ok 0 free, 0 waiting
            > ann acks 1
            > ann repeats 1
              ann#1 refused: its number was used and its reply is gone
            > ann cancels 1
              ann#1 refused: its number was used and its reply is gone
        "#]],
    );
}

#[test]
fn a_number_is_used_once_whatever_it_carries() {
    let mut lab = Lab::new(&[PIECES]);
    lab.play("open ann");
    let session = lab.session("ann");
    let cancel = |number, previous| Command::Cancel {
        place: Place { session, number, previous },
        acknowledged: Acknowledged::default(),
    };
    lab.take_trace();
    let now = lab.machine().now();
    let commands = vec![
        cancel(0, 0),
        cancel(5, 0),
        cancel(3, 0),
        cancel(7, 6),
        cancel(u64::MAX, 5),
        cancel(u64::MAX, u64::MAX),
    ];
    lab.batch(now.after(1), commands);
    let trace = format!("> cancel 0, 5, 3, 7, the last number, and it again\n{}", lab.take_trace());
    expect![[r#"
        > cancel 0, 5, 3, 7, the last number, and it again
          ann#0 refused: its number was used and its reply is gone
          ann#5 error: the call was cancelled: its caller gave it up
          ann#3 refused: its number was used and its reply is gone
          ann#7 refused: it is out of order: the last request admitted is 5
          ann#18446744073709551615 error: the call was cancelled: its caller gave it up
          ann#18446744073709551615 error: the call was cancelled: its caller gave it up
    "#]]
    .assert_eq(&trace);
    assert_eq!(lab.machine().last_admitted(session), Some(u64::MAX));
}

#[test]
fn the_same_nonce_opens_the_same_session_for_the_same_principal() {
    check(
        &[PIECES],
        "
        open ann
        ann calls Pieces/x session
        open ann
        open ann mallory
        close ann
        open ann
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Pieces/x session
              ann#1 ok 2 ann x
            > open ann
              ann is session 2
            > open ann mallory
              refused: the session is over
            > close ann
              ann is closed
            > open ann
              ann is session 3
        "#]],
    );
}

#[test]
fn a_session_that_is_over_is_known_to_nobody() {
    check(
        &[QUEUE],
        "
        open ann
        close ann
        close ann
        expire ann
        ann creates Queue/q 1
        ann cancels 1
        ann acks 1-3
        read ann Queue/q length
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > close ann
              ann is closed
            > close ann
            > expire ann
            > ann creates Queue/q 1
              ann#1 refused: the session is over
            > ann cancels 1
              ann#1 refused: the session is over
            > ann acks 1-3
            > read ann Queue/q length
              refused: the session is over
        "#]],
    );
}

#[test]
fn a_session_has_room_for_so_many_requests_and_replies() {
    let mut lab = Lab::with_limits(&[PIECES], |limits| {
        limits.requests_per_session = 2;
        limits.replies_per_session = 3;
    });
    let trace = lab.play(
        "
        open ann
        ann calls Pieces/x p s; ann calls Pieces/x p s; ann loses calls Pieces/x v s
        ann repeats 3
        ann cancels 3
        ann cancels 1; ann cancels 2
        ann loses calls Pieces/x v s
        ann repeats 4
        ann cancels 4
        ann acks 1-2
        ann repeats 4
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Pieces/x p s; ann calls Pieces/x p s; ann loses calls Pieces/x v s
        > ann repeats 3
          ann#3 refused: limit requests_per_session is 2
        > ann cancels 3
          ann#3 error: the call was cancelled: its caller gave it up
        > ann cancels 1; ann cancels 2
          ann#1 error: the call was cancelled: its caller gave it up
          ann#2 error: the call was cancelled: its caller gave it up
        > ann loses calls Pieces/x v s
        > ann repeats 4
          ann#4 refused: limit replies_per_session is 3
        > ann cancels 4
          ann#4 refused: limit replies_per_session is 3
        > ann acks 1-2
        > ann repeats 4
          ann#4 ok
    "#]]
    .assert_eq(&trace);
}
