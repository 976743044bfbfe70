//! `gesmas demo`: runs the demonstration and prints its account.

use clap::Args;

use super::output::Output;
use crate::demo::{self, Options};
use crate::failure::{Failure, exit::Exit};

/// `gesmas demo`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas demo
  gesmas demo --items 2000 --barriers 5 --json

Three replicas run as processes of their own in a temporary folder; everything is gone afterwards.
Exit code 1 if a promise was broken; the account says which.")]
pub(crate) struct DemoArgs {
    /// Items that move through the queue.
    #[arg(long, default_value_t = Options::default().items)]
    items: u64,
    /// Producers, and as many consumers.
    #[arg(long, default_value_t = Options::default().workers)]
    workers: u64,
    /// Capacity of the queue.
    #[arg(long, default_value_t = Options::default().capacity)]
    capacity: u32,
    /// Barriers in a row.
    #[arg(long, default_value_t = Options::default().barriers)]
    barriers: u64,
    /// Callers of each barrier.
    #[arg(long, default_value_t = Options::default().barrier_callers)]
    barrier_callers: u32,
}

pub(super) async fn run(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    let options = Options {
        items: args.items,
        workers: args.workers,
        capacity: args.capacity,
        barriers: args.barriers,
        barrier_callers: args.barrier_callers,
        json: output.json,
    };
    let report = demo::run(&options).await.map_err(|error| {
        Failure::new(Exit::Failed, "demo", format!("the demo came to no end: {error}"))
    })?;
    let value = serde_json::to_value(&report).expect("a report has texts and numbers only");
    output.value(&value, || report.to_string().trim_end().to_owned());
    if report.is_good() {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, "promise-broken", report.broken.join("; ")))
}
