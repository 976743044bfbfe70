//! What the replicas have counted, and whether they agree.

use std::time::{Duration, Instant};

use gesmas_client::protocol::Position;

use super::DemoError;
use crate::local_cluster::LocalCluster;

/// How long a replica may take to catch up.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// Counts that all replicas share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Audit {
    /// Calls that blocked.
    pub(super) blocked: u64,
    /// Times that a blocked call was resumed, to clean up apart.
    pub(super) resumptions: u64,
    /// Blocked calls that were cancelled.
    pub(super) cancelled: u64,
    /// Resumed and blocked again on the same semaphore without its permit.
    pub(super) in_vain: u64,
    /// Whether all replicas are at one step with one hash and have counted alike.
    pub(super) agree: bool,
}

/// What one replica says.
#[derive(Clone, PartialEq, Eq)]
struct Account {
    position: Position,
    hash: String,
    counts: [u64; 4],
}

impl Audit {
    /// Asks all replicas until they are at one step.
    pub(super) async fn of(cluster: &LocalCluster) -> Result<Self, DemoError> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let accounts = accounts(cluster).await;
            if let Some(first) = accounts.first()
                && accounts.len() == cluster.len()
                && accounts.iter().all(|account| account.position == first.position)
            {
                let [blocked, resumptions, cancelled, in_vain] = first.counts;
                let agree = accounts.iter().all(|account| account == first);
                return Ok(Self { blocked, resumptions, cancelled, in_vain, agree });
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(cluster.late("the catching up of a replica").into())
    }
}

async fn accounts(cluster: &LocalCluster) -> Vec<Account> {
    let mut accounts = Vec::new();
    for index in 0..cluster.len() {
        if let Some((status, counters)) = cluster.look(index).await {
            let count = |name: &str| {
                counters.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count)
            };
            accounts.push(Account {
                position: status.position,
                hash: status.state_hash,
                counts: [
                    count("blocked_invocations"),
                    count("resumptions"),
                    count("cancellations"),
                    count("wakeups_in_vain"),
                ],
            });
        }
    }
    accounts
}
