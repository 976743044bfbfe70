//! Closed loops: each client has one operation outstanding, for as long as is measured.
//!
//! A while at the beginning is not measured. At the end each client finishes what it has begun, and
//! the state must be what all of it leaves.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{Kind, Row, all_see, connect, nanoseconds, number, payload, sent, wrong};
use crate::{
    run::{Meter, Sample},
    systems::{Client, Result, System},
};

/// What is not measured at the beginning.
const WARM_UP: Duration = Duration::from_millis(300);

/// What one client did.
#[derive(Default)]
struct Record {
    /// Latencies of what ended while it was measured, nanoseconds.
    latencies: Vec<u64>,
    /// All that it did.
    done: u64,
    attempts: u64,
    /// Of the items that it added, and of those that it took.
    added: u64,
    taken: u64,
    /// What it wrote last.
    last: u64,
}

/// When a loop is measured.
#[derive(Clone)]
struct Window {
    begin: Instant,
    end: Instant,
    stop: Rc<Cell<bool>>,
}

/// Measures a row.
pub(super) async fn measure<S: System>(row: Row, system: &S, length: Duration) -> Result<Sample> {
    let connections = connect(system, row.connections()).await?;
    let clients = callers(row, &connections).await?;
    prepare(row, &clients).await?;
    all_see(&connections, &row.name()).await?;
    let begin = Instant::now() + WARM_UP;
    let window = Window { begin, end: begin + length, stop: Rc::default() };
    let mut tasks = JoinSet::new();
    for (index, client) in clients.iter().enumerate() {
        tasks.spawn_local(work(row, client.clone(), index, window.clone()));
    }
    tokio::time::sleep_until(begin.into()).await;
    let sent_before = sent(&connections);
    let meter = Meter::start(system).await?;
    tokio::time::sleep_until(window.end.into()).await;
    let machine = meter.stop(system).await?;
    let sent = sent(&connections) - sent_before;
    window.stop.set(true);
    let mut records: Vec<(usize, Record)> = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        records.push(ended.map_err(|error| wrong::<S>(row, error.to_string()))??);
    }
    check::<S>(row, &clients, &records).await?;
    let latencies: Vec<u64> =
        records.iter().flat_map(|(_, record)| &record.latencies).copied().collect();
    if latencies.is_empty() {
        return Err(wrong::<S>(row, "nothing ended while it was measured".into()));
    }
    let factor = if row.kind == Kind::Queue { 2.0 } else { 1.0 };
    let operations = latencies.len() as f64 * factor;
    let total = |of: fn(&Record) -> u64| records.iter().map(|(_, record)| of(record)).sum::<u64>();
    Ok(Sample {
        operations_per_second: operations / length.as_secs_f64(),
        attempts: total(|record| record.attempts) as f64 / total(|record| record.done) as f64,
        bytes_per_operation: Some(sent as f64 / operations),
        latencies: gesmas::bench::sample::Latencies::of(latencies),
        beside_per_second: None,
        machine,
    })
}

/// One client for each caller: those of a pipeline share a session, the others only a connection.
async fn callers<C: Client>(row: Row, connections: &[Rc<C>]) -> Result<Vec<Rc<C>>> {
    let mut callers = connections.to_vec();
    for index in connections.len()..row.clients() {
        let at = &connections[index % connections.len()];
        let beside = match row.kind {
            Kind::Pipelined => at.clone(),
            _ => Rc::new(at.beside().await?),
        };
        callers.push(beside);
    }
    Ok(callers)
}

async fn prepare<C: Client>(row: Row, clients: &[Rc<C>]) -> Result<()> {
    let name = row.name();
    match row.kind {
        Kind::Update | Kind::Read | Kind::Shared => {
            for (index, client) in clients.iter().enumerate() {
                let key = format!("{name}-{index}");
                client.make_register(&key).await?;
                client.update(&key, &payload(0)).await?;
            }
            Ok(())
        }
        Kind::Counter | Kind::Pipelined => clients[0].make_counter(&name).await,
        Kind::Queue | Kind::Produce => clients[0].make_queue(&name).await,
        _ => clients[0].make_election(&name).await,
    }
}

async fn work<C: Client>(
    row: Row,
    client: Rc<C>,
    index: usize,
    window: Window,
) -> Result<(usize, Record)> {
    let name = row.name();
    let key = format!("{name}-{index}");
    let mut record = Record::default();
    while !window.stop.get() {
        let started = Instant::now();
        let item = ((index as u64) << 40) + record.done + 1;
        record.attempts += 1;
        match row.kind {
            Kind::Update | Kind::Shared => client.update(&key, &payload(item)).await?,
            Kind::Read => record.taken += number(&client.read(&key).await?).unwrap_or(1),
            Kind::Counter | Kind::Pipelined => {
                record.attempts += client.increment(&name).await? - 1
            }
            Kind::Queue => {
                client.produce(&name, &payload(item)).await?;
                let taken = client.consume(&name).await?;
                record.taken = record.taken.wrapping_add(number(&taken).unwrap_or_default());
            }
            Kind::Produce => client.produce(&name, &payload(item)).await?,
            _ => {
                let term = client.campaign(&name).await?;
                client.resign(&name, term).await?;
            }
        }
        let ended = Instant::now();
        record.added = record.added.wrapping_add(item);
        record.done += 1;
        record.last = item;
        if ended >= window.begin && ended < window.end {
            record.latencies.push(nanoseconds(ended - started));
        }
    }
    Ok((index, record))
}

/// What is left must be what was done.
async fn check<S: System>(
    row: Row,
    clients: &[Rc<S::Client>],
    records: &[(usize, Record)],
) -> Result<()> {
    let name = row.name();
    let sum = |of: fn(&Record) -> u64| {
        records.iter().fold(0_u64, |sum, (_, record)| sum.wrapping_add(of(record)))
    };
    let demand = |expected: u64, found: u64| {
        let what = || format!("it should be {expected} and is {found}");
        if expected == found { Ok(()) } else { Err(wrong::<S>(row, what())) }
    };
    match row.kind {
        Kind::Update | Kind::Shared => {
            for (index, record) in records {
                let found = clients[*index].read(&format!("{name}-{index}")).await?;
                demand(record.last, number(&found).unwrap_or_default())?;
            }
            Ok(())
        }
        // All values were the one that was written.
        Kind::Read => demand(0, sum(|record| record.taken)),
        Kind::Counter | Kind::Pipelined => {
            demand(sum(|record| record.done), clients[0].count(&name).await?)
        }
        Kind::Queue => demand(sum(|record| record.added), sum(|record| record.taken)),
        Kind::Produce => {
            let first = number(&clients[0].consume(&name).await?).unwrap_or_default();
            // The oldest item is the first of some client.
            demand(1, first & ((1 << 40) - 1))
        }
        _ => Ok(()),
    }
}
