//! The gesmas server and its command line.

pub mod demo;
pub mod cli;
pub mod log;
pub mod paxos;
pub mod replica;
pub mod shell;
