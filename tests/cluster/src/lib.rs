//! Clusters of real `gesmas serve` processes on loopback, for tests.
//!
//! Invariants: processes are ended by their own ids when a cluster is dropped, whatever the test
//! did; nothing waits without a bound; nothing sleeps in place of a condition: what a test waits for
//! is looked at again and again until it holds ([`wait`]).
//! The binary is the one of this build: `cargo` is asked to bring it up to date, once a process, in
//! the profile and target folder that the test itself lies in (`binary.rs`).
//! Not here: a network that loses messages and disks that lose writes (the simulator has those).

mod binary;
mod bystander;
mod class;
mod cluster;
mod collector;
mod hostile;
mod http;
mod load;
mod ports;
mod proxy;
mod replica;
pub mod wait;
mod wire;

pub use crate::{
    binary::gesmas_binary,
    bystander::Bystander,
    class::{Class, arguments},
    cluster::{Cluster, Setup},
    collector::{Collector, Exported},
    hostile::{Ledger, hostile_class, interface_with, with_interface},
    http::{Answer, Http},
    load::Load,
    proxy::Proxy,
    replica::Look,
    wire::{Wire, frame},
};
