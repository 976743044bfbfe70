//! The classes that scenarios share.

/// The queue of the paper.
pub(crate) const QUEUE: &str = "
class Queue
init create 1
  count free $0
update produce 1
  P free
  push items $
  V filled
  return
update consume 0
  P filled
  pop items -> item
  V free
  return $item
update consume_and_panic 0
  P filled
  pop items -> item
  V free
  panic $item is gone
update burst 1
  V filled $0
  return
read length 0
  length items -> n
  return $n
";

/// Blocks until so many have come; one that is cancelled un-counts itself.
pub(crate) const BARRIER: &str = "
class Barrier transient
init create 0
  count turn 1
update arrive 1
  read here -> here
  if $here = none first
  goto rest
first:
  let here 0
rest:
  add here 1
  if $here = $0 last
  write here $here
  P open -> got
  if $got = cancelled leave
  return passed
last:
  remove here -> x
  add here -1
  let others $0
  add others 18446744073709551615
  V open $others
  return last
leave:
  read here -> here
  add here 18446744073709551615
  if $here = 0 nobody
  write here $here
  cancelled
nobody:
  remove here -> x
  cancelled
read here 0
  read here -> here
  return $here
";

/// A lock that the caller's session holds.
pub(crate) const LOCK: &str = "
class Lock transient
init create 0
  count free 1
update take 0
  hold free -> permit
  if $permit = session-over over
  if $permit = cancelled gone
  token -> token
  return $permit token $token
over:
  fail session over
gone:
  cancelled
update take_for 1
  hold free for $0 -> permit
  return $permit
update give 1
  release $0 -> had
  return $had
update owners 0
  owners free -> owners
  return $owners
";

/// Pieces to put scenarios together from.
pub(crate) const PIECES: &str = "
class Pieces
init create 0
update p 1
  P $0
  return passed
update try 1
  try $0 -> got
  return $got
update v 1
  V $0
  return
update vs 2
  V $0 $1
  return
update v_then_try 1
  V $0
  try $0 -> got
  return $got
update v_then_p 1
  V $0
  P $0
  return passed
update p_for 2
  P $0 for $1 -> got
  return $got
update p_until 2
  P $0 until $1 -> got
  return $got
update p_then_panic 1
  P $0
  write seen it
  panic after P
update v_then_panic 1
  V $0
  panic after V
update two_waits_then_panic 2
  P $0
  write first stands
  P $1
  write second undone
  panic in the second segment
update own_then_wait_then_panic 2
  acquire $0 -> a
  acquire $0 -> b
  P $1
  panic with two permits
update bare_then_wait_then_panic 2
  P $0
  P $1
  panic with a bare permit
update own_then_wait 2
  acquire $0 -> a
  P $1
  return
update wait_then_fail 1
  P $0
  write kept by fail
  fail no luck
update wait_then_abort 1
  P $0
  write undone by abort
  abort no luck
update look 1
  read $0 -> value
  return $value
update count 1
  value $0 -> n
  waiters $0 -> w
  return $n free, $w waiting
detached p_detached 1
  P $0
  write detached ran
  return passed
update cleanup_p 2
  P $0 -> got
  if $got = cancelled clean
  return $got
clean:
  P $1 -> second
  write cleanup $second
  cancelled
update cleanup_panic 1
  P $0 -> got
  write cleanup undone
  V other
  panic in the clean-up
update cleanup_fuel 1
  P $0 -> got
  write cleanup undone
  burn 999999999
  return
update cleanup_swallow 1
  P $0 -> got
  return $got anyway
update loop_with 2
  P $0
  add 1 18446744073709551615
  if $1 = 0 done
  continue loop_with $0 $1
done:
  return done
update session 0
  session -> s
  principal -> p
  object -> o
  return $s $p $o
";

/// Numbers, events, timers and watches.
pub(crate) const LIFE: &str = "
class Life
init create 0
update after 2
  after $0 ring $1 -> id
  return $id
update after_panic 2
  after $0 ring_panic $1 -> id
  return $id
update watch 2
  watch $0 ring $1 -> id
  return $id
update cancel 1
  cancel $0 -> had
  return $had
update notify 2
  notify $0 $1
  return
update now 0
  now -> t
  return $t
update token 0
  token -> t
  return $t
update random 0
  random -> a
  random -> b
  if $a = $b same
  return differ
same:
  return same
update token_then_abort 0
  token -> t
  abort $t
update look 1
  read $0 -> value
  return $value
update wait_for_rings 0
  P rung
  return rung
update bad_handler 0
  after 5 nobody -> id
  return
handler ring 1
  now -> t
  session -> s
  principal -> p
  write rung $ at $t session $s by $p
  log $ rang
  V rung
  return
handler ring_panic 1
  write rung wrongly
  panic cannot ring $
handler ring_hold 1
  hold lock -> got
  write held $got
  return
update after_hold 1
  after $0 ring_hold -> id
  return
";
