//! ZooKeeper: three servers from Debian's package, and what the benchmark asks of them.

mod client;
mod recipes;
mod servers;
mod wire;

pub(crate) use self::{client::ZooKeeperError, servers::ZooKeeper};
