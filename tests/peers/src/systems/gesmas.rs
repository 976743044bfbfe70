//! gesmas: three replicas, each a process, with the settings that a user gets who changes none; and the
//! same with the standard classes as native code, to show what the sandbox costs.

use std::{cell::Cell, path::Path, time::Duration};

use gesmas::local_cluster::{ClassKind, LocalCluster};
use gesmas_barrier::BarrierStub;
use gesmas_client::Session;
use gesmas_counter::CounterStub;
use gesmas_election::ElectionStub;
use gesmas_queue::QueueStub;
use gesmas_register::RegisterStub;

use super::{Client, PeerError, Result, System};

const REPLICAS: u64 = 3;
/// No queue of the benchmark holds more.
const CAPACITY: u32 = 4_000_000;
/// The object that holds the values of all keys.
const REGISTER: &str = "bench";
/// Time for a class to be compiled at all replicas.
const COMPILATION: Duration = Duration::from_secs(60);

/// See the file's head.
pub(crate) struct Gesmas<const NATIVE: bool> {
    cluster: LocalCluster,
    /// As it was when the last row began.
    leader: Cell<usize>,
}

fn failed(error: impl std::fmt::Display) -> PeerError {
    PeerError::Gesmas(error.to_string())
}

impl<const NATIVE: bool> System for Gesmas<NATIVE> {
    const NAME: &'static str = if NATIVE { "gesmas, native" } else { "gesmas" };
    type Client = GesmasClient;

    async fn start(_folder: &Path) -> Result<Self> {
        let kind = if NATIVE { ClassKind::Native } else { ClassKind::Wasm };
        let cluster = LocalCluster::start_with(kind, "peers", REPLICAS).await.map_err(failed)?;
        let client = cluster.client_of(0).await.map_err(failed)?;
        let session = client.session().open().await.map_err(failed)?;
        for (name, module) in kind.modules() {
            let put = session.put_class(name, module).deadline(COMPILATION);
            put.await.map_err(failed)?;
        }
        session.close().await;
        client.shutdown().await;
        Ok(Self { leader: Cell::new(0), cluster })
    }

    async fn connect(&self, number: usize) -> Result<GesmasClient> {
        if number == 0 {
            // Another may have taken the lead since.
            self.leader.set(self.cluster.leader().await.map_err(failed)?);
        }
        let at = (self.leader.get() + number) % self.cluster.len();
        let client = self.cluster.client_of(at).await.map_err(failed)?;
        let session = client.session().open().await.map_err(failed)?;
        Ok(GesmasClient { client, session })
    }

    fn processes(&self) -> Vec<u32> {
        self.cluster.processes().collect()
    }

    async fn syncs(&self) -> Result<Vec<u64>> {
        let mut syncs = Vec::new();
        for index in 0..self.cluster.len() {
            let looked =
                self.cluster.look(index).await.ok_or_else(|| failed("a replica is silent"))?;
            let counter = looked.1.iter().find(|(name, _)| name == "log_syncs");
            syncs.push(counter.map_or(0, |(_, count)| *count));
        }
        Ok(syncs)
    }
}

/// One connection with one session.
pub(crate) struct GesmasClient {
    client: gesmas_client::Client,
    session: Session,
}

impl GesmasClient {
    fn queue(&self, name: &str) -> QueueStub<Session> {
        QueueStub::new(self.session.clone(), name)
    }

    fn counter(&self, name: &str) -> CounterStub<Session> {
        CounterStub::new(self.session.clone(), name)
    }

    fn register(&self) -> RegisterStub<Session> {
        RegisterStub::new(self.session.clone(), REGISTER)
    }

    fn election(&self, name: &str) -> ElectionStub<Session> {
        ElectionStub::new(self.session.clone(), name)
    }

    fn barrier(&self, name: &str) -> BarrierStub<Session> {
        BarrierStub::new(self.session.clone(), name)
    }
}

impl Client for GesmasClient {
    type Term = u64;

    async fn beside(&self) -> Result<Self> {
        let session = self.client.session().open().await.map_err(failed)?;
        Ok(Self { client: self.client.clone(), session })
    }

    async fn make_register(&self, key: &str) -> Result<()> {
        self.update(key, &[]).await
    }

    async fn make_counter(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    async fn make_queue(&self, name: &str) -> Result<()> {
        self.queue(name).create(CAPACITY).await.map_err(failed)
    }

    async fn make_barrier(&self, name: &str, parties: usize, _rounds: usize) -> Result<()> {
        let parties = u32::try_from(parties).map_err(failed)?;
        self.barrier(name).create(parties).await.map_err(failed)
    }

    async fn make_election(&self, _name: &str) -> Result<()> {
        Ok(())
    }

    async fn update(&self, key: &str, value: &[u8]) -> Result<()> {
        let set = self.register().set(key.into(), value.to_vec().into()).await;
        set.map(drop).map_err(failed)
    }

    async fn read(&self, key: &str) -> Result<Vec<u8>> {
        let entry = self.register().get(key.into()).await.map_err(failed)?;
        Ok(entry.map(|entry| entry.value.0).unwrap_or_default())
    }

    async fn increment(&self, counter: &str) -> Result<u64> {
        self.counter(counter).increment().await.map_err(failed)?;
        Ok(1)
    }

    async fn count(&self, counter: &str) -> Result<u64> {
        let count = self.counter(counter).get().await.map_err(failed)?;
        u64::try_from(count).map_err(failed)
    }

    async fn produce(&self, queue: &str, item: &[u8]) -> Result<()> {
        self.queue(queue).produce(item.to_vec().into()).await.map_err(failed)
    }

    async fn consume(&self, queue: &str) -> Result<Vec<u8>> {
        self.queue(queue).consume().await.map(|item| item.0).map_err(failed)
    }

    async fn pass(&self, barrier: &str, _parties: usize, _round: usize) -> Result<()> {
        self.barrier(barrier).wait().await.map(drop).map_err(failed)
    }

    async fn campaign(&self, election: &str) -> Result<u64> {
        self.election(election).campaign("candidate".into()).await.map_err(failed)
    }

    async fn resign(&self, election: &str, term: u64) -> Result<()> {
        self.election(election).resign(term).await.map_err(failed)
    }

    fn bytes_sent(&self) -> u64 {
        self.client.bytes_sent()
    }
}
