//! How sessions end, watches, and events.

use expect_test::expect;

use crate::{check, lab::Lab, standard::LIFE};

/// Everything that the end of a session does, in its order.
const ESTATE: &str = "
class Estate
init create 0
  count a 1
  count b 1
update hold 1
  hold $0 -> permit
  return $permit
update own 1
  acquire $0 -> permit
  P never -> got
  log clean-up of the owner of $0 sees $got
  cancelled
update linger 1
  P never -> got
  log clean-up $0 sees $got
  hold a -> held
  log and holding is $held
  P $0 -> again
  log and waiting is $again
  cancelled
detached stay 0
  P late
  hold a -> held
  log the detached call runs on, holding is $held
  return unheard
update watch 2
  watch $0 mourn $1 -> id
  return $id
update next 1
  P $0
  log the next of $0 goes on
  return
update v 1
  V $0
  return
handler mourn 1
  log mourner $0 starts
  P grief
  log mourner $0 goes on
";

#[test]
fn the_end_of_a_session_is_one_step_in_a_stated_order() {
    let mut lab = Lab::new(&[ESTATE]);
    lab.play(
        "
        open ann
        open bob
        ann calls Estate/e hold b
        ann calls Estate/e linger one
        ann calls Estate/e own a
        ann calls Estate/e linger two
        ann calls Estate/e stay
        bob calls Estate/e next b
        bob calls Estate/e next a
        ",
    );
    let ann = lab.session("ann");
    lab.play(&format!(
        "bob calls Estate/e watch {ann} first; bob calls Estate/e watch {ann} second"
    ));
    let step = lab.machine().step();
    expect![[r#"
        > expire ann
          ann is expired
          log of Estate/e: clean-up one sees cancelled
          log of Estate/e: and holding is session-over
          log of Estate/e: and waiting is cancelled
          log of Estate/e: clean-up of the owner of a sees cancelled
          log of Estate/e: clean-up two sees cancelled
          log of Estate/e: and holding is session-over
          log of Estate/e: and waiting is cancelled
          log of Estate/e: mourner first starts
          log of Estate/e: mourner second starts
          log of Estate/e: the next of a goes on
          bob#2 ok
          log of Estate/e: the next of b goes on
          bob#1 ok
    "#]]
    .assert_eq(&lab.play("expire ann"));
    assert_eq!(lab.machine().step().0, step.0 + 1);
    expect![[r#"
        > bob calls Estate/e v late; bob calls Estate/e v grief
          bob#5 ok
          log of Estate/e: the detached call runs on, holding is session-over
          bob#6 ok
          log of Estate/e: mourner first goes on
    "#]]
    .assert_eq(&lab.play("bob calls Estate/e v late; bob calls Estate/e v grief"));
}

#[test]
fn a_call_on_behalf_of_another_session_is_that_sessions_own() {
    check(
        &[ESTATE],
        "
        open ann
        open gate
        open bob
        gate calls-for ann Estate/e hold b
        gate calls-for ann Estate/e linger one
        ann calls Estate/e linger two
        gate calls-for ann Estate/e linger three
        gate calls-for ann Estate/e stay
        bob calls Estate/e next b
        expire ann
        bob calls Estate/e v late
        gate calls-for ann Estate/e hold a
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open gate
              gate is session 3
            > open bob
              bob is session 4
            > gate calls-for ann Estate/e hold b
              gate#1 ok 1
            > gate calls-for ann Estate/e linger one
            > ann calls Estate/e linger two
            > gate calls-for ann Estate/e linger three
            > gate calls-for ann Estate/e stay
            > bob calls Estate/e next b
            > expire ann
              ann is expired
              log of Estate/e: clean-up one sees cancelled
              log of Estate/e: and holding is session-over
              log of Estate/e: and waiting is cancelled
              gate#2 error: the call was cancelled: its session is over
              log of Estate/e: clean-up two sees cancelled
              log of Estate/e: and holding is session-over
              log of Estate/e: and waiting is cancelled
              log of Estate/e: clean-up three sees cancelled
              log of Estate/e: and holding is session-over
              log of Estate/e: and waiting is cancelled
              gate#3 error: the call was cancelled: its session is over
              log of Estate/e: the next of b goes on
              bob#1 ok
            > bob calls Estate/e v late
              bob#2 ok
              log of Estate/e: the detached call runs on, holding is session-over
              gate#4 ok unheard
            > gate calls-for ann Estate/e hold a
              gate#5 error: no session with this number is open
        "#]],
    );
}

#[test]
fn the_end_of_the_session_that_asked_ends_a_call_on_anothers_behalf() {
    check(
        &[ESTATE],
        "
        open ann
        open gate
        gate calls-for ann Estate/e hold b
        gate calls-for ann Estate/e linger one
        expire gate
        expire ann
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open gate
              gate is session 3
            > gate calls-for ann Estate/e hold b
              gate#1 ok 1
            > gate calls-for ann Estate/e linger one
            > expire gate
              gate is expired
              log of Estate/e: clean-up one sees cancelled
              log of Estate/e: and holding is 2
              log of Estate/e: and waiting is cancelled
            > expire ann
              ann is expired
        "#]],
    );
}

#[test]
fn a_call_on_behalf_of_nobody_has_no_session() {
    check(
        &[ESTATE],
        "
        open gate
        gate calls-for nobody Estate/e hold b
        gate calls-for nobody Estate/e next c
        gate cancels 2
        ",
        &expect![[r#"
            > open gate
              gate is session 2
            > gate calls-for nobody Estate/e hold b
              gate#1 ok no-session
            > gate calls-for nobody Estate/e next c
            > gate cancels 2
              gate#2 error: the call was cancelled: its caller gave it up
        "#]],
    );
}

#[test]
fn permits_of_a_session_are_released_newest_first() {
    check(
        &[ESTATE],
        "
        open ann
        open bob
        ann calls Estate/e hold b
        ann calls Estate/e hold a
        bob calls Estate/e next b
        bob calls Estate/e next a
        close ann
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Estate/e hold b
              ann#1 ok 1
            > ann calls Estate/e hold a
              ann#2 ok 2
            > bob calls Estate/e next b
            > bob calls Estate/e next a
            > close ann
              ann is closed
              log of Estate/e: the next of a goes on
              bob#2 ok
              log of Estate/e: the next of b goes on
              bob#1 ok
        "#]],
    );
}

#[test]
fn a_watch_of_a_session_that_is_over_goes_off_at_the_next_stamp() {
    check(
        &[LIFE],
        "
        open ann
        open bob
        bob calls Life/l watch 99 ghost; bob calls Life/l look rung
        bob calls Life/l look rung
        bob calls Life/l watch 2 ann
        bob calls Life/l cancel 2
        bob calls Life/l watch 2 ann
        expire ann
        bob calls Life/l look rung
        expire ann
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > bob calls Life/l watch 99 ghost; bob calls Life/l look rung
              bob#1 ok 1
              bob#2 ok none
            > bob calls Life/l look rung
              log of Life/l: ghost rang
              bob#3 ok ghost at 1007 session none by :scheduler
            > bob calls Life/l watch 2 ann
              bob#4 ok 2
            > bob calls Life/l cancel 2
              bob#5 ok true
            > bob calls Life/l watch 2 ann
              bob#6 ok 3
            > expire ann
              ann is expired
              log of Life/l: ann rang
            > bob calls Life/l look rung
              bob#7 ok ann at 1011 session none by :scheduler
            > expire ann
        "#]],
    );
}

#[test]
fn events_are_numbered_and_the_oldest_make_way() {
    let mut lab = Lab::with_limits(&[LIFE], |limits| limits.events_per_session = 2);
    let trace = lab.play(
        "
        open ann
        open bob
        bob calls Life/l notify 2 one
        bob calls Life/l notify 2 two
        bob calls Life/l notify 2 three
        bob calls Life/l notify 99 nobody
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > open bob
          bob is session 3
        > bob calls Life/l notify 2 one
          ann event 1: one
          bob#1 ok
        > bob calls Life/l notify 2 two
          ann event 2: two
          bob#2 ok
        > bob calls Life/l notify 2 three
          ann event 3: three
          bob#3 ok
        > bob calls Life/l notify 99 nobody
          bob#4 ok
    "#]]
    .assert_eq(&trace);
    let ann = lab.session("ann");
    let pending = |lab: &Lab, after| {
        let pending = lab.machine().pending_events(ann, after);
        let numbers: Vec<_> = pending.events.iter().map(|(number, ..)| *number).collect();
        (pending.gap, numbers)
    };
    assert_eq!(pending(&lab, 0), (Some((1, 1)), vec![2, 3]));
    assert_eq!(pending(&lab, 1), (None, vec![2, 3]));
    assert_eq!(pending(&lab, 3), (None, vec![]));
    assert_eq!(pending(&lab, u64::MAX), (None, vec![]));
    lab.play("ann acks events=2");
    assert_eq!(pending(&lab, 0), (None, vec![3]));
    lab.play("ann acks events=1\nann acks events=18446744073709551615");
    assert_eq!(pending(&lab, 0), (None, vec![]));
    lab.play("bob calls Life/l notify 2 four");
    assert_eq!(pending(&lab, 3), (None, vec![4]));
}

#[test]
fn an_operator_ends_a_session_and_perhaps_its_own() {
    check(
        &[ESTATE],
        "
        open ann
        open bob
        ann calls Estate/e hold a
        ann calls Estate/e linger b
        bob kills-session ann
        bob kills-session ann
        bob calls Estate/e next a
        bob kills-session bob
        bob calls Estate/e next a
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > ann calls Estate/e hold a
              ann#1 ok 1
            > ann calls Estate/e linger b
            > bob kills-session ann
              bob#1 ok
              ann is killed
              log of Estate/e: clean-up b sees cancelled
              log of Estate/e: and holding is session-over
              log of Estate/e: and waiting is granted
            > bob kills-session ann
              bob#2 error: no session with this number is open
            > bob calls Estate/e next a
              log of Estate/e: the next of a goes on
              bob#3 ok
            > bob kills-session bob
              bob#4 ok
              bob is killed
            > bob calls Estate/e next a
              bob#5 refused: the session is over
        "#]],
    );
}
