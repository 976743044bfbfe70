//! Courses: work that is measured from its start to its end.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{Cap, Kind, Row, all_see, connect, nanoseconds, number, payload, sent, wrong};
use crate::{
    run::{Meter, Sample},
    systems::{Client, PeerError, Result, System},
};

/// Barriers in a row, where nothing caps them.
const BARRIERS: usize = 200;
/// Operations of each of the four clients, where nothing caps them.
const FOUR: usize = 2_000;
/// Consumes from a queue.
const CONSUMES: usize = 1_000;
/// Clients that fill a queue, and how many items each of them adds at a time.
const FILLERS: usize = 8;
const FILLED_AT_ONCE: usize = 256;
/// Clients are given so long to wait for an item before the first is there. Whoever is late finds its
/// item at once, which would only make the herd smaller.
const SETTLE: Duration = Duration::from_millis(500);

/// A course that is over.
struct Ended {
    operations: usize,
    took: Duration,
    latencies: Vec<u64>,
}

/// Measures a row.
pub(super) async fn measure<S: System>(row: Row, system: &S) -> Result<Sample> {
    let clients = connect(system, row.clients()).await?;
    let rounds = match row.cap(S::NAME) {
        Some(Cap::Rounds(rounds)) => Some(rounds),
        _ => None,
    };
    let name = row.name();
    match row.kind {
        Kind::Four | Kind::Herd => clients[0].make_queue(&name).await?,
        Kind::Barrier => {
            let rounds = rounds.unwrap_or(BARRIERS);
            clients[0].make_barrier(&name, clients.len(), rounds).await?;
        }
        _ => {
            clients[0].make_queue(&name).await?;
            fill(system, &name, row.size).await?;
        }
    }
    all_see(&clients, &name).await?;
    let sent_before = sent(&clients);
    let meter = Meter::start(system).await?;
    let ended = match row.kind {
        Kind::Four => four::<S>(row, &clients, rounds.unwrap_or(FOUR)).await?,
        Kind::Herd => {
            // One that waits for nothing begins.
            let first = system.connect(clients.len()).await?;
            herd::<S>(row, &clients, &first).await?
        }
        Kind::Barrier => barriers(row, &clients, rounds.unwrap_or(BARRIERS)).await?,
        _ => consume::<S>(row, &clients[0]).await?,
    };
    let machine = meter.stop(system).await?;
    let operations = ended.operations as f64;
    Ok(Sample {
        operations_per_second: operations / ended.took.as_secs_f64(),
        attempts: 1.0,
        bytes_per_operation: Some((sent(&clients) - sent_before) as f64 / operations),
        latencies: gesmas::bench::sample::Latencies::of(ended.latencies),
        beside_per_second: None,
        machine,
    })
}

/// Waits for tasks and collects what they give.
async fn all<T: 'static>(mut tasks: JoinSet<Result<T>>) -> Result<Vec<T>> {
    let mut ended = Vec::new();
    while let Some(task) = tasks.join_next().await {
        ended.push(task.map_err(|error| PeerError::Io(std::io::Error::other(error)))??);
    }
    Ok(ended)
}

async fn fill<S: System>(system: &S, queue: &str, size: usize) -> Result<()> {
    let clients = connect(system, FILLERS).await?;
    all_see(&clients, queue).await?;
    let mut next = 0_u64;
    let size = size as u64;
    while next < size {
        let mut tasks = JoinSet::new();
        for client in &clients {
            for _ in 0..FILLED_AT_ONCE {
                if next < size {
                    next += 1;
                    let (client, queue, item) = (client.clone(), queue.to_owned(), payload(next));
                    tasks.spawn_local(async move { client.produce(&queue, &item).await });
                }
            }
        }
        all(tasks).await?;
    }
    Ok(())
}

async fn consume<S: System>(row: Row, client: &Rc<S::Client>) -> Result<Ended> {
    let name = row.name();
    let mut latencies = Vec::with_capacity(CONSUMES);
    let begin = Instant::now();
    for _ in 0..CONSUMES {
        let started = Instant::now();
        let item = client.consume(&name).await?;
        latencies.push(nanoseconds(started.elapsed()));
        let is_one = number(&item).is_some_and(|item| item > 0 && item <= row.size as u64);
        if !is_one {
            return Err(wrong::<S>(row, format!("{item:?} is none of the items")));
        }
    }
    Ok(Ended { operations: CONSUMES, took: begin.elapsed(), latencies })
}

async fn four<S: System>(row: Row, clients: &[Rc<S::Client>], each: usize) -> Result<Ended> {
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for (index, client) in clients.iter().cloned().enumerate() {
        let name = row.name();
        tasks.spawn_local(async move {
            let (mut latencies, mut sum) = (Vec::with_capacity(each), 0_u64);
            for turn in 0..each {
                let started = Instant::now();
                let item = (index * each + turn) as u64;
                if index % 2 == 0 {
                    client.produce(&name, &payload(item)).await?;
                    sum = sum.wrapping_add(item);
                } else {
                    let taken = number(&client.consume(&name).await?).unwrap_or_default();
                    sum = sum.wrapping_sub(taken);
                }
                latencies.push(nanoseconds(started.elapsed()));
            }
            Ok((latencies, sum))
        });
    }
    let ended = all(tasks).await?;
    let took = begin.elapsed();
    if ended.iter().fold(0_u64, |sum, (_, own)| sum.wrapping_add(*own)) != 0 {
        return Err(wrong::<S>(row, "what was taken is not what was added".into()));
    }
    let latencies: Vec<_> = ended.into_iter().flat_map(|(latencies, _)| latencies).collect();
    Ok(Ended { operations: latencies.len(), took, latencies })
}

async fn herd<S: System>(row: Row, clients: &[Rc<S::Client>], first: &S::Client) -> Result<Ended> {
    let mut tasks = JoinSet::new();
    for client in clients {
        let (client, name) = (client.clone(), row.name());
        tasks.spawn_local(async move {
            let item = client.consume(&name).await?;
            let unblocked = Instant::now();
            client.produce(&name, &item).await?;
            Ok((unblocked, number(&item)))
        });
    }
    tokio::time::sleep(SETTLE).await;
    if tasks.len() != clients.len() || tasks.try_join_next().is_some() {
        return Err(wrong::<S>(row, "a client did not wait".into()));
    }
    let begin = Instant::now();
    first.produce(&row.name(), &payload(1)).await?;
    let ended = all(tasks).await?;
    if ended.iter().any(|(_, item)| *item != Some(1)) {
        return Err(wrong::<S>(row, "another item came than the one there was".into()));
    }
    let last = ended.iter().map(|(unblocked, _)| *unblocked).max().unwrap_or(begin);
    let took = last.saturating_duration_since(begin);
    Ok(Ended { operations: clients.len(), took, latencies: vec![nanoseconds(took)] })
}

async fn barriers<C: Client + 'static>(
    row: Row,
    clients: &[Rc<C>],
    rounds: usize,
) -> Result<Ended> {
    let parties = clients.len();
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for client in clients {
        let (client, name) = (client.clone(), row.name());
        tasks.spawn_local(async move {
            let mut latencies = Vec::with_capacity(rounds);
            for round in 0..rounds {
                let started = Instant::now();
                client.pass(&name, parties, round).await?;
                latencies.push(nanoseconds(started.elapsed()));
            }
            Ok(latencies)
        });
    }
    let ended = all(tasks).await?;
    let latencies: Vec<_> = ended.into_iter().flatten().collect();
    Ok(Ended { operations: latencies.len(), took: begin.elapsed(), latencies })
}
