//! Whether the replicas are equal in the end.
//!
//! Invariant checked: replicas at the same step have the same hash over their state; all of them
//! come to the same step once nothing is asked of them.

use std::time::{Duration, Instant};

use gesmas_client::{Client, protocol::ClusterStatus};

use crate::network::Network;

/// How long a replica may take to catch up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at the replicas, which do not say when they have caught up.
const LOOK: Duration = Duration::from_millis(50);
/// How long one replica may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// What the replicas say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    /// Calls that blocked, as a replica has counted them since the beginning of its log.
    pub(crate) blocked: u64,
    /// Whether all came to one step with one hash.
    pub(crate) agree: bool,
    /// What is wrong.
    pub(crate) violations: Vec<String>,
}

/// Asks all replicas until they are at one step.
pub(crate) async fn audit(network: &Network) -> Audit {
    let mut audit = Audit::default();
    let mut clients = Vec::new();
    for index in 0..network.len() {
        let builder = Client::builder().endpoints([network.clients(index).to_string()]);
        match builder.name("gesmas-kill audit").patience(PATIENCE).connect().await {
            Ok(client) => clients.push(client),
            Err(error) => {
                audit
                    .violations
                    .push(format!("replicas: {} cannot be reached: {error}", index + 1));
                return audit;
            }
        }
    }
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE && !audit.agree && audit.violations.is_empty() {
        let looks = look(&clients).await;
        compare(&looks, clients.len(), &mut audit);
        tokio::time::sleep(LOOK).await;
    }
    if !audit.agree && audit.violations.is_empty() {
        audit.violations.push(format!("replicas: they did not come to one step in {PATIENCE:?}"));
    }
    let counters = clients[0].counters().await.unwrap_or_default();
    let blocked = counters.iter().find(|(name, _)| name == "blocked_invocations");
    audit.blocked = blocked.map_or(0, |(_, count)| *count);
    for client in clients {
        client.shutdown().await;
    }
    audit
}

async fn look(clients: &[Client]) -> Vec<ClusterStatus> {
    let mut looks = Vec::new();
    for client in clients {
        let status = tokio::time::timeout(ANSWER, client.cluster_status()).await;
        looks.extend(status.ok().and_then(Result::ok));
    }
    looks
}

fn compare(looks: &[ClusterStatus], replicas: usize, audit: &mut Audit) {
    let Some(first) = looks.first() else { return };
    for (place, one) in looks.iter().enumerate() {
        for other in &looks[place + 1..] {
            if one.position == other.position && one.state_hash != other.state_hash {
                audit.violations.push(format!(
                    "replicas: {} and {} are at step {:?} with hashes {} and {}",
                    one.replica, other.replica, one.position, one.state_hash, other.state_hash
                ));
            }
        }
    }
    audit.agree = audit.violations.is_empty()
        && looks.len() == replicas
        && looks
            .iter()
            .all(|look| (look.position, look.log_applied) == (first.position, first.log_applied));
}

#[cfg(test)]
mod tests {
    use gesmas_client::protocol::Position;

    use super::*;

    fn status(replica: u64, step: u64, hash: &str) -> ClusterStatus {
        ClusterStatus {
            replica,
            cluster: 1,
            leader: Some(1),
            ballot: String::new(),
            log_first: 1,
            log_decided: step,
            log_applied: step,
            position: Position { step, ..Position::default() },
            now: 0,
            state_hash: hash.into(),
            members: vec![1, 2],
            connected: Vec::new(),
            engine: String::new(),
            server: String::new(),
        }
    }

    #[test]
    fn equal_replicas_agree_and_others_do_not() {
        let mut audit = Audit::default();
        compare(&[status(1, 5, "aa"), status(2, 5, "aa")], 2, &mut audit);
        assert!(audit.agree);
        compare(&[status(1, 5, "aa")], 2, &mut audit);
        assert!(!audit.agree, "one is missing");
        compare(&[status(1, 5, "aa"), status(2, 4, "bb")], 2, &mut audit);
        assert!(!audit.agree && audit.violations.is_empty(), "one is behind");
        compare(&[status(1, 5, "aa"), status(2, 5, "bb")], 2, &mut audit);
        assert!(!audit.agree && audit.violations.len() == 1, "one is different");
    }
}
