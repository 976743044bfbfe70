//! The examples that settle doubts, each by its name.

use expect_test::expect;

use crate::{
    check,
    standard::{LOCK, PIECES, QUEUE},
};

#[test]
fn a_consumers_client_dies_while_it_waits() {
    check(
        &[QUEUE],
        "
        open ann
        open bob
        open eve
        ann creates Queue/jobs 2
        ann calls Queue/jobs consume
        bob calls Queue/jobs consume
        expire ann
        eve calls Queue/jobs produce apple
        eve calls Queue/jobs produce pear
        eve calls Queue/jobs consume
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > ann creates Queue/jobs 2
              ann#1 ok
            > ann calls Queue/jobs consume
            > bob calls Queue/jobs consume
            > expire ann
              ann is expired
            > eve calls Queue/jobs produce apple
              eve#1 ok
              bob#1 ok apple
            > eve calls Queue/jobs produce pear
              eve#2 ok
            > eve calls Queue/jobs consume
              eve#3 ok pear
        "#]],
    );
}

#[test]
fn it_dies_after_it_was_woken_before_it_got_the_reply() {
    check(
        &[QUEUE],
        "
        open ann
        open eve
        eve creates Queue/jobs 2
        ann calls Queue/jobs consume
        eve calls Queue/jobs produce apple
        ann repeats 1
        expire ann
        ann repeats 1
        eve calls Queue/jobs produce pear
        eve calls Queue/jobs consume
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open eve
              eve is session 3
            > eve creates Queue/jobs 2
              eve#1 ok
            > ann calls Queue/jobs consume
            > eve calls Queue/jobs produce apple
              eve#2 ok
              ann#1 ok apple
            > ann repeats 1
              ann#1 ok apple
            > expire ann
              ann is expired
            > ann repeats 1
              ann#1 refused: the session is over
            > eve calls Queue/jobs produce pear
              eve#3 ok
            > eve calls Queue/jobs consume
              eve#4 ok pear
        "#]],
    );
}

#[test]
fn a_connection_breaks_and_outstanding_requests_reattach() {
    check(
        &[QUEUE],
        "
        open ann
        open ann
        open eve
        eve creates Queue/jobs 2
        ann calls Queue/jobs consume
        ann repeats 1
        ann repeats 1
        eve calls Queue/jobs produce apple
        ann repeats 1
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open ann
              ann is session 2
            > open eve
              eve is session 3
            > eve creates Queue/jobs 2
              eve#1 ok
            > ann calls Queue/jobs consume
            > ann repeats 1
            > ann repeats 1
            > eve calls Queue/jobs produce apple
              eve#2 ok
              ann#1 ok apple
            > ann repeats 1
              ann#1 ok apple
        "#]],
    );
}

#[test]
fn consume_waits_is_granted_then_panics() {
    check(
        &[QUEUE],
        "
        open ann
        open bob
        open eve
        eve creates Queue/jobs 2
        ann calls Queue/jobs consume_and_panic
        bob calls Queue/jobs consume
        eve calls Queue/jobs produce apple
        ann calls Queue/jobs consume_and_panic
        eve calls Queue/jobs produce pear
        ann calls Queue/jobs consume
        read ann Queue/jobs length
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > eve creates Queue/jobs 2
              eve#1 ok
            > ann calls Queue/jobs consume_and_panic
            > bob calls Queue/jobs consume
            > eve calls Queue/jobs produce apple
              eve#2 ok
              ann#1 error: the method failed: it panicked: apple is gone
              bob#1 ok apple
            > ann calls Queue/jobs consume_and_panic
            > eve calls Queue/jobs produce pear
              eve#3 ok
              ann#2 error: the method failed: it panicked: pear is gone
            > ann calls Queue/jobs consume
              ann#3 ok pear
            > read ann Queue/jobs length
              ok 0
        "#]],
    );
}

#[test]
fn consume_that_need_not_wait_panics() {
    check(
        &[QUEUE],
        "
        open ann
        ann creates Queue/jobs 2
        ann calls Queue/jobs produce apple
        ann calls Queue/jobs consume_and_panic
        read ann Queue/jobs length
        ann calls Queue/jobs consume
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann creates Queue/jobs 2
              ann#1 ok
            > ann calls Queue/jobs produce apple
              ann#2 ok
            > ann calls Queue/jobs consume_and_panic
              ann#3 error: the method failed: it panicked: apple is gone
            > read ann Queue/jobs length
              ok 1
            > ann calls Queue/jobs consume
              ann#4 ok apple
        "#]],
    );
}

#[test]
fn a_method_blocked_twice_and_the_second_segment_panics() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        ann calls Pieces/x two_waits_then_panic a b
        bob calls Pieces/x v a
        bob calls Pieces/x v b
        bob calls Pieces/x look first
        bob calls Pieces/x look second
        bob calls Pieces/x count a
        bob calls Pieces/x count b
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Pieces/x two_waits_then_panic a b
            > bob calls Pieces/x v a
              bob#1 ok
            > bob calls Pieces/x v b
              bob#2 ok
              ann#1 error: the method failed: it panicked: in the second segment
            > bob calls Pieces/x look first
              bob#3 ok stands
            > bob calls Pieces/x look second
              bob#4 ok none
            > bob calls Pieces/x count a
              bob#5 ok 0 free, 0 waiting
            > bob calls Pieces/x count b
              bob#6 ok 1 free, 0 waiting
        "#]],
    );
}

#[test]
fn what_it_acquired_is_given_back_and_a_bare_permit_is_not() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        bob calls Pieces/x vs a 2
        ann calls Pieces/x own_then_wait_then_panic a b
        bob calls Pieces/x count a
        bob calls Pieces/x v b
        bob calls Pieces/x count a
        ann calls Pieces/x bare_then_wait_then_panic a c
        bob calls Pieces/x count a
        bob calls Pieces/x v c
        bob calls Pieces/x count a
        bob calls Pieces/x count c
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > bob calls Pieces/x vs a 2
              bob#1 ok
            > ann calls Pieces/x own_then_wait_then_panic a b
            > bob calls Pieces/x count a
              bob#2 ok 0 free, 0 waiting
            > bob calls Pieces/x v b
              bob#3 ok
              ann#1 error: the method failed: it panicked: with two permits
            > bob calls Pieces/x count a
              bob#4 ok 2 free, 0 waiting
            > ann calls Pieces/x bare_then_wait_then_panic a c
            > bob calls Pieces/x count a
              bob#5 ok 1 free, 0 waiting
            > bob calls Pieces/x v c
              bob#6 ok
              ann#2 error: the method failed: it panicked: with a bare permit
            > bob calls Pieces/x count a
              bob#7 ok 1 free, 0 waiting
            > bob calls Pieces/x count c
              bob#8 ok 1 free, 0 waiting
        "#]],
    );
}

#[test]
fn two_vs_in_one_segment_and_three_waiters() {
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
        zoe calls Pieces/x vs s 2
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
            > zoe calls Pieces/x vs s 2
              zoe#1 ok
              ann#1 ok passed
              bob#1 ok passed
            > zoe calls Pieces/x count s
              zoe#2 ok 0 free, 1 waiting
        "#]],
    );
}

#[test]
fn v_then_try_p_in_one_segment() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        bob calls Pieces/x v_then_try s
        ann calls Pieces/x p s
        bob calls Pieces/x v_then_try s
        bob calls Pieces/x count s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > bob calls Pieces/x v_then_try s
              bob#1 ok granted
            > ann calls Pieces/x p s
            > bob calls Pieces/x v_then_try s
              bob#2 ok would-block
              ann#1 ok passed
            > bob calls Pieces/x count s
              bob#3 ok 0 free, 0 waiting
        "#]],
    );
}

#[test]
fn a_deadline_and_a_v_come_due_in_one_batch() {
    check(
        &[PIECES],
        "
        open ann
        open bob
        open eve
        ann within 10 calls Pieces/x p s
        bob calls Pieces/x p s
        +20 eve calls Pieces/x v s
        eve calls Pieces/x count s
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > ann within 10 calls Pieces/x p s
            > bob calls Pieces/x p s
            > +20 eve calls Pieces/x v s
              ann#1 error: the call was cancelled: its deadline passed
              eve#1 ok
              bob#1 ok passed
            > eve calls Pieces/x count s
              eve#2 ok 0 free, 0 waiting
        "#]],
    );
}

#[test]
fn requests_1_and_2_are_lost_and_3_arrives() {
    check(
        &[PIECES],
        "
        open ann
        ann loses calls Pieces/x vs s 1
        ann loses calls Pieces/x vs s 10
        ann calls Pieces/x vs s 100
        ann repeats 1; ann repeats 2; ann repeats 3
        ann calls Pieces/x count s
        ann repeats 2
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann loses calls Pieces/x vs s 1
            > ann loses calls Pieces/x vs s 10
            > ann calls Pieces/x vs s 100
              ann#3 refused: it is out of order: the last request admitted is 0
            > ann repeats 1; ann repeats 2; ann repeats 3
              ann#1 ok
              ann#2 ok
              ann#3 ok
            > ann calls Pieces/x count s
              ann#4 ok 111 free, 0 waiting
            > ann repeats 2
              ann#2 ok
        "#]],
    );
}

#[test]
fn the_holder_of_a_lock_dies() {
    check(
        &[LOCK],
        "
        open ann
        open bob
        open eve
        ann calls Lock/l take
        bob calls Lock/l take
        eve calls Lock/l take
        expire bob
        expire ann
        eve calls Lock/l owners
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > ann calls Lock/l take
              ann#1 ok 1 token 1
            > bob calls Lock/l take
            > eve calls Lock/l take
            > expire bob
              bob is expired
            > expire ann
              ann is expired
              eve#1 ok 2 token 2
            > eve calls Lock/l owners
              eve#2 ok session 4
        "#]],
    );
}
