//! `gesmas bench`: see [`crate::bench`].

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

use super::{Exit, Failure, Output};
use crate::{
    bench::{
        blocked,
        cluster::{self, Placement, Point, PointReport},
        failover, kernel, steps,
    },
    local_cluster::ClassKind,
};

/// Measures what calls cost on this machine.
#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// What a call costs in the kernel alone, on one thread.
    ///
    /// No log and no sockets: the machine and an engine, WebAssembly and native.
    #[command(after_help = "Examples:\n  gesmas bench kernel\n  gesmas bench kernel --json")]
    Kernel {
        /// Rounds of each case.
        #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=1_000))]
        rounds: u64,
        /// Calls of a round.
        #[arg(long, default_value_t = 6_400, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
        calls: u64,
        /// Only this engine.
        #[arg(long)]
        engine: Option<EngineName>,
    },
    /// How long the kernel pauses for a snapshot of much state, and how calls go on meanwhile.
    ///
    /// One machine with native classes on one thread; another thread writes the snapshot to a file.
    #[command(
        after_help = "Examples:\n  gesmas bench pause\n  gesmas bench pause --mib 1024 --json"
    )]
    Pause {
        /// State, MiB.
        #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1_800))]
        mib: u64,
    },
    /// How long the longest step of each standard class takes, at its limits.
    ///
    /// One machine on one thread, WebAssembly. All other calls wait while a step runs: 50 ms are the aim.
    #[command(
        after_help = "Examples:\n  gesmas bench steps\n  gesmas bench steps --class Membership --json"
    )]
    Steps {
        /// Only this class.
        #[arg(long)]
        class: Option<String>,
        /// How often each scene runs; the shortest time of each step counts.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        runs: u32,
    },
    /// How many calls a second three replicas take, and with which latencies.
    ///
    /// Starts three replicas on loopback with the default settings and increments a counter: in a
    /// closed loop, in which each caller has one call outstanding, or at a rate, with latencies
    /// counted from when each call was due.
    #[command(
        after_help = "Examples:\n  gesmas bench cluster\n  gesmas bench cluster --clients 64 --seconds 10 --at leader\n  gesmas bench cluster --clients 64 --rates 1000,5000,10000\n  gesmas bench cluster --clients 64 --settings tracing.toml"
    )]
    Cluster(ClusterArgs),
    /// How long an update waits when the leader is lost, and when all replicas are started again.
    ///
    /// Each time three replicas are started on loopback with the default settings.
    #[command(after_help = "Examples:\n  gesmas bench failover\n  gesmas bench failover --json")]
    Failover {
        /// How often each is measured.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
        repeats: u64,
    },
    /// What blocked callers cost, and how fast a cluster with many of them restarts.
    ///
    /// Starts three replicas, lets every call of every session block, takes snapshots, kills and
    /// starts all replicas, and lets all calls go, in their order.
    #[command(
        after_help = "Examples:\n  gesmas bench blocked\n  gesmas bench blocked --sessions 1000 --calls 1000 --json"
    )]
    Blocked {
        /// Sessions.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        sessions: u64,
        /// Blocked calls of each.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
        calls: u64,
        /// Connections that carry the sessions.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1_000))]
        connections: u64,
    },
}

#[derive(Debug, Args)]
struct ClusterArgs {
    /// Numbers of clients, each with a connection of its own.
    #[arg(long, value_delimiter = ',', default_value = "1,64", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    clients: Vec<u64>,
    /// Length of each point.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Where clients connect; without it, all of the leader, and in turn to all replicas.
    #[arg(long)]
    at: Option<At>,
    /// Calls that begin in a second, of all clients together: an open loop for each of these rates
    /// and each number of clients, in place of the closed ones.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rates: Vec<u64>,
    /// How the class runs: as WebAssembly, as users' classes do, or as code of the replicas.
    #[arg(long, default_value = "wasm")]
    engine: EngineName,
    /// Leaves out the points with many sessions or calls on few connections.
    #[arg(long)]
    only_clients: bool,
    /// Tables of settings that are added to the configuration of each replica, to see what they cost.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineName {
    Wasm,
    Native,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum At {
    Leader,
    Follower,
    Spread,
}

impl ClusterArgs {
    fn settings(&self) -> Result<String, Failure> {
        let Some(path) = &self.settings else { return Ok(String::new()) };
        std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))
    }

    fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        let mut add = |callers, sessions, connections, alone: bool| {
            let placements = match self.at {
                Some(At::Leader) => vec![Placement::Leader],
                Some(At::Follower) => vec![Placement::Follower],
                Some(At::Spread) => vec![Placement::Spread],
                // One client cannot be spread.
                None if alone => vec![Placement::Leader, Placement::Follower],
                None => vec![Placement::Leader, Placement::Spread],
            };
            for placement in placements {
                let closed = Point { callers, sessions, connections, placement, rate: None };
                points.extend(self.rates.iter().map(|rate| Point { rate: Some(*rate), ..closed }));
                if self.rates.is_empty() {
                    points.push(closed);
                }
            }
        };
        for clients in &self.clients {
            let clients = usize::try_from(*clients).expect("it was checked");
            add(clients, clients, clients, clients == 1);
        }
        if !self.only_clients && self.rates.is_empty() {
            add(64, 64, 4, false);
            add(1_000, 16, 16, false);
        }
        points
    }
}

pub(super) async fn run(args: &BenchArgs, output: Output) -> Result<(), Failure> {
    match &args.bench {
        Bench::Kernel { rounds, calls, engine } => {
            let size = |count: &u64| usize::try_from(*count).expect("it was checked");
            let engine = engine.map(|engine| match engine {
                EngineName::Wasm => kernel::EngineKind::Wasm,
                EngineName::Native => kernel::EngineKind::Native,
            });
            let (rounds, calls) = (size(rounds), size(calls));
            let options = kernel::Options { rounds, calls, engine, allocations: None };
            // It is work of this one thread, and nobody else uses the runtime.
            let report = kernel::run(&options).map_err(|error| failed(&error))?;
            print(output, &report, &report.to_string());
        }
        Bench::Pause { mib } => {
            let mib = usize::try_from(*mib).expect("it was checked");
            let report = kernel::pause(mib).map_err(|error| failed(&error))?;
            print(output, &report, &report.to_string());
        }
        Bench::Steps { class, runs } => {
            let report = steps::run(class.as_deref(), *runs).map_err(|error| failed(&error))?;
            print(output, &report, &report.to_string());
        }
        Bench::Blocked { sessions, calls, connections } => {
            let size = |count: &u64| usize::try_from(*count).expect("it was checked");
            let options = blocked::Options {
                sessions: size(sessions),
                calls: size(calls),
                connections: size(connections),
            };
            let report = blocked::run(&options, |stage| tracing::info!(stage)).await;
            let report = report.map_err(|error| failed(&error))?;
            print(output, &report, &report.to_string());
        }
        Bench::Failover { repeats } => {
            let repeats = usize::try_from(*repeats).expect("it was checked");
            let report = failover::run(repeats).await.map_err(|error| failed(&error))?;
            print(output, &report, &report.to_string());
        }
        Bench::Cluster(args) => {
            let length = Duration::from_secs(args.seconds);
            let kind = match args.engine {
                EngineName::Wasm => ClassKind::Wasm,
                EngineName::Native => ClassKind::Native,
            };
            let options = cluster::Options {
                points: args.points(),
                length,
                kind,
                settings: args.settings()?,
            };
            // Points are results, and come one by one for people, all together for programs.
            let text = |text: &str| {
                if !output.json {
                    output.line(text)
                }
            };
            text(&PointReport::headings());
            let report = cluster::run(&options, |point| text(&point.to_string())).await;
            let report = report.map_err(|error| failed(&error))?;
            if output.json {
                print(output, &report, "");
            }
        }
    }
    Ok(())
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failed, "bench", error.to_string())
}

fn print(output: Output, report: &impl serde::Serialize, text: &str) {
    if output.json {
        output.line(&serde_json::to_string_pretty(report).expect("a report is plain data"));
    } else {
        output.line(text);
    }
}
