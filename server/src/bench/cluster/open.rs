//! The open loop: a call begins when its time has come, whether or not those before it have ended.
//!
//! Its latency counts from that time, not from when it was sent: a pause of the cluster, or of this
//! program, is seen by every call that was due in it. (A caller that waits for its last call does not
//! make the calls that would have been slow: *coordinated omission*.)
//! Invariant: times are those of the plan, a thread of its own wakes for each, and whoever is late
//! changes no later time.
//! Not here: a closed loop (`point.rs`).

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use gesmas_client::Session;
use gesmas_counter::CounterStub;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{
    ClusterBenchError,
    point::{Record, nanoseconds},
};

/// Calls of one session that are under way at once; the next ones wait, and their time counts.
const UNDER_WAY: usize = 256;

/// Begins to call: `rate` calls a second from `start` on, by the sessions in turn, until what is
/// measured is over.
pub(super) fn start(
    callers: &mut JoinSet<Result<Record, ClusterBenchError>>,
    sessions: &[Session],
    object: &str,
    rate: u64,
    start: Instant,
    measured: (Instant, Duration),
) {
    let mut lines = Vec::new();
    for session in sessions {
        let (sender, line) = mpsc::unbounded_channel();
        lines.push(sender);
        let counter = CounterStub::new(session.clone(), object.to_owned());
        callers.spawn(session_calls(counter, line, measured));
    }
    let end = measured.0 + measured.1;
    // It ends at `end`, and with it all that wait for it.
    thread::spawn(move || pace(&lines, rate, start, end));
}

/// Says to each session in turn when its calls are due.
fn pace(lines: &[mpsc::UnboundedSender<Instant>], rate: u64, start: Instant, end: Instant) {
    for (number, line) in (0_u64..).zip(lines.iter().cycle()) {
        let due = start + due_after(number, rate);
        if due >= end {
            return;
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if line.send(due).is_err() {
            // A call failed, and all is given up.
            return;
        }
    }
}

/// When a call is due, counted from the first.
fn due_after(number: u64, rate: u64) -> Duration {
    let rest = (number % rate) * 1_000_000_000 / rate;
    Duration::from_secs(number / rate) + Duration::from_nanos(rest)
}

async fn session_calls(
    counter: CounterStub<Session>,
    mut line: mpsc::UnboundedReceiver<Instant>,
    (begin, length): (Instant, Duration),
) -> Result<Record, ClusterBenchError> {
    let mut record = Record::default();
    let counter = Arc::new(counter);
    let room = Arc::new(Semaphore::new(UNDER_WAY));
    let mut calls = JoinSet::new();
    let mut note = |due: Instant, ended: Instant| {
        record.acknowledged += 1;
        if due >= begin && due < begin + length {
            // A call that ends after the end belongs to the last window: it was due before.
            let ended_at = nanoseconds(ended - begin).min(nanoseconds(length) - 1);
            record.calls.push((ended_at, nanoseconds(ended - due)));
        }
    };
    while let Some(due) = line.recv().await {
        let place = room.clone().acquire_owned().await.expect("it is never closed");
        let counter = counter.clone();
        calls.spawn(async move {
            let count = counter.increment().await;
            count.map_err(|error| ClusterBenchError::call("Counter.increment", error))?;
            drop(place);
            Ok::<_, ClusterBenchError>((due, Instant::now()))
        });
        while let Some(ended) = calls.try_join_next() {
            let (due, ended) =
                ended.map_err(|error| ClusterBenchError::call("a call", error))??;
            note(due, ended);
        }
    }
    while let Some(ended) = calls.join_next().await {
        let (due, ended) = ended.map_err(|error| ClusterBenchError::call("a call", error))??;
        note(due, ended);
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_due_at_the_rate_without_drift() {
        assert_eq!(due_after(0, 3), Duration::ZERO);
        assert_eq!(due_after(1, 3), Duration::from_nanos(333_333_333));
        assert_eq!(due_after(3_000_001, 3), Duration::new(1_000_000, 333_333_333));
        assert_eq!(due_after(6, 7), Duration::from_nanos(857_142_857));
    }

    #[test]
    fn whoever_is_late_says_the_times_of_the_plan_all_the_same() {
        let (sender, mut line) = mpsc::unbounded_channel();
        let start = Instant::now() - Duration::from_millis(10);
        pace(&[sender], 1_000, start, start + Duration::from_millis(5));
        let due: Vec<_> = std::iter::from_fn(|| line.try_recv().ok()).collect();
        let plan: Vec<_> = (0..5).map(|number| start + Duration::from_millis(number)).collect();
        assert_eq!(due, plan);
    }
}
