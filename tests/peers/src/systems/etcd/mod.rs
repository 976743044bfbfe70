//! etcd: three servers from Debian's package, and the recipes of its own Go packages.

mod client;
mod recipes;
mod servers;
mod wire;

pub(crate) use self::{client::EtcdError, servers::Etcd};
