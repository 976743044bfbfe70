//! What was measured: as JSON, as tables (`tables.rs`), beside what is aimed at (`targets.rs`), and
//! drawn (`plots.rs`).
//!
//! Invariant: whatever is written is computed here from what was measured.

mod plots;
mod tables;
mod targets;

use std::fs;

use gesmas::bench::sample::Spread;
use serde::Serialize;

use self::targets::Reached;
use crate::{
    Options,
    floor::Floor,
    rows::{Cap, Kind, Row},
    run::{Measured, Name, Sample},
    systems::Result,
};

/// One row on one system: medians over the repeats.
#[derive(Debug, Serialize)]
struct Line {
    #[serde(skip)]
    row: Row,
    #[serde(skip)]
    name: Name,
    system: &'static str,
    work: &'static str,
    clients: usize,
    /// Items that were in the queue at first.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_size: Option<usize>,
    /// Clients that worked on a queue at the same time, and their operations a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<(usize, f64)>,
    ops_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    repeats: usize,
    /// Of the operations a second.
    spread: Spread,
    /// Tries for each operation.
    attempts_per_op: f64,
    bytes_per_op: Option<f64>,
    /// Processors that others used meanwhile, at most.
    other_cpu: Option<f64>,
    /// Of each server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fsyncs_per_second: Vec<f64>,
    /// Rounds of the course, where it was shorter for this system.
    #[serde(skip_serializing_if = "Option::is_none")]
    capped_to_rounds: Option<usize>,
}

/// A row that a system was spared.
#[derive(Debug, Serialize)]
struct Left {
    system: &'static str,
    work: &'static str,
    size: usize,
    why: &'static str,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    processors: usize,
    floor: Vec<Floor>,
    rows: Vec<Line>,
    targets: Vec<Reached>,
    left_out: Vec<Left>,
    took_seconds: u64,
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    Spread::of(values).median
}

fn line(row: Row, name: Name, samples: &[Sample]) -> Line {
    let spread = Spread::of(samples.iter().map(|sample| sample.operations_per_second));
    let servers = samples[0].machine.syncs_per_second.len();
    let of_server = |at: usize| samples.iter().map(move |one| one.machine.syncs_per_second[at]);
    let bytes: Vec<f64> = samples.iter().filter_map(|one| one.bytes_per_operation).collect();
    let beside: Vec<f64> = samples.iter().filter_map(|one| one.beside_per_second).collect();
    let others = samples.iter().filter_map(|one| one.machine.load.others);
    Line {
        row,
        name,
        system: name.title(),
        work: row.kind.name(),
        clients: row.clients(),
        queue_size: (row.kind == Kind::Consume).then_some(row.size),
        beside: (!beside.is_empty()).then(|| (row.size, median(beside.into_iter()))),
        ops_per_second: spread.median,
        p50_us: median(samples.iter().map(|one| one.latencies.p50)),
        p99_us: median(samples.iter().map(|one| one.latencies.p99)),
        repeats: samples.len(),
        spread,
        attempts_per_op: median(samples.iter().map(|one| one.attempts)),
        bytes_per_op: (!bytes.is_empty()).then(|| median(bytes.into_iter())),
        other_cpu: others.reduce(f64::max),
        fsyncs_per_second: (0..servers).map(|at| median(of_server(at))).collect(),
        capped_to_rounds: match row.cap(name.title()) {
            Some(Cap::Rounds(rounds)) => Some(rounds),
            _ => None,
        },
    }
}

/// Prints the tables, and writes them where they are asked for.
pub(crate) fn write(measured: &Measured, options: &Options) -> Result<()> {
    let rows =
        measured.samples.iter().map(|((row, name), samples)| line(*row, *name, samples)).collect();
    let left = |((row, name), why): (&(Row, Name), &&'static str)| Left {
        system: name.title(),
        work: row.kind.name(),
        size: row.size,
        why,
    };
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        processors: std::thread::available_parallelism()?.get(),
        floor: measured.floor.clone(),
        rows,
        targets: Vec::new(),
        left_out: measured.left.iter().map(left).collect(),
        took_seconds: measured.took.as_secs(),
    };
    report.targets = targets::reached(&report);
    let text = tables::markdown(&report, options);
    println!("{text}");
    if let Some(folder) = &options.into {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("peers.md"), &text)?;
        plots::draw(&report, &options.kinds(), folder).map_err(std::io::Error::other)?;
    }
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&report).map_err(std::io::Error::other)?;
        fs::write(path, json + "\n")?;
    }
    Ok(())
}
