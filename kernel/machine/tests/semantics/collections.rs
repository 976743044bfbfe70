//! Deques, maps and scans, and what a guest can spoil of them.

use expect_test::expect;

use crate::check;

const STORE: &str = "
class Store
init create 0
update push 2
  push $0 $1
update pushfront 2
  pushfront $0 $1
update pop 1
  pop $0 -> x
  return $x
update popback 1
  popback $0 -> x
  return $x
update at 2
  at $0 $1 -> x
  return $x
update insert 3
  insert $0 $1 $2 -> old
  return $old
update delete 2
  delete $0 $1 -> old
  return $old
update lookup 2
  lookup $0 $1 -> x
  return $x
update write 2
  write $0 $1
update read 1
  read $0 -> x
  return $x
update remove 1
  remove $0 -> x
  return $x
update length 1
  length $0 -> n
  return $n
update scan 1
  scan $0 -> x
  return $x
update scan_after 2
  scan $0 after $1 most 2 -> x
  return $x
update scan_before 2
  scan $0 after $1 back -> x
  return $x
update scan_back 1
  scan $0 back most 1 -> x
  return $x
";

#[test]
fn deques_and_maps_keep_their_order_and_length() {
    check(
        &[STORE],
        "
        open ann
        ann calls Store/s push d b; ann calls Store/s push d c; ann calls Store/s pushfront d a
        ann calls Store/s length d
        ann calls Store/s at d 0; ann calls Store/s at d 2; ann calls Store/s at d 3; ann calls Store/s at d 18446744073709551615
        ann calls Store/s popback d; ann calls Store/s pop d; ann calls Store/s pop d; ann calls Store/s pop d; ann calls Store/s popback d
        ann calls Store/s length d
        ann calls Store/s insert m b 2; ann calls Store/s insert m a 1; ann calls Store/s insert m b 3
        ann calls Store/s length m; ann calls Store/s lookup m b; ann calls Store/s lookup m c
        ann calls Store/s delete m b; ann calls Store/s delete m b; ann calls Store/s delete m a
        ann calls Store/s length m
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Store/s push d b; ann calls Store/s push d c; ann calls Store/s pushfront d a
              ann#1 ok
              ann#2 ok
              ann#3 ok
            > ann calls Store/s length d
              ann#4 ok 3
            > ann calls Store/s at d 0; ann calls Store/s at d 2; ann calls Store/s at d 3; ann calls Store/s at d 18446744073709551615
              ann#5 ok a
              ann#6 ok c
              ann#7 ok none
              ann#8 ok none
            > ann calls Store/s popback d; ann calls Store/s pop d; ann calls Store/s pop d; ann calls Store/s pop d; ann calls Store/s popback d
              ann#9 ok c
              ann#10 ok a
              ann#11 ok b
              ann#12 ok none
              ann#13 ok none
            > ann calls Store/s length d
              ann#14 ok 0
            > ann calls Store/s insert m b 2; ann calls Store/s insert m a 1; ann calls Store/s insert m b 3
              ann#15 ok none
              ann#16 ok none
              ann#17 ok 2
            > ann calls Store/s length m; ann calls Store/s lookup m b; ann calls Store/s lookup m c
              ann#18 ok 2
              ann#19 ok 3
              ann#20 ok none
            > ann calls Store/s delete m b; ann calls Store/s delete m b; ann calls Store/s delete m a
              ann#21 ok 3
              ann#22 ok none
              ann#23 ok 1
            > ann calls Store/s length m
              ann#24 ok 0
        "#]],
    );
}

#[test]
fn scans_keep_to_their_collection() {
    check(
        &[STORE],
        r#"
        open ann
        ann calls Store/s insert m a 1; ann calls Store/s insert m b 2; ann calls Store/s insert m c 3; ann calls Store/s insert mm x 9; ann calls Store/s insert m\0 y 8
        ann calls Store/s scan m
        ann calls Store/s scan_after m a
        ann calls Store/s scan_after m aa
        ann calls Store/s scan_after m ""
        ann calls Store/s scan_after m z
        ann calls Store/s scan_before m c
        ann calls Store/s scan_before m ""
        ann calls Store/s scan_back m
        ann calls Store/s scan ""
        ann calls Store/s scan_before "" ""
        ann calls Store/s scan nothing
        "#,
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Store/s insert m a 1; ann calls Store/s insert m b 2; ann calls Store/s insert m c 3; ann calls Store/s insert mm x 9; ann calls Store/s insert m\0 y 8
              ann#1 ok none
              ann#2 ok none
              ann#3 ok none
              ann#4 ok none
              ann#5 ok none
            > ann calls Store/s scan m
              ann#6 ok =\0\0\0\0\0\0\0,\0y=8,a=1,b=2,c=3
            > ann calls Store/s scan_after m a
              ann#7 ok b=2,c=3
            > ann calls Store/s scan_after m aa
              ann#8 ok b=2,c=3
            > ann calls Store/s scan_after m ""
              ann#9 ok \0y=8,a=1
            > ann calls Store/s scan_after m z
              ann#10 ok
            > ann calls Store/s scan_before m c
              ann#11 ok b=2,a=1,\0y=8,=\0\0\0\0\0\0\0
            > ann calls Store/s scan_before m ""
              ann#12 ok
            > ann calls Store/s scan_back m
              ann#13 ok c=3
            > ann calls Store/s scan ""
              ann#14 ok
            > ann calls Store/s scan_before "" ""
              ann#15 ok
            > ann calls Store/s scan nothing
              ann#16 ok
        "#]],
    );
}

#[test]
fn garbage_where_a_header_should_be_harms_its_own_object_only() {
    check(
        &[STORE],
        r#"
        open ann
        ann calls Store/s write d garbage
        ann calls Store/s length d; ann calls Store/s pop d; ann calls Store/s popback d; ann calls Store/s at d 0
        ann calls Store/s push d a
        ann calls Store/s pop d
        ann calls Store/s write d \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0
        ann calls Store/s pop d
        ann calls Store/s pushfront d a; ann calls Store/s popback d
        ann calls Store/s write d xxxxxxxxyyyyyyyy
        ann calls Store/s pop d; ann calls Store/s push d z; ann calls Store/s popback d; ann calls Store/s popback d
        ann calls Store/s length d
        ann calls Store/s write m x
        ann calls Store/s delete m a; ann calls Store/s insert m a 1; ann calls Store/s length m; ann calls Store/s delete m a; ann calls Store/s length m
        ann calls Store/s write m xxxxxxxxyyyyyyyy
        ann calls Store/s insert m b 2; ann calls Store/s delete m b
        "#,
        &expect![[r#"
            > open ann
              ann is session 2
            > ann calls Store/s write d garbage
              ann#1 ok
            > ann calls Store/s length d; ann calls Store/s pop d; ann calls Store/s popback d; ann calls Store/s at d 0
              ann#2 ok 0
              ann#3 ok none
              ann#4 ok none
              ann#5 ok none
            > ann calls Store/s push d a
              ann#6 ok
            > ann calls Store/s pop d
              ann#7 ok a
            > ann calls Store/s write d \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0
              ann#8 ok
            > ann calls Store/s pop d
              ann#9 ok none
            > ann calls Store/s pushfront d a; ann calls Store/s popback d
              ann#10 ok
              ann#11 ok a
            > ann calls Store/s write d xxxxxxxxyyyyyyyy
              ann#12 ok
            > ann calls Store/s pop d; ann calls Store/s push d z; ann calls Store/s popback d; ann calls Store/s popback d
              ann#13 ok none
              ann#14 ok
              ann#15 ok z
              ann#16 ok none
            > ann calls Store/s length d
              ann#17 ok 8753160913407277431
            > ann calls Store/s write m x
              ann#18 ok
            > ann calls Store/s delete m a; ann calls Store/s insert m a 1; ann calls Store/s length m; ann calls Store/s delete m a; ann calls Store/s length m
              ann#19 ok none
              ann#20 ok none
              ann#21 ok 1
              ann#22 ok 1
              ann#23 ok 0
            > ann calls Store/s write m xxxxxxxxyyyyyyyy
              ann#24 ok
            > ann calls Store/s insert m b 2; ann calls Store/s delete m b
              ann#25 ok none
              ann#26 ok 2
        "#]],
    );
}
