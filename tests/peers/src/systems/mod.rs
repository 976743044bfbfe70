//! What is compared, and what each must be able to do.
//!
//! A system is started on loopback with data in a temporary folder, synced as it is by default, and
//! ends when it is dropped. A client has one connection and does one thing at a time; several clients
//! are several connections, spread over the servers.
//! Invariant: each system does the same work with the same effect, by the way that is published for
//! it; what it does differently is said where it does it.
//! Not here: what is measured (`rows/`).

pub(crate) mod counted;
pub(crate) mod etcd;
pub(crate) mod gesmas;
pub(crate) mod processes;
pub(crate) mod redis;
pub(crate) mod zookeeper;

use std::path::Path;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    #[error(transparent)]
    Start(#[from] processes::StartError),
    #[error(transparent)]
    ZooKeeper(#[from] zookeeper::ZooKeeperError),
    #[error("redis: {0}")]
    Redis(#[from] ::redis::RedisError),
    #[error("etcd: {0}")]
    Etcd(#[from] etcd::EtcdError),
    #[error("gesmas: {0}")]
    Gesmas(String),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0} is not ready after {1:?}")]
    Late(&'static str, std::time::Duration),
    #[error("each client has a connection of its own")]
    OneEach,
    #[error("{system}, {work}: {what}")]
    Wrong { system: &'static str, work: String, what: String },
}

pub(crate) type Result<T> = std::result::Result<T, PeerError>;

/// A system that runs.
pub(crate) trait System: Sized {
    /// Its name in the tables.
    const NAME: &'static str;
    type Client: Client + 'static;

    /// Starts its servers and waits until they take work.
    async fn start(folder: &Path) -> Result<Self>;

    /// A client, at the server whose turn it is: the first at the leader.
    async fn connect(&self, number: usize) -> Result<Self::Client>;

    /// Its processes.
    fn processes(&self) -> Vec<u32>;

    /// How often each server has synced its log so far; nothing where that is not counted.
    async fn syncs(&self) -> Result<Vec<u64>>;
}

/// One client, on a connection of its own unless it came to be beside another.
pub(crate) trait Client: Sized {
    /// What a leader has, to stop leading.
    type Term;

    /// Another client, on the same connection, of a system that has such.
    async fn beside(&self) -> Result<Self> {
        Err(PeerError::OneEach)
    }

    /// Makes what the methods below work on, once for each name. A queue is empty, a counter at zero;
    /// a barrier is for so many parties and so many rounds.
    async fn make_register(&self, key: &str) -> Result<()>;
    async fn make_counter(&self, name: &str) -> Result<()>;
    async fn make_queue(&self, name: &str) -> Result<()>;
    async fn make_barrier(&self, name: &str, parties: usize, rounds: usize) -> Result<()>;
    async fn make_election(&self, name: &str) -> Result<()>;

    /// Waits until it sees what another client has made, where that may take a while.
    async fn see(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    /// Writes a value.
    async fn update(&self, key: &str, value: &[u8]) -> Result<()>;
    /// Reads a value: the newest, except on ZooKeeper, whose reads may be late.
    async fn read(&self, key: &str) -> Result<Vec<u8>>;

    /// Adds one, and says how many attempts it took.
    async fn increment(&self, counter: &str) -> Result<u64>;
    /// What a counter counted.
    async fn count(&self, counter: &str) -> Result<u64>;

    /// Adds an item to a queue.
    async fn produce(&self, queue: &str, item: &[u8]) -> Result<()>;
    /// Takes the oldest item, and waits for one if there is none.
    async fn consume(&self, queue: &str) -> Result<Vec<u8>>;

    /// Passes a barrier's round when all parties are at it.
    async fn pass(&self, barrier: &str, parties: usize, round: usize) -> Result<()>;

    /// Waits until this client leads.
    async fn campaign(&self, election: &str) -> Result<Self::Term>;
    /// Stops leading.
    async fn resign(&self, election: &str, term: Self::Term) -> Result<()>;

    /// Bytes that were written to its connection so far.
    fn bytes_sent(&self) -> u64;
}
