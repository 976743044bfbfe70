//! Tests of the node: each workaround with and without, crashes at every point of a turn, and the
//! bytes on the wire.

mod bytes;
mod cluster;
mod refusals;
mod scripts;
mod simulation;
mod snapshots;
