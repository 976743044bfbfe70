//! Calls that would wait for each other for ever.

use expect_test::expect;

use crate::check;

/// A table with forks, one permit each, and a bell that nobody owns.
const TABLE: &str = "
class Table
init create 0
  count left 1
  count right 1
  count third 1
  count pair 2
update eat 2
  acquire $0 -> one
  P bell
  acquire $1 -> two
  log dines with $0 and $1 : $two
  return dined
update tidy 2
  acquire $0 -> one
  P bell
  acquire $1 -> two
  if $two = cancelled up
  return dined
up:
  log tidies up
  write tidied $0
  cancelled
update keep 1
  hold $0 -> permit
  return $permit
update patient 2
  acquire $0 -> one
  P bell
  acquire $1 for 100 -> two
  return patient got $two
update ring 1
  V bell $0
  return
";

#[test]
fn the_newest_of_a_cycle_is_cancelled_and_the_others_go_on() {
    check(
        &[TABLE],
        "
        open ann
        ann calls Table/t eat left right
        ann calls Table/t eat right third
        ann calls Table/t tidy third left
        ann calls Table/t ring 3
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Table/t eat left right
            > ann calls Table/t eat right third
            > ann calls Table/t tidy third left
            > ann calls Table/t ring 3
              ann#4 ok
              log of Table/t: tidies up
              ann#3 error: the call was cancelled: it would have waited for calls that wait for it
              log of Table/t: dines with right and third : 4
              ann#2 ok dined
              log of Table/t: dines with left and right : 5
              ann#1 ok dined
        "#]],
    );
}

#[test]
fn whoever_owns_all_permits_of_what_it_asks_for_waits_for_itself() {
    check(
        &[TABLE],
        "
        open ann
        ann calls Table/t eat left left
        ann calls Table/t ring 1
        ann calls Table/t eat pair pair
        ann calls Table/t ring 1
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Table/t eat left left
            > ann calls Table/t ring 1
              ann#2 ok
              log of Table/t: dines with left and left : cancelled
              ann#1 ok dined
            > ann calls Table/t eat pair pair
            > ann calls Table/t ring 1
              ann#4 ok
              log of Table/t: dines with pair and pair : 3
              ann#3 ok dined
        "#]],
    );
}

#[test]
fn who_may_go_on_by_other_means_is_in_no_deadlock() {
    check(
        &[TABLE],
        "
        open ann
        ann calls Table/t patient left right
        ann calls Table/t eat right left
        ann calls Table/t ring 2
        +200 tick
        ann calls Table/u keep left
        ann calls Table/u eat right left
        ann calls Table/u ring 1
        ann calls Table/u eat third right
        ann calls Table/u ring 1
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Table/t patient left right
            > ann calls Table/t eat right left
            > ann calls Table/t ring 2
              ann#3 ok
            > +200 tick
              ann#1 ok patient got timed-out
              log of Table/t: dines with right and left : 3
              ann#2 ok dined
            > ann calls Table/u keep left
              ann#4 ok 4
            > ann calls Table/u eat right left
            > ann calls Table/u ring 1
              ann#6 ok
            > ann calls Table/u eat third right
            > ann calls Table/u ring 1
              ann#8 ok
        "#]],
    );
}
