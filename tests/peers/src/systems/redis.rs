//! redis: one process, not replicated, its log synced after each turn. An upper reference, no rival.
//!
//! A queue is a list, a barrier a counter with a list of permits, an election a list with one token. A
//! client that dies takes an item, a permit or the token along for good; nothing of the others does.

use std::{path::Path, process::Command, time::Duration};

use ::redis::{
    AsyncConnectionConfig, AsyncTypedCommands as _, RedisConnectionInfo, aio::MultiplexedConnection,
};
use tokio::task::JoinHandle;

use super::{
    Client, Result, System,
    counted::{Count, Counted},
    processes::{Cluster, free_ports, until},
};

/// A server that takes no connection by then will not.
const PATIENCE: Duration = Duration::from_secs(20);

/// See the file's head.
pub(crate) struct Redis(Cluster);

impl System for Redis {
    const NAME: &'static str = "redis";
    type Client = RedisClient;

    async fn start(folder: &Path) -> Result<Self> {
        let ports = free_ports(1)?;
        let mut cluster = Cluster::new(&ports);
        let mut command = Command::new("redis-server");
        command.args(["--port", &ports[0].to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(folder);
        cluster.spawn(command, &folder.join("redis.log"))?;
        let system = Self(cluster);
        until(Self::NAME, PATIENCE, async || system.connect(0).await.is_ok()).await?;
        Ok(system)
    }

    async fn connect(&self, _number: usize) -> Result<RedisClient> {
        let sent = Count::default();
        let stream = Counted::connect(self.0.clients()[0], sent.clone()).await?;
        // Whoever waits for an item waits for as long as it takes.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let info = RedisConnectionInfo::default();
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&info, stream, config).await?;
        Ok(RedisClient { connection, driver: tokio::spawn(driver), sent })
    }

    fn processes(&self) -> Vec<u32> {
        self.0.processes()
    }

    async fn syncs(&self) -> Result<Vec<u64>> {
        Ok(Vec::new())
    }
}

/// One connection.
pub(crate) struct RedisClient {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    sent: Count,
}

impl Drop for RedisClient {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl RedisClient {
    /// A handle; the connection is the same.
    fn handle(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    async fn pop(&self, list: &str) -> Result<Vec<u8>> {
        let mut command = ::redis::cmd("BRPOP");
        let popped: (String, Vec<u8>) =
            command.arg(list).arg(0).query_async(&mut self.handle()).await?;
        Ok(popped.1)
    }
}

impl Client for RedisClient {
    type Term = ();

    async fn make_register(&self, key: &str) -> Result<()> {
        Ok(self.handle().set(key, "").await?)
    }

    async fn make_counter(&self, name: &str) -> Result<()> {
        Ok(self.handle().set(name, 0).await?)
    }

    async fn make_queue(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    async fn make_barrier(&self, _name: &str, _parties: usize, _rounds: usize) -> Result<()> {
        Ok(())
    }

    async fn make_election(&self, name: &str) -> Result<()> {
        self.produce(name, b"token").await
    }

    async fn update(&self, key: &str, value: &[u8]) -> Result<()> {
        Ok(self.handle().set(key, value).await?)
    }

    async fn read(&self, key: &str) -> Result<Vec<u8>> {
        let mut command = ::redis::cmd("GET");
        Ok(command.arg(key).query_async(&mut self.handle()).await?)
    }

    async fn increment(&self, counter: &str) -> Result<u64> {
        self.handle().incr(counter, 1).await?;
        Ok(1)
    }

    async fn count(&self, counter: &str) -> Result<u64> {
        let mut command = ::redis::cmd("GET");
        Ok(command.arg(counter).query_async(&mut self.handle()).await?)
    }

    async fn produce(&self, queue: &str, item: &[u8]) -> Result<()> {
        self.handle().lpush(queue, item).await?;
        Ok(())
    }

    async fn consume(&self, queue: &str) -> Result<Vec<u8>> {
        self.pop(queue).await
    }

    async fn pass(&self, barrier: &str, parties: usize, round: usize) -> Result<()> {
        let here = self.handle().incr(format!("{barrier}-{round}"), 1).await?;
        let gate = format!("{barrier}-{round}-gate");
        if here == isize::try_from(parties).unwrap_or(isize::MAX) {
            let permits = vec!["go"; parties - 1];
            if !permits.is_empty() {
                self.handle().lpush(gate, permits).await?;
            }
            return Ok(());
        }
        self.pop(&gate).await.map(drop)
    }

    async fn campaign(&self, election: &str) -> Result<()> {
        self.pop(election).await.map(drop)
    }

    async fn resign(&self, election: &str, (): ()) -> Result<()> {
        self.produce(election, b"token").await
    }

    fn bytes_sent(&self) -> u64 {
        self.sent.get()
    }
}
