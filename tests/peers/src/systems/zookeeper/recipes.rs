//! What people build from ZooKeeper's nodes: queue, counter, barrier, election.
//!
//! As published: the queue and the barrier of ZooKeeper's own recipes, which sections 2 and 5.4 of the
//! GESMAS paper describe; the counter that writes back if the version is still the one it has read; the
//! election in which each candidate watches the one before it. Written for speed: one question where
//! one is enough, and no watch before something is waited for.

use super::{
    client::{Client, ZooKeeperError},
    wire::{Mode, Refusal},
};
use crate::systems;

type Result<T> = std::result::Result<T, ZooKeeperError>;

/// Takes the oldest item of a queue, and waits for one if there is none. Whoever is late tries the next
/// of those that were listed before it lists again.
async fn take_first(client: &Client, queue: &str) -> Result<Vec<u8>> {
    let mut items = client.children(queue).await?;
    loop {
        items.sort_unstable();
        for item in &items {
            if let Some(taken) = take(client, &format!("{queue}/{item}")).await? {
                return Ok(taken);
            }
        }
        let (listed, changed) = client.watch_children(queue).await?;
        items = listed;
        if items.is_empty() {
            changed.await.map_err(|_| ZooKeeperError::Broken)?;
            items = client.children(queue).await?;
        }
    }
}

/// Takes an item, unless another was first.
async fn take(client: &Client, path: &str) -> Result<Option<Vec<u8>>> {
    let taken = async {
        let (item, _) = client.get_data(path).await?;
        client.delete(path).await?;
        Ok(item)
    };
    match taken.await {
        Ok(item) => Ok(Some(item)),
        Err(ZooKeeperError::Refused(Refusal::NoNode)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn add_one(client: &Client, counter: &str) -> Result<u64> {
    for attempts in 1.. {
        let (data, version) = client.get_data(counter).await?;
        let next = number(&data) + 1;
        match client.set_data(counter, &next.to_le_bytes(), version).await {
            Ok(_) => return Ok(attempts),
            Err(ZooKeeperError::Refused(Refusal::BadVersion)) => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("attempts do not end by themselves")
}

fn number(data: &[u8]) -> u64 {
    data.try_into().map_or(0, u64::from_le_bytes)
}

async fn enter(client: &Client, barrier: &str, parties: usize) -> Result<()> {
    client.create(&format!("{barrier}/party-"), &[], Mode::EphemeralSequential).await?;
    loop {
        let (here, changed) = client.watch_children(barrier).await?;
        if here.len() >= parties {
            return Ok(());
        }
        changed.await.map_err(|_| ZooKeeperError::Broken)?;
    }
}

/// Runs for leader; returns the node of the candidate once it leads.
async fn run(client: &Client, election: &str) -> Result<String> {
    let node = format!("{election}/candidate-");
    let own = client.create(&node, &[], Mode::EphemeralSequential).await?;
    let own_name = own.rsplit('/').next().unwrap_or_default().to_owned();
    loop {
        let candidates = client.children(election).await?;
        let before = candidates.iter().filter(|name| **name < own_name).max();
        let Some(before) = before else { return Ok(own) };
        // It may have gone since the list was made.
        if let Some(gone) = client.watch_node(&format!("{election}/{before}")).await? {
            gone.await.map_err(|_| ZooKeeperError::Broken)?;
        }
    }
}

/// The node of a name.
fn node(name: &str) -> String {
    format!("/{name}")
}

impl systems::Client for Client {
    type Term = String;

    async fn make_register(&self, key: &str) -> systems::Result<()> {
        self.create(&node(key), &[], Mode::Persistent).await?;
        Ok(())
    }

    async fn make_counter(&self, name: &str) -> systems::Result<()> {
        self.create(&node(name), &0_u64.to_le_bytes(), Mode::Persistent).await?;
        Ok(())
    }

    async fn make_queue(&self, name: &str) -> systems::Result<()> {
        self.make_register(name).await
    }

    async fn make_barrier(&self, name: &str, _: usize, rounds: usize) -> systems::Result<()> {
        for round in 0..rounds {
            self.make_register(&format!("{name}-{round}")).await?;
        }
        Ok(())
    }

    async fn make_election(&self, name: &str) -> systems::Result<()> {
        self.make_register(name).await
    }

    async fn see(&self, name: &str) -> systems::Result<()> {
        // A server may be behind; what it has been told to wait for it knows.
        Ok(self.sync(&node(name)).await?)
    }

    async fn update(&self, key: &str, value: &[u8]) -> systems::Result<()> {
        self.set_data(&node(key), value, -1).await?;
        Ok(())
    }

    async fn read(&self, key: &str) -> systems::Result<Vec<u8>> {
        Ok(self.get_data(&node(key)).await?.0)
    }

    async fn increment(&self, counter: &str) -> systems::Result<u64> {
        Ok(add_one(self, &node(counter)).await?)
    }

    async fn count(&self, counter: &str) -> systems::Result<u64> {
        systems::Client::see(self, counter).await?;
        Ok(number(&self.get_data(&node(counter)).await?.0))
    }

    async fn produce(&self, queue: &str, item: &[u8]) -> systems::Result<()> {
        self.create(&format!("/{queue}/item-"), item, Mode::Sequential).await?;
        Ok(())
    }

    async fn consume(&self, queue: &str) -> systems::Result<Vec<u8>> {
        Ok(take_first(self, &node(queue)).await?)
    }

    async fn pass(&self, barrier: &str, parties: usize, round: usize) -> systems::Result<()> {
        Ok(enter(self, &format!("/{barrier}-{round}"), parties).await?)
    }

    async fn campaign(&self, election: &str) -> systems::Result<String> {
        Ok(run(self, &node(election)).await?)
    }

    async fn resign(&self, _election: &str, term: String) -> systems::Result<()> {
        Ok(self.delete(&term).await?)
    }

    fn bytes_sent(&self) -> u64 {
        self.written()
    }
}
