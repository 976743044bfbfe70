//! Classes are replaced: who runs which code, what is in the way, how objects come up to date.

use expect_test::expect;

use crate::check;

/// A door: two who wait, a timer, and a value.
const DOOR: &str = "
class Door
init create 0
  write name old
update wait 0
  P open
  log the first code goes on
  P open
  continue wait
update say 0
  read name -> name
  return $name
read look 0
  read name -> name
  return $name
update alarm 1
  after $0 ring x -> id
  return $id
update open 0
  V open
  return
handler ring 1
  log the first code rings
";

/// The same layout, other code.
const DOOR_2: &str = "
class Door version 2
init create 0
  write name new
update wait 0
  log the second code waits
  P open
  return second
update say 0
  return second
read look 0
  return second
update open 0
  V open
  return
handler ring 1
  log the second code rings
";

/// Another layout, and a way to it.
const DOOR_3: &str = "
class Door version 3 layout 3
init create 0
  write title new
migrate upgrade 0
  read name -> name
  write title $name
  remove name
  log migrated to 3 from $name
update say 0
  read title -> title
  return third $title
read look 0
  read title -> title
  return third $title
update open 0
  V open
  return
handler ring 1
  log the third code rings
";

/// One more layout, whose way is barred.
const DOOR_4: &str = "
class Door version 4 layout 4
init create 0
  return
migrate upgrade 0
  log tries
  write heading x
  panic no way
update say 0
  return fourth
read look 0
  return fourth
handler ring 1
  log the fourth code rings
";

/// The same layout as the last, mended.
const DOOR_5: &str = "
class Door version 5 layout 4
init create 0
  return
migrate upgrade 0
  read title -> title
  write heading $title
  remove title
  log migrated to 4 from $title
update say 0
  read heading -> heading
  return fifth $heading
read look 0
  read heading -> heading
  return fifth $heading
handler ring 1
  log the fifth code rings
";

/// Lacks the handler.
const DOOR_6: &str = "
class Door version 6
update say 0
  return sixth
";

pub(crate) const ALL: [&str; 6] = [DOOR, DOOR_2, DOOR_3, DOOR_4, DOOR_5, DOOR_6];

const COMPILED: &str = "replica 1 compiled Door@N; replica 2 compiled Door@N";

pub(crate) fn compiled(number: u32) -> String {
    COMPILED.replace('N', &number.to_string())
}

#[test]
fn blocked_calls_stay_in_their_code_and_new_ones_run_the_new() {
    check(
        &ALL,
        &format!(
            "
            open ann
            ann calls Door/d wait
            root replaces Door@2
            ann calls Door/d say
            {}
            ann calls Door/d say
            ann calls Door/d wait
            ann calls Door/d open; ann calls Door/d open
            ann calls Door/d open; ann calls Door/d open
            ",
            compiled(2)
        ),
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Door/d wait
            > root replaces Door@2
              compile Door
            > ann calls Door/d say
              ann#2 ok old
            > replica 1 compiled Door@2; replica 2 compiled Door@2
              root#2 ok 32 bytes
            > ann calls Door/d say
              ann#3 ok second
            > ann calls Door/d wait
              log of Door/d: the second code waits
            > ann calls Door/d open; ann calls Door/d open
              ann#5 ok
              log of Door/d: the first code goes on
              ann#6 ok
              ann#4 ok second
            > ann calls Door/d open; ann calls Door/d open
              ann#7 ok
              ann#8 ok
              log of Door/d: the first code goes on
        "#]],
    );
}

#[test]
fn another_layout_waits_for_nobody_and_is_refused_or_clears_its_way() {
    check(
        &ALL,
        &format!(
            "
            open ann
            ann calls Door/d wait
            root replaces Door@3
            root replaces Door@3 cancelling
            ann calls Door/d wait
            {}
            read ann Door/d look
            migrate Door/d
            read ann Door/d look
            ann calls Door/e say
            root replaces Door@3
            ",
            compiled(3)
        ),
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Door/d wait
            > root replaces Door@3
              root#2 error: the new code of class Door has another layout of state, and calls are blocked in the old one: 1
            > root replaces Door@3 cancelling
              compile Door
            > ann calls Door/d wait
            > replica 1 compiled Door@3; replica 2 compiled Door@3
              ann#1 error: the call was cancelled: an operator ended it
              ann#2 error: the call was cancelled: an operator ended it
              root#3 ok 32 bytes
            > read ann Door/d look
              refused: Door/d is being migrated
            > migrate Door/d
              log of Door/d: migrated to 3 from old
            > read ann Door/d look
              ok third old
            > ann calls Door/e say
              ann#3 ok third new
            > root replaces Door@3
              root#4 ok 32 bytes
        "#]],
    );
}

#[test]
fn objects_pass_every_layout_and_a_failed_migration_is_mended_by_newer_code() {
    check(
        &ALL,
        &format!(
            "
            open ann
            ann calls Door/d say
            ann calls Door/quiet say
            root replaces Door@3
            {}
            ann calls Door/d say
            root replaces Door@4
            {}
            ann calls Door/d say
            read ann Door/d look
            migrate Door/d
            ann calls Door/new say
            root replaces Door@5
            {}
            ann calls Door/d say
            ann calls Door/quiet say
            ann calls Door/new say
            ",
            compiled(3),
            compiled(4),
            compiled(5)
        ),
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Door/d say
              ann#1 ok old
            > ann calls Door/quiet say
              ann#2 ok old
            > root replaces Door@3
              compile Door
            > replica 1 compiled Door@3; replica 2 compiled Door@3
              root#2 ok 32 bytes
            > ann calls Door/d say
              log of Door/d: migrated to 3 from old
              ann#3 ok third old
            > root replaces Door@4
              compile Door
            > replica 1 compiled Door@4; replica 2 compiled Door@4
              root#3 ok 32 bytes
            > ann calls Door/d say
              log of Door/d: tries
              ann#4 error: the object could not be migrated: it panicked: no way
            > read ann Door/d look
              error: the object could not be migrated: it panicked: no way
            > migrate Door/d
              log of Door/d: tries
            > ann calls Door/new say
              ann#5 ok fourth
            > root replaces Door@5
              compile Door
            > replica 1 compiled Door@5; replica 2 compiled Door@5
              root#4 ok 32 bytes
            > ann calls Door/d say
              log of Door/d: migrated to 4 from old
              ann#6 ok fifth old
            > ann calls Door/quiet say
              log of Door/quiet: migrated to 3 from old
              log of Door/quiet: migrated to 4 from old
              ann#7 ok fifth old
            > ann calls Door/new say
              ann#8 ok fifth none
        "#]],
    );
}

#[test]
fn timers_are_typed_by_the_code_that_they_will_run() {
    check(
        &ALL,
        &format!(
            "
            open ann
            ann calls Door/d alarm 50
            root replaces Door@6
            root replaces Door@3
            {}
            +60 tick
            root replaces Door@6
            ",
            compiled(3)
        ),
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Door/d alarm 50
              ann#1 ok 1
            > root replaces Door@6
              root#2 error: Door/d has a timer or watch for ring, which the new code lacks or has changed
            > root replaces Door@3
              compile Door
            > replica 1 compiled Door@3; replica 2 compiled Door@3
              root#3 ok 32 bytes
            > +60 tick
              log of Door/d: migrated to 3 from old
              log of Door/d: the third code rings
            > root replaces Door@6
              root#4 error: the new code of class Door has no `migrate` from the layouts that objects have
        "#]],
    );
}

#[test]
fn one_replacement_at_a_time_and_its_failure_leaves_the_old_code() {
    check(
        &ALL,
        "
        open ann
        open bob
        open eve
        ann calls Door/d say
        root puts Door return x
        root replaces Door@2
        ann replaces Door@2
        bob replaces Door@3
        eve removes-class Door
        replica 1 failed Door@2 no room; replica 2 failed Door@2 no room
        ann calls Door/d say
        bob repeats 1
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > open eve
              eve is session 4
            > ann calls Door/d say
              ann#1 ok old
            > root puts Door return x
              root#2 error: class Door exists with other code: bca4f9d82d69f048322383a44b46d97f55e8767dea3a526b1e862b6785077d75
            > root replaces Door@2
              compile Door
            > ann replaces Door@2
            > bob replaces Door@3
              bob#1 refused: class Door is being compiled
            > eve removes-class Door
              eve#1 refused: class Door is being compiled
            > replica 1 failed Door@2 no room; replica 2 failed Door@2 no room
              root#3 error: the module could not be compiled: no room
              ann#2 error: the module could not be compiled: no room
            > ann calls Door/d say
              ann#3 ok old
            > bob repeats 1
              compile Door
        "#]],
    );
}

#[test]
fn a_class_is_removed_when_nothing_needs_it() {
    check(
        &ALL,
        "
        open ann
        ann calls Door/d wait
        root removes-class Door
        ann removes Door/d
        root removes-class Door
        root removes-class Door
        ann calls Door/d say
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Door/d wait
            > root removes-class Door
              root#2 error: class Door is in use: 1 objects, 1 blocked calls
            > ann removes Door/d
              ann#1 error: the object was removed
              ann#2 ok
            > root removes-class Door
              root#3 ok
            > root removes-class Door
              root#4 error: class Door is not loaded
            > ann calls Door/d say
              ann#3 refused: class Door is not loaded
        "#]],
    );
}
