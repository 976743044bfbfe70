//! Faults of handlers: kept, listed, retried, dropped.

use expect_test::expect;
use gesmas_machine::{ClassName, ObjectName};

use crate::{check, lab::Lab, standard::LIFE};

/// A bell that rings when it is not broken.
const BELL: &str = "
class Bell transient
init create 0
update break 0
  write broken yes
update mend 0
  remove broken -> was
update after 2
  after $0 ring $1 -> id
  return $id
update look 1
  read $0 -> value
  return $value
handler ring 1
  continue chime $
update chime 1
  read broken -> broken
  if $broken = yes bad
  write rung $
  log $ rang
  return
bad:
  write rung wrongly
  panic cannot ring $
";

/// The same layout; its handler takes other arguments.
const BELL_2: &str = "
class Bell version 2 transient
init create 0
handler ring 2
  return
";

#[test]
fn a_handler_that_panics_is_kept_as_a_fault_and_its_object_goes_on() {
    let mut lab = Lab::with_limits(&[LIFE], |limits| limits.faults_per_object = 2);
    let trace = lab.play(
        "
        open ann
        ann calls Life/l after_panic 5 one; ann calls Life/l after_panic 5 two; ann calls Life/l after_panic 5 three
        +10 ann calls Life/l look rung
        ann calls Life/l bad_handler
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Life/l after_panic 5 one; ann calls Life/l after_panic 5 two; ann calls Life/l after_panic 5 three
          ann#1 ok 1
          ann#2 ok 2
          ann#3 ok 3
        > +10 ann calls Life/l look rung
          fault of Life/l: ring_panic: it panicked: cannot ring one
          fault of Life/l: ring_panic: it panicked: cannot ring two
          fault of Life/l: ring_panic: it panicked: cannot ring three
          ann#4 ok none
        > ann calls Life/l bad_handler
          ann#5 error: the method failed: its class has no such handler or method: nobody
    "#]].assert_eq(&trace);
    let object = gesmas_machine::ObjectName::new("Life", "l").expect("a name");
    let faults = lab.machine().object(&object, 10).expect("it is there").faults;
    assert_eq!(faults.len(), 2, "the oldest made way: {faults:?}");
    assert!(faults[1].trap.to_string().contains("cannot ring three"), "{faults:?}");
}

#[test]
fn a_fault_is_retried_until_its_handler_succeeds() {
    check(
        &[BELL],
        "
        open ann
        ann calls Bell/b break; ann calls Bell/b after 5 one
        +10 tick
        ann retries 1 of Bell/b
        +1 tick
        ann retries 1 of Bell/b
        ann calls Bell/b mend; ann retries 2 of Bell/b
        +1 ann calls Bell/b look rung
        ann retries 2 of Bell/b
        ann drops 2 of Bell/nobody
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Bell/b break; ann calls Bell/b after 5 one
              ann#1 ok
              ann#2 ok 1
            > +10 tick
              fault of Bell/b: chime: it panicked: cannot ring one
            > ann retries 1 of Bell/b
              ann#3 ok
            > +1 tick
              fault of Bell/b: chime: it panicked: cannot ring one
            > ann retries 1 of Bell/b
              ann#4 error: the object keeps no fault with this number
            > ann calls Bell/b mend; ann retries 2 of Bell/b
              ann#5 ok
              ann#6 ok
            > +1 ann calls Bell/b look rung
              log of Bell/b: one rang
              ann#7 ok one
            > ann retries 2 of Bell/b
              ann#8 error: the object keeps no fault with this number
            > ann drops 2 of Bell/nobody
              ann#9 error: the object does not exist, and it is not for this to create it
        "#]],
    );
}

#[test]
fn a_dropped_fault_is_gone_and_its_object_with_it_if_nothing_else_keeps_that() {
    let mut lab = Lab::new(&[BELL]);
    let trace = lab.play(
        "
        open ann
        ann calls Bell/b break; ann calls Bell/b after 5 one; ann calls Bell/b after 5 two
        +10 ann calls Bell/b mend
        ann drops 1 of Bell/b
        ann drops 1 of Bell/b
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Bell/b break; ann calls Bell/b after 5 one; ann calls Bell/b after 5 two
          ann#1 ok
          ann#2 ok 1
          ann#3 ok 2
        > +10 ann calls Bell/b mend
          fault of Bell/b: chime: it panicked: cannot ring one
          fault of Bell/b: chime: it panicked: cannot ring two
          ann#4 ok
        > ann drops 1 of Bell/b
          ann#5 ok
        > ann drops 1 of Bell/b
          ann#6 error: the object keeps no fault with this number
    "#]]
    .assert_eq(&trace);
    let bell = ObjectName::new("Bell", "b").expect("a name");
    let (faults, more) = lab.machine().faults(None, None, 10);
    let [(object, fault)] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!((object, fault.alarm.0, &fault.arguments[..], more), (&bell, 2, &b"two"[..], false));
    assert_eq!(lab.machine().faulty_objects(), 1);
    lab.play("ann drops 2 of Bell/b");
    assert_eq!(lab.machine().faulty_objects(), 0);
    assert!(lab.machine().object(&bell, 1).is_none(), "it is as init left it");
}

#[test]
fn lists_of_faults_go_on_after_an_object_and_show_all_of_each() {
    let mut lab = Lab::new(&[BELL, LIFE]);
    lab.play(
        "
        open ann
        ann calls Life/l after_panic 5 one
        ann calls Bell/b break; ann calls Bell/b after 5 one; ann calls Bell/b after 5 two
        ann calls Bell/a break; ann calls Bell/a after 5 one
        +10 tick
        ",
    );
    let machine = lab.machine();
    let names = |(faults, more): (Vec<(ObjectName, _)>, bool)| {
        let names: Vec<_> = faults.into_iter().map(|(name, _)| name.to_string()).collect();
        (names.join(" "), more)
    };
    let list = |after: Option<&ObjectName>, limit| names(machine.faults(None, after, limit));
    assert_eq!(list(None, 10), ("Bell/a Bell/b Bell/b Life/l".into(), false));
    assert_eq!(list(None, 2), ("Bell/a Bell/b Bell/b".into(), true));
    let bell = ObjectName::new("Bell", "b").expect("a name");
    assert_eq!(list(Some(&bell), 2), ("Life/l".into(), false));
    let life = ClassName::new("Life").expect("a name");
    assert_eq!(names(machine.faults(Some(&life), None, 10)), ("Life/l".into(), false));
}

#[test]
fn a_retry_needs_a_handler_of_the_same_signature_and_room_for_an_alarm() {
    let mut lab = Lab::with_limits(&[BELL, BELL_2], |limits| limits.alarms_per_object = 1);
    let trace = lab.play(
        "
        open ann
        ann calls Bell/b break; ann calls Bell/b after 5 one
        +10 ann calls Bell/b after 5 two
        ann retries 1 of Bell/b
        +10 ann replaces Bell@2
        replica 1 compiled Bell@2; replica 2 compiled Bell@2
        ann retries 1 of Bell/b
        ann drops 1 of Bell/b
        ann drops 2 of Bell/b
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Bell/b break; ann calls Bell/b after 5 one
          ann#1 ok
          ann#2 ok 1
        > +10 ann calls Bell/b after 5 two
          fault of Bell/b: chime: it panicked: cannot ring one
          ann#3 ok 2
        > ann retries 1 of Bell/b
          ann#4 error: limit alarms_per_object is 1
        > +10 ann replaces Bell@2
          fault of Bell/b: chime: it panicked: cannot ring two
          compile Bell
        > replica 1 compiled Bell@2; replica 2 compiled Bell@2
          ann#5 ok 32 bytes
        > ann retries 1 of Bell/b
          ann#6 error: the class has no handler chime any more that takes the arguments of the fault
        > ann drops 1 of Bell/b
          ann#7 ok
        > ann drops 2 of Bell/b
          ann#8 ok
    "#]]
    .assert_eq(&trace);
}
