//! How long the kernel pauses for a snapshot of much state, and how calls go on while it is written.
//!
//! ```text
//! queues of items of 1 KiB until the state is large ─► calls, one by one, each timed
//! a snapshot is taken, timed ─► a thread writes it to a file ─► the same calls until it is written
//! ```
//!
//! Native classes, so that what the machine does is not lost in what bodies do. The slowest call is the
//! longest pause that a caller sees of the kernel.
//! Not here: the log and the network, which the same disk and processors serve meanwhile.

use std::{
    fmt,
    fs::File,
    io::{self, BufWriter, Write as _},
    time::Instant,
};

use gesmas_coroutine::{NativeEngine, native_module};
use gesmas_machine::{RequestBody, Snapshot};
use gesmas_queue::{Queue, QueueStub};
use serde::Serialize;

use super::{calls::Net, lab::Lab};
use crate::bench::{
    load::{Load, LoadMeter},
    sample::Latencies,
};

/// Bytes of an item.
const ITEM: usize = 1 << 10;
/// Items of one queue: an object has a limit of bytes.
const ITEMS: usize = 32 << 10;
/// Calls before the snapshot.
const CALLS: usize = 20_000;
/// The state grows by so many calls in an entry.
const BATCH: usize = 256;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct PauseReport {
    /// Keys and values of all objects, MiB.
    pub state_mib: u64,
    /// Taking the snapshot, microseconds: the kernel does nothing else.
    pub pause_us: f64,
    /// Calls before it, each alone in its entry, microseconds.
    pub before: Latencies,
    /// The same calls while it is written.
    pub during: Latencies,
    /// How many of them there were.
    pub calls_during: usize,
    /// Seconds until the file was written and synced.
    pub write_seconds: f64,
    /// Bytes of the image in it.
    pub image_bytes: u64,
    /// The machine meanwhile.
    pub load: Load,
}

impl fmt::Display for PauseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |calls: &Latencies| {
            let Latencies { p50, p99, longest } = calls;
            format!("p50 {p50:.1} µs, p99 {p99:.1} µs, longest {longest:.1} µs")
        };
        writeln!(f, "state of {} MiB", self.state_mib)?;
        writeln!(f, "the snapshot was taken in {:.1} µs", self.pause_us)?;
        writeln!(f, "calls before:       {}", line(&self.before))?;
        writeln!(f, "calls during write: {} ({} calls)", line(&self.during), self.calls_during)?;
        let (seconds, bytes) = (self.write_seconds, self.image_bytes);
        writeln!(f, "{bytes} bytes written and synced in {seconds:.1} s")?;
        write!(f, "{}", self.load)
    }
}

/// Measures with a state of about so many MiB.
///
/// # Errors
/// When the file for the snapshot cannot be written.
pub fn run(mib: usize) -> io::Result<PauseReport> {
    let class = Queue::native();
    let modules = [(class.name, native_module(&class))];
    let mut lab = Lab::new(NativeEngine::new([class]), &modules, 100);
    let queues = fill(&mut lab, mib);
    let load = LoadMeter::start([]);
    let mut number = 0;
    let mut call = |lab: &mut Lab<NativeEngine>| {
        number += 1;
        let pair = &queues[number / 2 % queues.len()];
        u64::try_from(lab.time(&pair[number % 2]).as_nanos()).expect("a call is short")
    };
    let before: Vec<_> = (0..CALLS).map(|_| call(&mut lab)).collect();

    let (pause, snapshot) = lab.snapshot();
    let file = tempfile::tempfile()?;
    let begin = Instant::now();
    let writer = std::thread::spawn(move || write(&snapshot, file));
    let mut during = Vec::new();
    while !writer.is_finished() {
        during.push(call(&mut lab));
    }
    let image_bytes = writer.join().map_err(|_| io::Error::other("the writer panicked"))??;
    let write_seconds = begin.elapsed().as_secs_f64();
    let calls_during = during.len();
    Ok(PauseReport {
        state_mib: lab.state_bytes() >> 20,
        pause_us: pause.as_secs_f64() * 1e6,
        before: Latencies::of(before),
        during: Latencies::of(during),
        calls_during,
        write_seconds,
        image_bytes,
        load: load.stop(),
    })
}

/// Fills queues, and gives for each the calls that take an item and put one.
fn fill(lab: &mut Lab<NativeEngine>, mib: usize) -> Vec<[RequestBody; 2]> {
    let net = Net::default();
    let items = (mib << 20).div_ceil(ITEM);
    (0..items.div_ceil(ITEMS))
        .map(|number| {
            let queue = QueueStub::new(&net, format!("q{number}"));
            let create = net.catch(queue.create(ITEMS as u32 + 1));
            let produce = net.catch(queue.produce(vec![7; ITEM].into()));
            let consume = net.catch(queue.consume());
            lab.prepare(&[create]);
            let here = ITEMS.min(items - number * ITEMS);
            lab.round(std::slice::from_ref(&produce), BATCH, here.div_ceil(BATCH), || 0);
            [consume, produce]
        })
        .collect()
}

/// Writes an image as replicas do, a sync now and then.
fn write(snapshot: &Snapshot, file: File) -> io::Result<u64> {
    const SYNC_BYTES: u64 = 4 << 20;
    let (mut bytes, mut loose) = (0, 0);
    let mut writer = BufWriter::with_capacity(256 << 10, file);
    snapshot.write(&mut |piece| {
        writer.write_all(piece)?;
        bytes += piece.len() as u64;
        loose += piece.len() as u64;
        if loose >= SYNC_BYTES {
            writer.flush()?;
            writer.get_ref().sync_data()?;
            loose = 0;
        }
        Ok::<(), io::Error>(())
    })?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    Ok(bytes)
}
