//! Items through a bounded queue, while the leader is killed half-way.

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gesmas_barrier::BarrierStub;
use gesmas_client::{Client, Session};
use gesmas_queue::QueueStub;
use indicatif::ProgressBar;
use tokio::{sync::watch, task::JoinSet};

use super::{DemoError, Options, open};
use crate::local_cluster::LocalCluster;

/// Number of the signal that nothing can catch.
const SIGKILL: i32 = 9;
/// Items that move between the kill and the restart, one part in this many of all.
const DOWN_PARTS: u64 = 10;

/// What a consumer got: producer and place among the producer's items.
type Item = (u64, u64);

/// The client's record of the queue.
pub(super) struct Moved {
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) out_of_order: u64,
    pub(super) calls: u64,
    pub(super) elapsed: Duration,
    pub(super) failover: Duration,
    pub(super) leader_killed: bool,
}

pub(super) async fn run(
    options: &Options,
    clients: &[Client],
    cluster: &mut LocalCluster,
    progress: &ProgressBar,
) -> Result<Moved, DemoError> {
    let probe = Probe::new(&clients[0]).await?;
    let setup = open(&clients[0], "opening a session").await?;
    QueueStub::new(setup.clone(), "demo")
        .create(options.capacity)
        .await
        .map_err(|error| DemoError::call("creating the queue", error))?;

    let (count, mut counted) = watch::channel(0);
    let mut producers = JoinSet::new();
    let mut consumers = JoinSet::new();
    let left = Arc::new(AtomicU64::new(options.items));
    let started = Instant::now();
    for worker in 0..options.workers {
        let client = &clients[usize::try_from(worker).unwrap_or(0) % clients.len()];
        let share = share(options, worker);
        producers.spawn(produce(open(client, "opening a producer").await?, worker, share));
        let session = open(client, "opening a consumer").await?;
        consumers.spawn(consume(session, left.clone(), count.clone(), progress.clone()));
    }

    let half = options.items / 2;
    wait_for(&mut counted, half).await;
    let leader = cluster.leader().await?;
    let (failover, leader_killed) = probe.measure(cluster, leader).await?;
    wait_for(&mut counted, half + options.items / DOWN_PARTS).await;
    cluster.restart(leader)?;

    while let Some(producer) = producers.join_next().await {
        producer.map_err(|error| DemoError::call("a producer", error))??;
    }
    let mut records = Vec::new();
    while let Some(consumer) = consumers.join_next().await {
        records.push(consumer.map_err(|error| DemoError::call("a consumer", error))??);
    }
    let elapsed = started.elapsed();
    setup.close().await;
    let (lost, duplicated, out_of_order) = account(options, &records);
    let calls = 2 * options.items;
    Ok(Moved { lost, duplicated, out_of_order, calls, elapsed, failover, leader_killed })
}

/// Items of one producer.
fn share(options: &Options, worker: u64) -> u64 {
    options.items / options.workers + u64::from(worker < options.items % options.workers)
}

async fn wait_for(counted: &mut watch::Receiver<u64>, items: u64) {
    // The senders live in the consumers, which end only when all items are there.
    let _all_done = counted.wait_for(|count| *count >= items).await;
}

async fn produce(session: Session, worker: u64, share: u64) -> Result<(), DemoError> {
    let queue = QueueStub::new(session, "demo");
    for place in 0..share {
        let mut item = worker.to_le_bytes().to_vec();
        item.extend_from_slice(&place.to_le_bytes());
        queue
            .produce(item.into())
            .await
            .map_err(|error| DemoError::call("producing an item", error))?;
    }
    Ok(())
}

async fn consume(
    session: Session,
    left: Arc<AtomicU64>,
    count: watch::Sender<u64>,
    progress: ProgressBar,
) -> Result<Vec<Item>, DemoError> {
    let queue = QueueStub::new(session, "demo");
    let mut record = Vec::new();
    let one_less = |left: u64| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
        let item =
            queue.consume().await.map_err(|error| DemoError::call("consuming an item", error))?;
        let bytes: &[u8] = &item;
        let number = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        let (Some(producer), Some(place)) = (number(0), number(8)) else {
            return Err(DemoError::call("consuming an item", "it is none of the producers'"));
        };
        record.push((u64::from_le_bytes(*producer), u64::from_le_bytes(*place)));
        count.send_modify(|count| *count += 1);
        progress.inc(1);
    }
    Ok(record)
}

/// Items that no consumer got, that several got, and that a consumer got before an earlier one of
/// the same producer.
fn account(options: &Options, records: &[Vec<Item>]) -> (u64, u64, u64) {
    let mut received: BTreeMap<Item, u64> = BTreeMap::new();
    let mut out_of_order = 0;
    for record in records {
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for &(producer, place) in record {
            *received.entry((producer, place)).or_default() += 1;
            if last.insert(producer, place).is_some_and(|before| before > place) {
                out_of_order += 1;
            }
        }
    }
    let produced = (0..options.workers)
        .flat_map(|worker| (0..share(options, worker)).map(move |place| (worker, place)));
    let lost = produced.filter(|item| !received.contains_key(item)).count() as u64;
    let duplicated = received.values().map(|times| times - 1).sum();
    (lost, duplicated, out_of_order)
}

/// A call that is made the moment after the leader is killed: a barrier for one, which needs a
/// place in the log and nothing else.
struct Probe {
    barrier: BarrierStub<Session>,
}

impl Probe {
    async fn new(client: &Client) -> Result<Self, DemoError> {
        let barrier = BarrierStub::new(open(client, "opening the probe").await?, "probe");
        barrier.create(1).await.map_err(|error| DemoError::call("creating the probe", error))?;
        Ok(Self { barrier })
    }

    /// Kills the leader and returns the time from before the kill until the next update is
    /// acknowledged, and whether it was the kill that ended the leader.
    async fn measure(
        &self,
        cluster: &mut LocalCluster,
        leader: usize,
    ) -> Result<(Duration, bool), DemoError> {
        let start = Instant::now();
        let status = cluster.kill(leader)?;
        self.barrier.wait().await.map_err(|error| DemoError::call("the probe", error))?;
        Ok((start.elapsed(), status.signal() == Some(SIGKILL)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_finds_what_is_wrong() {
        let options = Options { items: 4, workers: 2, ..Options::default() };
        let good = vec![vec![(0, 0), (1, 0)], vec![(0, 1), (1, 1)]];
        assert_eq!(account(&options, &good), (0, 0, 0));
        let bad = vec![vec![(0, 1), (0, 0), (1, 0)], vec![(0, 1)]];
        assert_eq!(account(&options, &bad), (1, 1, 1));
    }
}
