//! The gesmas server and its command line.

pub mod bench;
pub mod cli;
pub mod demo;
mod door;
mod failure;
mod folder;
pub mod gateway;
mod interface;
pub mod json;
pub mod local_cluster;
pub mod log;
pub mod paxos;
pub mod replica;
pub mod shell;
pub mod snapshot;
pub mod trace;
mod view;
