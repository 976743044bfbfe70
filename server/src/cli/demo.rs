//! `gesmas demo`: see [`crate::demo`].

use clap::Args;

use super::{Exit, Failure, Output};
use crate::demo;

/// Shows what the cluster promises: three replicas, a killed leader, nothing lost.
///
/// Starts three replicas on loopback, moves 20,000 items through a bounded queue of 16 while the
/// leader gets SIGKILL and is started again, lets 200 callers pass 20 barriers, kills the session of
/// a blocked consumer, and compares the replicas. Exits with 1 when a promise is broken.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gesmas demo\n  gesmas demo --json\n  gesmas demo --items 2000")]
pub(super) struct DemoArgs {
    /// Items that move through the queue.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(64..=1_000_000))]
    items: u64,
    /// Barriers that 200 callers pass.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    barriers: u64,
}

pub(super) async fn run(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    let options = demo::Options {
        items: args.items,
        barriers: args.barriers,
        json: output.json,
        ..demo::Options::default()
    };
    let report = demo::run(&options)
        .await
        .map_err(|error| Failure::new(Exit::Failed, "demo", error.to_string()))?;
    if output.json {
        output.line(&serde_json::to_string_pretty(&report).expect("a report is plain data"));
    } else {
        output.line(&report.to_string());
    }
    if report.is_good() {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, "promise-broken", report.broken.join("; ")))
}
