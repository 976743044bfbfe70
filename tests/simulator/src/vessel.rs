//! `Vessel`: a class for the simulation, as a script, that uses up what limits bound.
//!
//! A call waits at the gate; after it, it takes memory, burns fuel or fills its journal, and counts
//! itself if it came through. Bombs are timers that set themselves again at once, for ever. The
//! second version of the class is tried by operators and never loaded: its `migrate` changes all
//! that callers of the first can see.
//! Scripts run in every seed, and their engine keeps the memory limit of a frame as the one of
//! WebAssembly does.

/// What clients load.
pub(crate) const FIRST: &str = "class Vessel
init create 0
  write big 0123456789012345678901234567890123456789012345678901234567890123456789
update swell 1
  P gate
  grow $0
  goto count
count:
  read count -> n
  add n 1
  write count $n
  return $n
update burn 1
  P gate
  burn $0
  read count -> n
  add n 1
  write count $n
  return $n
update fill 1
  P gate
again:
  read big -> x
  add i 1
  if $i != $0 again
  read count -> n
  add n 1
  write count $n
  return $n
update open 1
  V gate $0
  return
update light 1
  after 0 tick -> a
  after 0 tick -> b
  after 0 tick -> c
  return
read total 0
  read count -> n
  return $n
handler tick 0
  after 0 tick -> a
";

/// What operators try.
pub(crate) const SECOND: &str = "class Vessel version 2 layout 2
init create 0
  return
migrate upgrade 0
  write count 0
  V gate 7
  after 0 tick -> a
update open 1
  V gate $0
  return
handler tick 0
  after 0 tick -> a
";
