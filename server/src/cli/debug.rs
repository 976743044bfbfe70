//! `gesmas debug`: a look inside, for whoever hunts a bug of a class or of the server.
//!
//! Invariant: nothing here changes anything.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gesmas_machine::Difference;
use serde_json::json;

use super::output::Output;
use crate::failure::{Failure, exit::Exit};
use crate::snapshot::{Inspected, inspect};

/// `gesmas debug`.
#[derive(Debug, Args)]
pub(crate) struct DebugArgs {
    #[command(subcommand)]
    command: DebugCommand,
}

#[derive(Debug, Subcommand)]
enum DebugCommand {
    /// Shows what differs between the states in two files.
    #[command(after_help = "Examples:
  gesmas debug diff one/snapshots/0000000000005000.snapshot.evidence \\
                    two/snapshots/0000000000005000.snapshot.evidence
  gesmas debug diff old.snapshot new.snapshot --limit 10 --json

For the evidence that replicas keep when one of them has diverged, and for snapshots; two states are
compared best after the same step. Exit code 0 if they are equal, 1 if not.")]
    Diff {
        /// The first file.
        left: PathBuf,
        /// The second file.
        right: PathBuf,
        /// Differences that are shown at most.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        limit: u32,
    },
}

pub(super) fn run(args: &DebugArgs, output: Output) -> Result<(), Failure> {
    let DebugCommand::Diff { left, right, limit } = &args.command;
    let (one, another) = (read(left)?, read(right)?);
    let found = one.snapshot.differences(&another.snapshot, *limit as usize);
    if output.json {
        let side = |file: &Inspected| {
            json!({ "step": file.head.step, "epoch": file.head.epoch,
                "state_hash": format!("{:032x}", file.head.state_hash),
                "unsound": file.unsound.as_ref().map(ToString::to_string) })
        };
        let differences: Vec<_> = found
            .iter()
            .map(|found| {
                json!({ "record": found.record.to_string(), "part": found.part,
                    "left": found.left, "right": found.right })
            })
            .collect();
        let value = json!({ "left": side(&one), "right": side(&another),
            "differences": differences });
        output.line(&value.to_string());
    } else {
        show(&[(left, &one), (right, &another)], &found, output);
    }
    if found.is_empty() {
        return Ok(());
    }
    let message = if found.len() == *limit as usize {
        format!("the states differ in at least {limit} places")
    } else {
        format!("the states differ in {} places", found.len())
    };
    Err(Failure::new(Exit::Failed, "different", message))
}

fn show(files: &[(&PathBuf, &Inspected)], found: &[Difference], output: Output) {
    for (path, file) in files {
        let (step, hash) = (file.head.step, file.head.state_hash);
        output.line(&format!("{}: step {step}, state {hash:032x}", path.display()));
        if let Some(unsound) = &file.unsound {
            output.line(&format!("  {unsound}"));
        }
    }
    let mut record = None;
    for difference in found {
        if record.replace(&difference.record) != Some(&difference.record) {
            output.line(&difference.record.to_string());
        }
        output.line(&format!("  {}", difference.part));
        for (side, value) in [("left", &difference.left), ("right", &difference.right)] {
            output.line(&format!("    {side:5} {}", value.as_deref().unwrap_or("nothing")));
        }
    }
    if found.is_empty() {
        output.line("the states are equal");
    }
}

fn read(path: &Path) -> Result<Inspected, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    inspect(&bytes).map_err(|error| {
        Failure::new(Exit::Failed, "snapshot", format!("{}: {error}", path.display()))
    })
}
