//! A deterministic simulator of the replica core.
//!
//! Real replicas (Paxos node, durable log, kernel, both engines) run against simulated disks, a
//! simulated network and simulated clients, in virtual time; a seed decides everything. Faults
//! happen, then stop for a majority, then for all; checkers watch throughout, and everything that is
//! pending must end. Faults of the surroundings and bugs of the product can be planted to prove that a
//! checker notices.
//! Not here: sockets, threads and frames' checksums, which `tests/cluster` runs on real processes.

mod catalog;
mod checkers;
mod clients;
mod cluster;
mod disk;
mod engine;
mod messages;
mod network;
mod options;
mod planted;
mod prng;
mod progress;
pub mod rival;
mod run;
mod schedule;
mod trace;
mod twins;
mod verdict;
mod vessel;
mod workloads;
pub mod yard;

pub use crate::{
    options::{Options, Plant},
    planted::{Notice, notice},
    progress::Progress,
    run::{run_seed, run_seeds},
    twins::Twin,
    verdict::{Counts, FAULTS, MARKS, Verdict, Violation},
    workloads::IN_TURN,
};
