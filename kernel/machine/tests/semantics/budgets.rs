//! Segments that continue with others, and the budgets that bound them.

use expect_test::expect;

use crate::{lab::Lab, standard::PIECES};

#[test]
fn continuing_begins_a_segment_with_an_empty_journal() {
    let mut lab = Lab::with_limits(&[PIECES], |limits| limits.journal_bytes = 40);
    let trace = lab.play(
        "
        open ann
        ann calls Pieces/x loop_with s 20
        ann calls Pieces/x vs s 19
        ann calls Pieces/x v s
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Pieces/x loop_with s 20
        > ann calls Pieces/x vs s 19
          ann#2 ok
        > ann calls Pieces/x v s
          ann#3 ok
          ann#1 ok done
    "#]]
    .assert_eq(&trace);
}

const CONTINUE: &str = "
class Continue
init create 0
update to_nobody 0
  write before stands
  continue nobody
update to_read 0
  continue look before
update then_panic 0
  write before stands
  acquire s -> p
  continue panics
update panics 0
  write after undone
  panic at last
update again 0
  continue again
handler to_handler 0
  write handler ran
  return from the handler
update via_handler 0
  continue to_handler
update give 1
  V s $0
  return
read look 1
  read $0 -> x
  return $x
";

#[test]
fn a_continued_method_is_a_segment_of_its_own() {
    let mut lab = Lab::with_limits(&[CONTINUE], |limits| limits.segments_per_step = 9);
    let trace = lab.play(
        "
        open ann
        ann calls Continue/c to_nobody
        read ann Continue/c look before
        ann calls Continue/c to_read
        ann calls Continue/c give 1
        ann calls Continue/c then_panic
        read ann Continue/c look before
        read ann Continue/c look after
        ann calls Continue/c again
        ann calls Continue/c via_handler
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Continue/c to_nobody
          ann#1 error: the method failed: its class has no such handler or method: nobody
        > read ann Continue/c look before
          error: the object does not exist, and it is not for this to create it
        > ann calls Continue/c to_read
          ann#2 error: the method failed: its class has no such handler or method: look
        > ann calls Continue/c give 1
          ann#3 ok
        > ann calls Continue/c then_panic
          ann#4 error: the method failed: it panicked: at last
        > read ann Continue/c look before
          ok stands
        > read ann Continue/c look after
          ok none
        > ann calls Continue/c again
          ann#5 error: the method failed: it used up its budget for one step: segments_per_step is 9
        > ann calls Continue/c via_handler
          ann#6 ok from the handler
    "#]]
    .assert_eq(&trace);
}

#[test]
fn fuel_is_bounded_for_a_segment_and_for_a_step() {
    const BURN: &str = "
class Burn
init create 0
update once 1
  write before undone
  burn $0
  return
update often 2
  burn $0
  V s
  P s
  burn $0
  add 1 18446744073709551615
  if $1 = 0 done
  continue often $0 $1
done:
  return done
read look 1
  burn $0
  return
";
    let mut lab = Lab::with_limits(&[BURN], |limits| {
        limits.fuel_per_segment = 100;
        limits.fuel_per_step = 250;
    });
    let trace = lab.play(
        "
        open ann
        ann calls Burn/b once 98
        ann calls Burn/b once 99
        ann calls Burn/b often 40 2
        ann calls Burn/b often 40 3
        read ann Burn/b look 99
        read ann Burn/b look 100
        ",
    );
    expect![[r#"
        > open ann
          ann is session 2
        > ann calls Burn/b once 98
          ann#1 ok
        > ann calls Burn/b once 99
          ann#2 error: the method failed: it used up its fuel of 100 for one segment
        > ann calls Burn/b often 40 2
          ann#3 ok done
        > ann calls Burn/b often 40 3
          ann#4 error: the method failed: it used up its budget for one step: fuel_per_step is 250
        > read ann Burn/b look 99
          ok
        > read ann Burn/b look 100
          error: the method failed: it used up its fuel of 100 for one segment
    "#]]
    .assert_eq(&trace);
}
