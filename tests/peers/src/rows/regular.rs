//! One client that writes, alone or beside a queue that others work at half of what they could do.
//!
//! What they could do is measured first: all add and remove, each as fast as it can. Then each begins
//! a pair whenever it is due, and the one client writes; only its latencies are given.
//! Invariant: what the queue did meanwhile is given too, as a queue that falls behind would make the
//! one client look good.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{Row, all_see, connect, nanoseconds, number, payload, wrong};
use crate::{
    run::{Meter, Sample},
    systems::{Client, Result, System},
};

/// What is not measured at the beginning.
const WARM_UP: Duration = Duration::from_millis(300);

/// Pairs of adding and removing, and what was added and not removed.
#[derive(Default)]
struct Queue {
    pairs: Cell<u64>,
    balance: Cell<u64>,
    stop: Cell<bool>,
}

/// Measures a row.
pub(super) async fn measure<S: System>(row: Row, system: &S, length: Duration) -> Result<Sample> {
    let client = system.connect(0).await?;
    let key = row.name();
    client.make_register(&key).await?;
    let queue = format!("{key}-queue");
    client.make_queue(&queue).await?;
    let others = connect(system, row.size).await?;
    all_see(&others, &queue).await?;
    let peak = if others.is_empty() {
        0.0
    } else {
        let (state, tasks) = start(&others, &queue, None);
        let peak = rate(&state, length).await;
        stop::<S>(row, &state, tasks).await?;
        peak
    };
    // Two operations are a pair; half of the peak is asked for.
    let between = (peak > 0.0).then(|| Duration::from_secs_f64(2.0 * row.size as f64 / peak));
    let (state, tasks) = start(&others, &queue, between);
    write_for(&client, &key, WARM_UP).await?;
    let (sent_before, pairs, begin) = (client.bytes_sent(), state.pairs.get(), Instant::now());
    let meter = Meter::start(system).await?;
    let latencies = write_for(&client, &key, length).await?;
    let machine = meter.stop(system).await?;
    let seconds = begin.elapsed().as_secs_f64();
    let pairs = state.pairs.get() - pairs;
    let sent = client.bytes_sent() - sent_before;
    stop::<S>(row, &state, tasks).await?;
    let operations = latencies.len() as f64;
    Ok(Sample {
        operations_per_second: operations / length.as_secs_f64(),
        attempts: 1.0,
        bytes_per_operation: Some(sent as f64 / operations),
        latencies: gesmas::bench::sample::Latencies::of(latencies),
        beside_per_second: Some(2.0 * pairs as f64 / seconds),
        machine,
    })
}

async fn write_for<C: Client>(client: &C, key: &str, length: Duration) -> Result<Vec<u64>> {
    let (begin, mut latencies) = (Instant::now(), Vec::new());
    while begin.elapsed() < length {
        let started = Instant::now();
        client.update(key, &payload(latencies.len() as u64)).await?;
        latencies.push(nanoseconds(started.elapsed()));
    }
    Ok(latencies)
}

type Tasks = JoinSet<Result<()>>;

/// Lets clients add and remove, each as fast as it can or once in so long.
fn start<C: Client + 'static>(
    clients: &[Rc<C>],
    queue: &str,
    between: Option<Duration>,
) -> (Rc<Queue>, Tasks) {
    let (state, mut tasks) = (Rc::<Queue>::default(), Tasks::new());
    for (index, client) in clients.iter().enumerate() {
        let (client, queue, state) = (client.clone(), queue.to_owned(), state.clone());
        let count = clients.len();
        tasks.spawn_local(async move {
            // They begin one after the other, so that they do not come all at once.
            let first = between.map(|between| between.mul_f64(index as f64 / count as f64));
            let mut due = Instant::now() + first.unwrap_or_default();
            let mut item = (index as u64) << 40;
            while !state.stop.get() {
                if let Some(between) = between {
                    tokio::time::sleep_until(due.into()).await;
                    due += between;
                }
                item += 1;
                client.produce(&queue, &payload(item)).await?;
                state.balance.set(state.balance.get().wrapping_add(item));
                let taken = number(&client.consume(&queue).await?).unwrap_or_default();
                state.balance.set(state.balance.get().wrapping_sub(taken));
                state.pairs.set(state.pairs.get() + 1);
            }
            Ok(())
        });
    }
    (state, tasks)
}

/// Pairs a second, after a while that is not measured.
async fn rate(state: &Queue, length: Duration) -> f64 {
    tokio::time::sleep(WARM_UP).await;
    let (before, begin) = (state.pairs.get(), Instant::now());
    tokio::time::sleep(length).await;
    (state.pairs.get() - before) as f64 / begin.elapsed().as_secs_f64()
}

/// Lets all finish what they have begun; what was added must have been removed.
async fn stop<S: System>(row: Row, state: &Queue, mut tasks: Tasks) -> Result<()> {
    state.stop.set(true);
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| wrong::<S>(row, error.to_string()))??;
    }
    match state.balance.get() {
        0 => Ok(()),
        _ => Err(wrong::<S>(row, "what was taken is not what was added".into())),
    }
}
