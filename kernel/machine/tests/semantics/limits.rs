//! Each limit: at it, one past it, and that what shrinks is never refused.

use expect_test::expect;
use gesmas_machine::Limits;

use crate::{check, lab::Lab};

const GROW: &str = "
class Grow
init create 0
update write 2
  write $0 $1
update remove 1
  remove $0 -> x
  return $x
update p 1
  P $0
update try 1
  try $0 -> x
  return $x
update v 2
  V $0 $1
update hold 1
  hold $0 -> x
  return $x
update release 1
  release $0 -> x
  return $x
update after 1
  after $0 ring -> id
  return $id
update cancel 1
  cancel $0 -> x
  return $x
update notify 1
  notify 2 $0
update returns 1
  return $0
update push 1
  push d $0
update pop 0
  pop d -> x
  return $x
update twice 1
  read k -> x
  P s
  read k -> x
  P s
update log 1
  log $0
handler ring 0
";

/// Plays on machines with a limit.
fn limited(change: impl FnOnce(&mut Limits), script: &str, expected: &expect_test::Expect) {
    let mut lab = Lab::with_limits(&[GROW], change);
    lab.play("open ann\nopen bob");
    expected.assert_eq(&lab.play(script));
}

#[test]
fn keys_values_objects_and_the_whole_state_are_bounded_in_bytes() {
    limited(
        |limits| {
            limits.key_bytes = 3;
            limits.value_bytes = 6;
            limits.object_bytes = 12;
            limits.state_bytes = 20;
        },
        "
        ann calls Grow/a write abc 123456
        ann calls Grow/a write abcd 1
        ann calls Grow/a write abc 1234567
        ann calls Grow/a write b 12
        ann calls Grow/a write c 1
        ann calls Grow/a write b 1
        ann calls Grow/a write b 12
        ann calls Grow/a write b 123
        ann calls Grow/b write a 1234567
        ann calls Grow/b write a 123456
        ann calls Grow/b write b 1
        ann calls Grow/a remove abc
        ann calls Grow/b write b 1
        ann calls Grow/a remove none
        ",
        &expect![[r#"
            > ann calls Grow/a write abc 123456
              ann#1 ok
            > ann calls Grow/a write abcd 1
              ann#2 error: the method failed: limit key_bytes is 3
            > ann calls Grow/a write abc 1234567
              ann#3 error: the method failed: limit value_bytes is 6
            > ann calls Grow/a write b 12
              ann#4 ok
            > ann calls Grow/a write c 1
              ann#5 error: the method failed: limit object_bytes is 12
            > ann calls Grow/a write b 1
              ann#6 ok
            > ann calls Grow/a write b 12
              ann#7 ok
            > ann calls Grow/a write b 123
              ann#8 error: the method failed: limit object_bytes is 12
            > ann calls Grow/b write a 1234567
              ann#9 error: the method failed: limit value_bytes is 6
            > ann calls Grow/b write a 123456
              ann#10 ok
            > ann calls Grow/b write b 1
              ann#11 error: the method failed: limit state_bytes is 20
            > ann calls Grow/a remove abc
              ann#12 ok 123456
            > ann calls Grow/b write b 1
              ann#13 ok
            > ann calls Grow/a remove none
              ann#14 ok none
        "#]],
    );
}

#[test]
fn semaphores_waiters_and_permits_are_bounded() {
    limited(
        |limits| {
            limits.semaphores_per_object = 2;
            limits.semaphore_name_bytes = 3;
            limits.semaphore_count = 5;
            limits.waiters_per_object = 2;
            limits.permits_per_object = 1;
        },
        "
        ann calls Grow/a v abc 5
        ann calls Grow/a v abc 1
        ann calls Grow/a v abc 18446744073709551615
        ann calls Grow/a v abcd 1
        ann calls Grow/a p w
        ann calls Grow/a v c 1
        ann calls Grow/a try c
        ann calls Grow/a p w
        ann calls Grow/a p w
        ann calls Grow/a hold abc
        ann calls Grow/a hold abc
        ann calls Grow/a v abc 1
        ann calls Grow/a v abc 1
        ann calls Grow/a release 1
        ann calls Grow/a try abc
        ann calls Grow/a v abc 1
        ann calls Grow/a v w 7
        ann calls Grow/a v w 6
        ann calls Grow/a try abc
        ",
        &expect![[r#"
            > ann calls Grow/a v abc 5
              ann#1 ok
            > ann calls Grow/a v abc 1
              ann#2 error: the method failed: limit semaphore_count is 5
            > ann calls Grow/a v abc 18446744073709551615
              ann#3 error: the method failed: limit semaphore_count is 5
            > ann calls Grow/a v abcd 1
              ann#4 error: the method failed: limit semaphore_name_bytes is 3
            > ann calls Grow/a p w
            > ann calls Grow/a v c 1
              ann#6 error: the method failed: limit semaphores_per_object is 2
            > ann calls Grow/a try c
              ann#7 ok would-block
            > ann calls Grow/a p w
            > ann calls Grow/a p w
              ann#9 error: the method failed: limit waiters_per_object is 2
            > ann calls Grow/a hold abc
              ann#10 ok 1
            > ann calls Grow/a hold abc
              ann#11 error: the method failed: limit permits_per_object is 1
            > ann calls Grow/a v abc 1
              ann#12 ok
            > ann calls Grow/a v abc 1
              ann#13 error: the method failed: limit semaphore_count is 5
            > ann calls Grow/a release 1
              ann#14 ok true
            > ann calls Grow/a try abc
              ann#15 ok granted
            > ann calls Grow/a v abc 1
              ann#16 error: the method failed: limit semaphore_count is 5
            > ann calls Grow/a v w 7
              ann#17 ok
              ann#5 ok
              ann#8 ok
            > ann calls Grow/a v w 6
              ann#18 error: the method failed: limit semaphore_count is 5
            > ann calls Grow/a try abc
              ann#19 ok granted
        "#]],
    );
}

#[test]
fn a_limit_of_permits_that_a_granted_permit_meets_passes_it_on() {
    limited(
        |limits| limits.permits_per_object = 1,
        "
        ann calls Grow/a hold s
        bob calls Grow/a hold s
        ann calls Grow/a p s
        ann calls Grow/a v s 3
        ",
        &expect![[r#"
            > ann calls Grow/a hold s
            > bob calls Grow/a hold s
            > ann calls Grow/a p s
            > ann calls Grow/a v s 3
              ann#3 ok
              ann#1 ok 1
              bob#1 error: the method failed: limit permits_per_object is 1
              ann#2 ok
        "#]],
    );
}

#[test]
fn no_count_overflows_whatever_the_limit() {
    limited(
        |limits| limits.semaphore_count = u64::MAX,
        "
        ann calls Grow/a v s 18446744073709551615
        ann calls Grow/a v s 4611686018427387904
        ann calls Grow/a hold s
        ann calls Grow/a v s 1
        ann calls Grow/a release 1
        ann calls Grow/a v s 1
        ",
        &expect![[r#"
            > ann calls Grow/a v s 18446744073709551615
              ann#1 error: the method failed: limit semaphore_count is 4611686018427387904
            > ann calls Grow/a v s 4611686018427387904
              ann#2 ok
            > ann calls Grow/a hold s
              ann#3 ok 1
            > ann calls Grow/a v s 1
              ann#4 ok
            > ann calls Grow/a release 1
              ann#5 ok true
            > ann calls Grow/a v s 1
              ann#6 error: the method failed: limit semaphore_count is 4611686018427387904
        "#]],
    );
}

#[test]
fn timers_events_and_arguments_are_bounded() {
    limited(
        |limits| {
            limits.alarms_per_object = 1;
            limits.event_bytes = 3;
            limits.argument_bytes = 6;
            limits.reply_bytes = 4;
            limits.log_bytes = 3;
        },
        "
        ann calls Grow/a after 50
        ann calls Grow/a after 60
        ann calls Grow/a cancel 1
        ann calls Grow/a after 60
        ann calls Grow/a notify abc
        ann calls Grow/a notify abcd
        ann calls Grow/a returns 1234
        ann calls Grow/a returns 12345
        ann calls Grow/a returns 1234567
        ann creates Grow/b 1234567
        ann calls Grow/a log abcd
        ann calls Grow/a log aéé
        ",
        &expect![[r#"
            > ann calls Grow/a after 50
              ann#1 ok 1
            > ann calls Grow/a after 60
              ann#2 error: the method failed: limit alarms_per_object is 1
            > ann calls Grow/a cancel 1
              ann#3 ok true
            > ann calls Grow/a after 60
              ann#4 ok 2
            > ann calls Grow/a notify abc
              ann event 1: abc
              ann#5 ok
            > ann calls Grow/a notify abcd
              ann#6 error: the method failed: limit event_bytes is 3
            > ann calls Grow/a returns 1234
              ann#7 ok 1234
            > ann calls Grow/a returns 12345
              ann#8 error: the method failed: limit reply_bytes is 4
            > ann calls Grow/a returns 1234567
              ann#9 error: limit argument_bytes is 6
            > ann creates Grow/b 1234567
              ann#10 error: limit argument_bytes is 6
            > ann calls Grow/a log abcd
              log of Grow/a: abc
              ann#11 ok
            > ann calls Grow/a log aéé
              log of Grow/a: aé
              ann#12 ok
        "#]],
    );
}

#[test]
fn objects_and_sessions_are_bounded() {
    limited(
        |limits| {
            limits.objects = 2;
            limits.sessions = 4;
            limits.principal_bytes = 5;
            limits.session_timeout = 1_000;
        },
        "
        ann calls Grow/a returns 1; ann calls Grow/b returns 1; ann calls Grow/c returns 1
        ann creates Grow/c
        ann removes Grow/a
        ann creates Grow/c
        open eve toolong
        open eve
        open zoe
        close eve
        open zoe
        ",
        &expect![[r#"
            > ann calls Grow/a returns 1; ann calls Grow/b returns 1; ann calls Grow/c returns 1
              ann#1 ok 1
              ann#2 ok 1
              ann#3 error: limit objects is 2
            > ann creates Grow/c
              ann#4 error: limit objects is 2
            > ann removes Grow/a
              ann#5 ok
            > ann creates Grow/c
              ann#6 ok
            > open eve toolong
              refused: limit principal_bytes is 5
            > open eve
              eve is session 4
            > open zoe
              refused: limit sessions is 4
            > close eve
              eve is closed
            > open zoe
              zoe is session 5
        "#]],
    );
}

#[test]
fn a_journal_is_bounded() {
    limited(
        |limits| limits.journal_bytes = 60,
        "
        ann calls Grow/a write k 1234567890
        ann calls Grow/a twice
        bob calls Grow/a v s 1
        ann calls Grow/a write k 123456789012345678901234567890
        ann calls Grow/a twice
        bob calls Grow/a v s 1
        ",
        &expect![[r#"
            > ann calls Grow/a write k 1234567890
              ann#1 ok
            > ann calls Grow/a twice
            > bob calls Grow/a v s 1
              bob#1 ok
            > ann calls Grow/a write k 123456789012345678901234567890
              ann#3 ok
            > ann calls Grow/a twice
            > bob calls Grow/a v s 1
              bob#2 ok
              ann#2 error: the method failed: limit journal_bytes is 60
              ann#4 error: the method failed: limit journal_bytes is 60
        "#]],
    );
}

#[test]
fn a_deque_at_the_limit_can_always_be_emptied() {
    limited(
        |limits| limits.object_bytes = 60,
        "
        ann calls Grow/a push 1234567890
        ann calls Grow/a push 1234567890
        ann calls Grow/a push 1234567890
        ann calls Grow/a pop
        ann calls Grow/a pop
        ann calls Grow/a pop
        ",
        &expect![[r#"
            > ann calls Grow/a push 1234567890
              ann#1 ok
            > ann calls Grow/a push 1234567890
              ann#2 ok
            > ann calls Grow/a push 1234567890
              ann#3 error: the method failed: limit object_bytes is 60
            > ann calls Grow/a pop
              ann#4 ok 1234567890
            > ann calls Grow/a pop
              ann#5 ok 1234567890
            > ann calls Grow/a pop
              ann#6 ok none
        "#]],
    );
}

#[test]
fn a_limit_is_changed_by_a_request_and_counts_from_the_next_one_on() {
    check(
        &[ECHO],
        "
        open ann
        ann calls Echo/e say 0123456789abcdef0123456789
        ann limits argument_bytes 20
        ann calls Echo/e say 0123456789abcdef0123456789
        ann limits argument_bytes 30
        ann calls Echo/e say 0123456789abcdef0123456789
        ann limits argument_bytes 1
        ann limits arguments 100
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Echo/e say 0123456789abcdef0123456789
              ann#1 ok 0123456789abcdef0123456789
            > ann limits argument_bytes 20
              ann#2 ok
            > ann calls Echo/e say 0123456789abcdef0123456789
              ann#3 error: limit argument_bytes is 20
            > ann limits argument_bytes 30
              ann#4 ok
            > ann calls Echo/e say 0123456789abcdef0123456789
              ann#5 ok 0123456789abcdef0123456789
            > ann limits argument_bytes 1
              ann#6 error: the limit is not changed: argument_bytes is between 16 and 15728640, not 1
            > ann limits arguments 100
              ann#7 error: the limit is not changed: there is no limit "arguments"
        "#]],
    );
}

/// Says what it is told.
const ECHO: &str = "
class Echo
update say 1
  return $
";
