//! `gesmas bench`: what calls cost, measured on the machine it runs on.
//!
//! What is asked: what a call costs in the kernel alone, and how long a snapshot of much state lets it
//! pause (`kernel/`), how long the longest steps of the standard classes take (`steps/`), how many calls a
//! second a cluster of three replicas takes, with which latencies (`cluster/`), how long an update waits
//! when replicas are lost (`failover.rs`), and what callers cost that wait (`blocked.rs`).
//! Invariants: figures are measured, never computed from a model; each comes with the load of the
//! machine while it was taken (`load.rs`), because on a busy machine it means little; nothing here
//! passes or fails by a figure.
//! Not here: comparison with other systems, and advice.

pub mod blocked;
pub mod cluster;
pub mod failover;
pub mod kernel;
pub mod load;
pub mod sample;
pub mod steps;
