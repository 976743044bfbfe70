//! A blocked consumer whose session is killed: the next item goes to the next living one.

use std::time::{Duration, Instant};

use gesmas_client::{Client, InvocationFilter, Session};
use gesmas_queue::QueueStub;

use super::{DemoError, open};
use crate::local_cluster::LocalCluster;

/// How long a call may take to show up as blocked.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// Returns how many items were lost: 0, unless a promise is broken.
pub(super) async fn run(client: &Client, cluster: &LocalCluster) -> Result<u64, DemoError> {
    let operator = open(client, "opening a session").await?;
    let queue = QueueStub::new(operator.clone(), "victim");
    queue.create(1).await.map_err(|error| DemoError::call("creating a queue", error))?;

    let victim = open(client, "opening the victim").await?;
    let dying = tokio::spawn(consume(victim.clone()));
    wait_until_blocked(client, cluster, 1).await?;
    let survivor = tokio::spawn(consume(open(client, "opening the survivor").await?));
    wait_until_blocked(client, cluster, 2).await?;

    operator
        .kill_session(victim.id())
        .await
        .map_err(|error| DemoError::call("killing a session", error))?;
    let item = b"for whoever lives".to_vec();
    queue
        .produce(item.clone().into())
        .await
        .map_err(|error| DemoError::call("producing for the survivor", error))?;
    let received = tokio::time::timeout(PATIENCE, survivor).await;
    let dead = dying.await.map_err(|error| DemoError::call("the victim", error))?;
    operator.close().await;
    let safe = matches!(received, Ok(Ok(Ok(received))) if received == item) && dead.is_err();
    Ok(u64::from(!safe))
}

async fn consume(session: Session) -> Result<Vec<u8>, String> {
    let consumed = QueueStub::new(session, "victim").consume().await;
    consumed.map(|item| item.to_vec()).map_err(|error| error.to_string())
}

async fn wait_until_blocked(
    client: &Client,
    cluster: &LocalCluster,
    calls: usize,
) -> Result<(), DemoError> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let filter = InvocationFilter {
            class: Some("Queue".into()),
            object: Some("victim".into()),
            ..InvocationFilter::default()
        };
        let blocked = client
            .list_invocations(filter, 0, 10)
            .await
            .map_err(|error| DemoError::call("listing invocations", error))?;
        if blocked.items.len() == calls {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(cluster.late("the blocking of a consumer").into())
}
