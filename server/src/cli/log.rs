//! `gesmas log`: the files of a durable log, looked at without a replica.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    exit::Exit,
    failure::Failure,
    output::{Output, Table},
    progress,
};
use crate::log::{
    Tail,
    repo::{FsRepo, Repo as _},
    verify,
};

/// `gesmas log`.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    command: LogCommand,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    /// Reads every record of a log and says whether a replica can start from it.
    #[command(after_help = "Examples:
  gesmas log verify replica-1/log
  gesmas log verify replica-1/log --json

Changes nothing. A torn end is what a crash leaves of a turn that nobody was told of; a log of a
replica that runs may seem to end in one. Exit code 1 if a replica could not start.")]
    Verify {
        /// The folder `log` in a replica's data folder.
        folder: PathBuf,
    },
}

pub(super) fn run(args: LogArgs, output: Output) -> Result<(), Failure> {
    let LogCommand::Verify { folder } = args.command;
    if !folder.is_dir() {
        return Err(Failure::usage(format!("{} is no folder", folder.display())));
    }
    let bar = progress::bytes(output, "verify", 0);
    let mut files = FsRepo::read_only(folder);
    let all = files.list().unwrap_or_default();
    // What cannot be listed or measured is told by the report.
    bar.set_length(all.into_iter().filter_map(|file| files.length(file).ok()).sum());
    let report = verify(&mut progress::Observed::new(files, &bar), None);
    bar.finish_and_clear();
    let tail = |tail: Tail| if tail == Tail::Torn { "torn" } else { "zeros" };
    if output.json {
        let files: Vec<_> = report
            .files
            .iter()
            .map(|file| {
                json!({ "file": file.file, "bytes": file.size, "records": file.records,
                    "end": file.end, "flipped": file.mended,
                    "tail": tail(file.tail) })
            })
            .collect();
        let problem = report.problem.as_ref().map(ToString::to_string);
        let value = json!({ "files": files, "records": report.records,
            "entries": report.entries, "problem": problem });
        output.line(&value.to_string());
    } else {
        let mut table = Table::new(&["FILE", "BYTES", "RECORDS", "END", "FLIPPED", "TAIL"]);
        for file in &report.files {
            table.row([
                file.file.to_string(),
                file.size.to_string(),
                file.records.to_string(),
                file.end.to_string(),
                file.mended.to_string(),
                tail(file.tail).to_owned(),
            ]);
        }
        output.line(table.render().trim_end());
        output.line(&format!("\n{} records, {} entries", report.records, report.entries));
    }
    report
        .problem
        .map_or(Ok(()), |problem| Err(Failure::new(Exit::Failed, "log", problem.to_string())))
}
