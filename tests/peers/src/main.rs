//! The same work on gesmas, ZooKeeper, etcd and redis, one after the other on this machine.
//!
//! `rows/` says what work there is and does it, `systems/` how each system does it, `floor.rs` what no
//! system can beat here, `report/` how the figures are written down.
//! Invariants: one system runs at a time; each figure stands beside the load that others put on the
//! machine meanwhile; what is capped says so; a system that ends in a wrong state is an error.
//! Not here: judgement. Nothing passes or fails by a figure.

mod floor;
mod report;
mod rows;
mod run;
mod systems;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;

use crate::rows::Kind;

/// That of the product, whose replicas are processes of this program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures gesmas beside ZooKeeper, etcd and redis, which Debian's packages zookeeper,
/// openjdk-17-jre-headless, etcd-server and redis-server provide.
#[derive(Debug, Parser)]
#[command(name = "gesmas-peers", version, arg_required_else_help = true)]
pub(crate) struct Options {
    /// What to measure: `all`, or rows by their names.
    #[arg(required = true, value_name = "ROW")]
    rows: Vec<rows::Choice>,
    /// On which systems.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = run::Name::ALL)]
    systems: Vec<run::Name>,
    /// How often each row is measured on each system.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// How long each point of a closed loop is measured, seconds.
    #[arg(long, default_value = "1.5", value_parser = seconds)]
    seconds: Duration,
    /// Writes the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the tables as peers.md and the charts into this folder.
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(length) if (0.1..=600.0).contains(&seconds) => Ok(length),
        _ => Err("0.1 to 600 seconds".into()),
    }
}

impl Options {
    fn kinds(&self) -> Vec<Kind> {
        Kind::ALL
            .into_iter()
            .filter(|kind| self.rows.iter().any(|choice| choice.includes(*kind)))
            .collect()
    }
}

fn main() -> ExitCode {
    // The replicas of gesmas are processes of this program, which has the whole server in it.
    if std::env::args().nth(1).is_some_and(|first| first == "serve" || first == "compile-child") {
        return gesmas::cli::main();
    }
    let options = Options::parse();
    match run::all(&options).and_then(|report| report::write(&report, &options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gesmas-peers: {error}");
            ExitCode::FAILURE
        }
    }
}
