//! The command line: this file says what commands there are and hands over to theirs.
//!
//! Invariants: one file per command; results on stdout, all else on stderr; every failure is a
//! [`Failure`] with an exit code of `exit.rs`.
//! Not here: what a replica does (`shell/`), JSON of values (`json/`).

mod compile_child;
mod config;
mod demo;
mod exit;
mod failure;
mod logging;
mod output;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand, error::ErrorKind};

use self::{exit::Exit, failure::Failure, output::Output};

/// A replicated coordination server that its users program.
///
/// Ship a class once, then call its methods on named objects from anywhere. Calls are ordered by
/// Paxos, may block on the server, and take effect exactly once.
#[derive(Debug, Parser)]
#[command(name = "gesmas", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    /// Prints JSON: results on stdout, errors on stderr.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows what the cluster promises: three replicas, a killed leader, nothing lost.
    Demo(demo::DemoArgs),
    /// Runs one replica of a cluster.
    Serve(serve::ServeArgs),
    /// Checks configurations of replicas.
    Config(config::ConfigArgs),
    /// Explains the exit codes.
    #[command(hide = true, long_about = exit::TABLE)]
    ExitCodes,
    /// Compiles one module within bounds; replicas start this.
    #[command(hide = true)]
    CompileChild,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error, std::env::args().any(|word| word == "--json")),
    };
    let output = Output { json: cli.json };
    match run(cli.command, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.report(output.json));
            failure.exit.into()
        }
    }
}

/// Help and versions are results; everything else is a failure.
fn not_parsed(error: &clap::Error, json: bool) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Nobody reads any more: there is nobody to tell either.
            let _closed = error.print();
            ExitCode::SUCCESS
        }
        _ if json => {
            let text = error.to_string();
            let message = text.trim_start_matches("error: ").lines().next().unwrap_or_default();
            eprintln!("{}", Failure::usage(message).report(true));
            Exit::Usage.into()
        }
        _ => {
            let _closed = error.print();
            Exit::Usage.into()
        }
    }
}

fn run(command: Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => server_runtime()?.block_on(demo::run(&args, output)),
        Command::Serve(args) => server_runtime()?.block_on(serve::run(&args)),
        Command::Config(args) => config::run(&args, output),
        Command::ExitCodes => {
            output.line(exit::TABLE);
            Ok(())
        }
        Command::CompileChild => compile_child::run(),
    }
}

/// The runtime of servers: a thread for each core.
fn server_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    runtime(&mut tokio::runtime::Builder::new_multi_thread())
}

fn runtime(builder: &mut tokio::runtime::Builder) -> Result<tokio::runtime::Runtime, Failure> {
    builder.enable_all().build().map_err(|error| {
        let message = format!("the threads of the program cannot be started: {error}");
        Failure::new(Exit::Stopped, "runtime", message)
    })
}
