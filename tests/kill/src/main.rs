//! `gesmas-kill`: kills, stops and splits real `gesmas serve` processes under load, and checks all
//! that the clients saw.
//!
//! Invariants: replicas, namespaces and folders do not outlive this program, except for the folder
//! of a run that found something, whose path is printed; the exit code is 0 only if every promise
//! was kept.
//! Not here: disks that lose writes and networks that lose frames at will (`tests/simulator`).

mod audit;
mod binary;
mod checkers;
mod cluster;
mod history;
mod launch;
mod load;
mod nemesis;
mod network;
mod prng;
mod report;
mod run;
mod schedule;
mod splits;

use std::{env, ffi::OsStr, fs, process::ExitCode, time::Duration};

use clap::Parser;

use self::{
    report::{Report, Splits},
    run::{NOT_POSSIBLE, Options, RunError},
};

const HELP: &str = "\
Exit codes:
    0    every promise was kept
    1    a promise was broken; the report says which
    2    the command line is wrong
    3    there is no report: the replicas could not be started, or the system refused something
    4    every promise was kept, but splits were asked for and are not possible here
  101    a fault of this program
  130    interrupted

The binary under test is the one of this build, or the one that GESMAS_BINARY names.
A seed repeats the rounds. Real processes keep their own time, so what comes of them may differ.";

/// Kills real replicas under load and checks the whole history.
#[derive(Debug, Parser)]
#[command(name = "gesmas-kill", after_help = HELP)]
struct Arguments {
    /// How many SIGKILLs.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    kills: u64,
    /// What the rounds are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many replicas: 3, 5 or 7.
    #[arg(long, default_value = "3", value_parser = ["3", "5", "7"])]
    replicas: String,
    /// Mean pause of each of the 24 clients between two calls, milliseconds.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pace: u64,
    /// Also splits the network between replicas. Needs root and `ip` of iproute2.
    #[arg(long)]
    splits: bool,
    /// Writes the report as JSON to a file; `-` is stdout, instead of the text.
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
}

fn main() -> ExitCode {
    let mut words = env::args_os().skip(1);
    if words.next().as_deref() == Some(OsStr::new(launch::LAUNCH)) {
        eprintln!("the replica cannot be started: {}", launch::become_replica(words));
        return ExitCode::from(3);
    }
    let arguments = Arguments::parse();
    let options = options(&arguments);
    let runtime = tokio::runtime::Runtime::new().expect("the system gives threads");
    // Replicas are started from this thread, which lives as long as the program.
    runtime.block_on(async {
        tokio::select! {
            report = run::run(&options) => tell(&arguments, report),
            _ = tokio::signal::ctrl_c() => {
                eprintln!("interrupted");
                ExitCode::from(130)
            }
        }
    })
}

fn options(arguments: &Arguments) -> Options {
    Options {
        kills: arguments.kills,
        seed: arguments.seed,
        replicas: arguments.replicas.parse().expect("it is one of three numbers"),
        pace: Duration::from_millis(arguments.pace),
        splits: arguments.splits,
    }
}

fn tell(arguments: &Arguments, report: Result<Report, RunError>) -> ExitCode {
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    let json = serde_json::to_string_pretty(&report).expect("a report is plain data");
    match arguments.json.as_deref() {
        Some("-") => println!("{json}"),
        Some(file) => {
            println!("{report}");
            if let Err(error) = fs::write(file, json + "\n") {
                eprintln!("{file}: {error}");
                return ExitCode::from(3);
            }
        }
        None => println!("{report}"),
    }
    let impossible =
        matches!(&report.splits, Splits::No(reason) if reason.starts_with(NOT_POSSIBLE));
    match (report.violations.is_empty(), impossible) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(4),
        (true, false) => ExitCode::SUCCESS,
    }
}
