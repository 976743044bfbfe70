//! How objects come and go.

use expect_test::expect;

use crate::{
    check,
    lab::Lab,
    standard::{LIFE, LOCK, PIECES, QUEUE},
};

#[test]
fn an_object_is_created_explicitly_once_or_by_a_call() {
    check(
        &[QUEUE, PIECES],
        "
        open ann
        ann calls Queue/q consume
        ann creates Queue/q 2
        ann creates Queue/q 2
        ann creates Queue/q 3
        ann calls Pieces/x look a
        ann creates Pieces/x
        read ann Queue/other length
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Queue/q consume
              ann#1 error: the object does not exist, and it is not for this to create it
            > ann creates Queue/q 2
              ann#2 ok
            > ann creates Queue/q 2
              ann#3 ok
            > ann creates Queue/q 3
              ann#4 error: the object exists and was created with other arguments
            > ann calls Pieces/x look a
              ann#5 ok none
            > ann creates Pieces/x
              ann#6 ok
            > read ann Queue/other length
              error: the object does not exist, and it is not for this to create it
        "#]],
    );
}

#[test]
fn an_init_that_fails_leaves_no_object() {
    const INITS: &str = "
class Inits
init create 1
  write made $0
  count s 5
  after 10 ring -> timer
  acquire s -> permit
  log init runs
  if $0 = panic panics
  if $0 = fail fails
  if $0 = abort aborts
  if $0 = block blocks
  if $0 = continue continues
  return
panics:
  panic no
fails:
  fail no
aborts:
  abort no
blocks:
  P t
  return
continues:
  continue look
update look 0
  read made -> x
  value s -> n
  return $x $n
update set 0
  count s 1
handler ring 0
";
    let mut lab = Lab::new(&[INITS]);
    let total = lab.machine().total();
    let trace = lab.play(
        "
        open ann
        ann creates Inits/i panic
        ann creates Inits/i fail
        ann creates Inits/i abort
        ann creates Inits/i block
        ann creates Inits/i continue
        ann calls Inits/i look
        close ann
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann creates Inits/i panic
          log of Inits/i: init runs
          ann#1 error: the object could not be created: it panicked: no
        > ann creates Inits/i fail
          log of Inits/i: init runs
          ann#2 init refused: no
        > ann creates Inits/i abort
          log of Inits/i: init runs
          ann#3 init refused: no
        > ann creates Inits/i block
          log of Inits/i: init runs
          ann#4 error: the object could not be created: it may not block in init
        > ann creates Inits/i continue
          log of Inits/i: init runs
          ann#5 error: the object could not be created: it may not continue with another method in init, migrate or a read
        > ann calls Inits/i look
          ann#6 error: the object does not exist, and it is not for this to create it
        > close ann
          ann is closed
    "#]].assert_eq(&trace);
    assert_eq!(lab.machine().total(), total, "nothing is left of them");
    expect![[r#"
        > open bob
          bob is session 3
        > bob creates Inits/i fine
          log of Inits/i: init runs
          bob#1 ok
        > bob calls Inits/i look
          bob#2 ok fine 5
        > bob calls Inits/i set
          bob#3 error: the method failed: it may not set a semaphore outside of init
    "#]]
    .assert_eq(&lab.play(
        "
        open bob
        bob creates Inits/i fine
        bob calls Inits/i look
        bob calls Inits/i set
        ",
    ));
}

#[test]
fn a_first_call_that_traps_leaves_no_object() {
    let mut lab = Lab::new(&[PIECES]);
    let objects = |lab: &Lab| lab.machine().objects(None, None, 9).len();
    lab.play("open ann\nann calls Pieces/x v_then_panic s");
    assert_eq!(objects(&lab), 0, "it was made in the segment that was undone");
    lab.play("ann calls Pieces/x p_then_panic s\nann calls Pieces/x v s");
    assert_eq!(objects(&lab), 1, "its first segment stands, and it with it");
}

#[test]
fn removal_ends_callers_without_clean_up_and_takes_all_with_it() {
    let mut lab = Lab::new(&[PIECES, LIFE]);
    lab.play("open ann\nopen bob");
    let before = lab.machine().total();
    let trace = lab.play(
        "
        ann within 500 calls Pieces/x cleanup_p s t
        bob calls Pieces/x p_detached s
        bob calls Pieces/x p_for s 100
        bob calls Pieces/x vs a 1
        bob calls Pieces/x own_then_wait a s
        ann calls Life/l after 50 bell
        ann calls Life/l watch 3 bob
        ann removes Pieces/x
        ann removes Pieces/x
        ann removes Life/l
        +1000 tick
        ann calls Pieces/x count s
        expire bob
        ann removes Pieces/x
        ",
    );
    expect![[r#"
        > ann within 500 calls Pieces/x cleanup_p s t
        > bob calls Pieces/x p_detached s
        > bob calls Pieces/x p_for s 100
        > bob calls Pieces/x vs a 1
          bob#3 ok
        > bob calls Pieces/x own_then_wait a s
        > ann calls Life/l after 50 bell
          ann#2 ok 3
        > ann calls Life/l watch 3 bob
          ann#3 ok 4
        > ann removes Pieces/x
          ann#1 error: the object was removed
          bob#1 error: the object was removed
          bob#2 error: the object was removed
          bob#4 error: the object was removed
          ann#4 ok
        > ann removes Pieces/x
          ann#5 error: the object does not exist, and it is not for this to create it
        > ann removes Life/l
          ann#6 ok
        > +1000 tick
        > ann calls Pieces/x count s
          ann#7 ok 0 free, 0 waiting
        > expire bob
          bob is expired
        > ann removes Pieces/x
          ann#8 ok
    "#]]
    .assert_eq(&trace);
    lab.play("close ann\nopen ann\nopen bob");
    assert!(lab.machine().next_due().is_none());
    assert!(lab.machine().objects(None, None, 9).is_empty());
    assert_ne!(lab.machine().total(), before, "the sessions are others");
}

#[test]
fn a_transient_object_vanishes_when_it_is_as_init_left_it_and_only_then() {
    let mut lab = Lab::new(&[LOCK]);
    let objects = |lab: &Lab| lab.machine().objects(None, None, 9).len();
    lab.play("open ann\nopen bob\nann calls Lock/l take");
    assert_eq!(objects(&lab), 1, "a permit has an owner");
    lab.play("bob calls Lock/l take\nann calls Lock/l give 1");
    assert_eq!(objects(&lab), 1, "the next has it");
    lab.play("bob calls Lock/l give 2");
    assert_eq!(objects(&lab), 0, "it is free");
    lab.play("ann calls Lock/l take");
    lab.play("expire ann");
    assert_eq!(objects(&lab), 0, "the end of the owner's session freed it");
    lab.play("bob calls Lock/l owners\nbob creates Lock/l");
    assert_eq!(objects(&lab), 0, "nothing was ever taken");
    lab.play("bob calls Lock/l take\nopen eve\neve calls Lock/l take_for 10");
    lab.play("bob removes Lock/l");
    assert_eq!(objects(&lab), 0);
}

#[test]
fn a_transient_object_that_is_not_there_is_read_as_init_leaves_it() {
    const TALLY: &str = "
class Tally transient
init create 0
  count s 3
read value 0
  value s -> free
  read a -> x
  return $free
update v 0
  V s
update p 0
  P s
";
    let mut lab = Lab::new(&[TALLY]);
    lab.play("open ann");
    let (hash, image) = (lab.machine().state_hash(), lab.machine().encode_image());
    expect![[r#"
        > read ann Tally/t value
          ok 3
    "#]]
    .assert_eq(&lab.play("read ann Tally/t value"));
    assert_eq!(lab.machine().state_hash(), hash, "it left no trace");
    assert_eq!(lab.machine().encode_image(), image);
    lab.play("ann calls Tally/t p");
    expect![[r#"
        > read ann Tally/t value
          ok 2
    "#]]
    .assert_eq(&lab.play("read ann Tally/t value"));
}

#[test]
fn a_transient_object_with_a_timer_waits_for_it() {
    const SHORT: &str = "
class Short transient
init create 0
update arm 1
  after $0 ring -> id
  return $id
update disarm 1
  cancel $0 -> had
  return $had
update write 0
  write a b
update clear 0
  remove a -> x
update v 0
  V s
update p 0
  P s
handler ring 0
";
    let mut lab = Lab::new(&[SHORT]);
    let objects = |lab: &Lab| lab.machine().objects(None, None, 9).len();
    lab.play("open ann\nann calls Short/s arm 10");
    assert_eq!(objects(&lab), 1);
    lab.play("+10 tick");
    assert_eq!(objects(&lab), 0, "it rang");
    lab.play("ann calls Short/s arm 10\nann calls Short/s disarm 2");
    assert_eq!(objects(&lab), 0, "it was disarmed");
    lab.play("ann calls Short/s write");
    assert_eq!(objects(&lab), 1, "it has an entry");
    lab.play("ann calls Short/s clear");
    assert_eq!(objects(&lab), 0);
    lab.play("ann calls Short/s v");
    assert_eq!(objects(&lab), 1, "a count is not as init left it");
    lab.play("ann calls Short/s p");
    assert_eq!(objects(&lab), 0);
    lab.play("ann calls Short/s p");
    assert_eq!(objects(&lab), 1, "somebody waits");
    lab.play("ann cancels 8");
    assert_eq!(objects(&lab), 0);
}
