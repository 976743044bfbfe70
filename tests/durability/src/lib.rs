//! Suspended calls outlive the process: what the tests of that share.
//!
//! A *script* writes one log for a class while a machine that nobody interrupts runs it; what came
//! out of each entry is recorded. Then other machines are killed between entries of the same log:
//! what is left of them is an image, and a new machine with a new engine goes on from it.
//! Invariant: whatever is compared is compared with the uninterrupted run, entry by entry: effects,
//! hashes, what the entry made the machine do, and every host call of the bodies that ended in it.
//! Not here: random histories and parked bodies (`kernel/coroutine/tests/differential`), damaged
//! images (`kernel/machine/tests`), files, power cuts and replicas (`tests/simulator`).

mod golden;
mod kill;
mod kind;
mod run;
pub mod scripts;
mod watched;
mod writer;

pub use crate::{
    golden::Golden,
    kill::{Kills, kill_after_every_entry, kill_where_suspended},
    kind::{Kind, Modules, Native},
    run::{Recorded, Run, Seen, run},
    watched::{Life, Point, Watched},
    writer::{Call, Writer},
};
