//! The command line: this file says what commands there are and hands over to theirs.
//!
//! Invariants: one file per command; results on stdout, all else on stderr; every failure is a
//! `Failure` with an exit code of `exit.rs`.
//! Not here: what a replica does (`shell/`), JSON of values (`json/`).

mod backup;
mod bench;
mod call;
mod class;
mod cluster;
mod compile_child;
mod completions;
mod config;
mod connect;
mod debug;
mod demo;
mod dev;
mod fault;
mod invocation;
mod limits;
mod log;
mod logging;
mod man;
mod names;
mod object;
mod output;
mod progress;
mod restore;
mod serve;
mod session;
mod snapshot;
mod top;
mod why_blocked;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand, error::ErrorKind};

use self::{
    connect::{Context, Target},
    logging::LogFormat,
    output::Output,
};
use crate::{
    failure::{
        self, Failure,
        exit::{self, Exit},
    },
    interface,
};

/// A replicated coordination server that its users program.
///
/// Ship a class once, then call its methods on named objects from anywhere. Calls are ordered by
/// Paxos, may block on the server, and take effect exactly once.
#[derive(Debug, Parser)]
#[command(
    name = "gesmas",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Start here:
  gesmas demo                            shows what it is about, in half a minute
  gesmas dev                             a cluster to try, on this machine
  gesmas object create Queue/jobs 16
  gesmas call Queue/jobs produce hello
  gesmas help call                       every command has examples
  gesmas help exit-codes"
)]
struct Cli {
    /// Prints JSON: results on stdout, errors on stderr.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows what the cluster promises: three replicas, a killed leader, nothing lost.
    Demo(demo::DemoArgs),
    /// Runs a cluster of three replicas in this process, for trying things out.
    Dev(dev::DevArgs),
    /// Runs one replica of a cluster.
    Serve(serve::ServeArgs),
    /// Builds, loads and shows classes.
    Class(class::ClassArgs),
    /// Creates, lists, shows and removes objects.
    Object(object::ObjectArgs),
    /// Calls a method of an object.
    Call(call::CallArgs),
    /// Lists and ends calls that are blocked.
    Invocation(invocation::InvocationArgs),
    /// Tells why a call is blocked: what it waits for, and who could let it go on.
    WhyBlocked(why_blocked::WhyBlockedArgs),
    /// Lists handlers that failed, calls them once more, or forgets them.
    Fault(fault::FaultArgs),
    /// Lists and ends sessions.
    Session(session::SessionArgs),
    /// Shows and changes the limits of the cluster.
    Limits(limits::LimitsArgs),
    /// Looks at the cluster as a whole.
    Cluster(cluster::ClusterArgs),
    /// Shows what the replicas do at the moment, again and again.
    Top(top::TopArgs),
    /// Writes and checks snapshots.
    Snapshot(snapshot::SnapshotArgs),
    /// Fetches the state of a running cluster into a file.
    Backup(backup::BackupArgs),
    /// Begins a replica of a new history with the state of a snapshot.
    Restore(restore::RestoreArgs),
    /// Checks the files of a log.
    Log(log::LogArgs),
    /// Compares states of replicas, when one of them has diverged.
    Debug(debug::DebugArgs),
    /// Measures what calls cost on this machine.
    Bench(bench::BenchArgs),
    /// Checks configurations of replicas.
    Config(config::ConfigArgs),
    /// Prints completions for a shell.
    Completions(completions::CompletionsArgs),
    /// Writes manual pages.
    Man(man::ManArgs),
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
    let context = Context { output: Output { json: cli.json }, target: cli.target };
    match run(cli.command, &context) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.report(context.output.json));
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
            let text = text.split("\n\n").next().unwrap_or_default();
            let words: Vec<_> = text.trim_start_matches("error: ").split_whitespace().collect();
            eprintln!("{}", Failure::usage(words.join(" ")).report(true));
            Exit::Usage.into()
        }
        _ => {
            let _closed = error.print();
            Exit::Usage.into()
        }
    }
}

fn run(command: Command, context: &Context) -> Result<(), Failure> {
    let output = context.output;
    match command {
        Command::Demo(args) => server_runtime()?.block_on(demo::run(&args, output)),
        Command::Dev(args) => server_runtime()?.block_on(dev::run(&args, output)),
        Command::Serve(args) => server_runtime()?.block_on(serve::run(&args)),
        Command::Class(args) => client_runtime()?.block_on(class::run(args, context)),
        Command::Object(args) => client_runtime()?.block_on(object::run(args, context)),
        Command::Call(args) => client_runtime()?.block_on(call::run(args, context)),
        Command::Fault(args) => client_runtime()?.block_on(fault::run(args, context)),
        Command::Invocation(args) => client_runtime()?.block_on(invocation::run(args, context)),
        Command::WhyBlocked(args) => client_runtime()?.block_on(why_blocked::run(&args, context)),
        Command::Session(args) => client_runtime()?.block_on(session::run(args, context)),
        Command::Limits(args) => client_runtime()?.block_on(limits::run(args, context)),
        Command::Cluster(args) => client_runtime()?.block_on(cluster::run(&args, context)),
        Command::Top(args) => client_runtime()?.block_on(top::run(&args, context)),
        Command::Snapshot(args) => client_runtime()?.block_on(snapshot::run(args, context)),
        Command::Backup(args) => client_runtime()?.block_on(backup::run(&args, context)),
        Command::Restore(args) => restore::run(&args, output),
        Command::Log(args) => log::run(args, output),
        Command::Debug(args) => debug::run(&args, output),
        Command::Bench(args) => server_runtime()?.block_on(bench::run(&args, output)),
        Command::Config(args) => config::run(&args, output),
        Command::Completions(args) => {
            completions::run(&args, output);
            Ok(())
        }
        Command::Man(args) => man::run(&args, output),
        Command::ExitCodes => {
            output.line(exit::TABLE);
            Ok(())
        }
        Command::CompileChild => compile_child::run(),
    }
}

/// The runtime of commands that ask a cluster; what the client library logs is for debugging.
fn client_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    logging::start(LogFormat::Text, "error");
    runtime(&mut tokio::runtime::Builder::new_current_thread())
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(words: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(words.split(' '))
    }

    #[test]
    fn the_definition_has_no_contradiction() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_help_with_an_example() {
        fn check(command: &clap::Command, path: &str, checked: &mut usize) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path} does not say what it does");
            let commands: Vec<_> =
                command.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
            if commands.is_empty() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("gesmas "), "{path} has no example");
                *checked += 1;
            }
            for sub in commands {
                check(sub, &path, checked);
            }
        }
        let mut checked = 0;
        check(&Cli::command(), "", &mut checked);
        assert!(checked >= 12, "only {checked} commands were looked at");
    }

    #[test]
    fn negative_numbers_are_arguments() {
        for words in ["gesmas call Counter/a add -1", "gesmas call Counter/a add -- -1"] {
            assert!(parse(words).is_ok(), "{words}");
        }
        assert!(parse("gesmas call Counter/a add -1 --timeout 5s --json").is_ok());
    }

    #[test]
    fn a_wait_may_have_no_limit() {
        for words in ["gesmas call Queue/a consume", "gesmas object create Queue/a 16"] {
            assert!(parse(&format!("{words} --timeout none")).is_ok(), "{words}");
        }
    }

    #[test]
    fn endpoints_are_separated_by_commas() {
        let cli = parse("gesmas class ls --endpoints a:1,b:2").expect("it parses");
        assert_eq!(cli.target.endpoints, ["a:1", "b:2"]);
    }

    #[test]
    fn mistakes_are_found_before_anything_is_sent() {
        for (words, part) in [
            ("gesmas call Queue m", "Class/name"),
            ("gesmas call Queue/a m --timeout 5", "30s"),
            ("gesmas call Queue/a m --timeout forever", "\"none\" is no limit"),
            ("gesmas call Queue/a m --timeout 0s", "some time"),
            ("gesmas object ls 9", "letter"),
            ("gesmas object show Queue/a --limit 0", "1..=10000"),
            ("gesmas invocation kill", "ID"),
            ("gesmas serve", "--config"),
        ] {
            let error = parse(words).expect_err("there is a mistake");
            assert_eq!(error.exit_code(), Exit::Usage as i32);
            assert!(error.to_string().contains(part), "{words}: {error}");
        }
    }
}
