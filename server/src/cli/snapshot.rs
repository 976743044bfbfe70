//! `gesmas snapshot`: snapshots of running replicas, and files of snapshots.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::{Args, Subcommand};
use gesmas_client::Client;
use serde_json::json;

use super::{
    connect::{self, Context},
    exit::Exit,
    failure::Failure,
    output::Table,
    progress,
};
use crate::snapshot::{Owner, Store, repo::FsRepo};

/// How long an endpoint may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a snapshot may take.
const WRITING: Duration = Duration::from_secs(600);
/// Between two looks at a replica.
const LOOK: Duration = Duration::from_millis(50);

/// `gesmas snapshot`.
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    /// Lets every endpoint's replica write a snapshot, and waits until they are durable.
    #[command(after_help = "Examples:
  gesmas snapshot now
  gesmas snapshot now --endpoints 127.0.0.1:7100 --json

Replicas write snapshots by themselves as their logs grow; this is for before a planned restart.")]
    Now,
    /// Reads the snapshots in a folder to the last byte and says what they are of.
    #[command(after_help = "Examples:
  gesmas snapshot verify replica-1/snapshots --cluster 4c1f6a90d2e84b7fa35e07b91c66d8e2

Changes nothing, and can be used while the replica runs. Exit code 1 if one is damaged.")]
    Verify {
        /// The folder `snapshots` in a replica's data folder.
        folder: PathBuf,
        /// The cluster, as in its configuration.
        #[arg(long)]
        cluster: String,
    },
}

pub(super) async fn run(args: SnapshotArgs, context: &Context) -> Result<(), Failure> {
    match args.command {
        SnapshotCommand::Now => now(context).await,
        SnapshotCommand::Verify { folder, cluster } => verify(folder, &cluster, context),
    }
}

async fn now(context: &Context) -> Result<(), Failure> {
    let mut table = Table::new(&["ENDPOINT", "INDEX", "BYTES", "SECONDS"]);
    let mut rows = Vec::new();
    for endpoint in &context.target.endpoints {
        let client = connect::connect(vec![endpoint.clone()], PATIENCE).await?;
        let start = Instant::now();
        let (index, bytes) = write_one(&client).await?;
        let seconds = start.elapsed().as_secs_f64();
        client.shutdown().await;
        rows.push(json!({ "endpoint": endpoint, "index": index, "bytes": bytes }));
        table.row([
            endpoint.clone(),
            index.to_string(),
            bytes.to_string(),
            format!("{seconds:.1}"),
        ]);
    }
    if context.output.json {
        context.output.line(&json!({ "snapshots": rows }).to_string());
    } else {
        context.output.line(table.render().trim_end());
    }
    Ok(())
}

/// Lets one replica write a snapshot; gives its index and the bytes of its file. If nothing was
/// applied since the last one, that is the answer.
pub(super) async fn write_one(client: &Client) -> Result<(u64, u64), Failure> {
    let failed = count(&client.counters().await?, "snapshots_failed");
    let written = client.take_snapshot().await?;
    let start = Instant::now();
    while start.elapsed() < WRITING {
        let counters = client.counters().await?;
        let count = |name| count(&counters, name);
        let (index, bytes) = (count("snapshot_index"), count("snapshot_bytes"));
        if count("snapshots_written") > written || (index > 0 && index == count("log_applied")) {
            return Ok((index, bytes));
        }
        if count("snapshots_failed") > failed {
            let message = "the replica could not write a snapshot; its log says why";
            return Err(Failure::new(Exit::Failed, "snapshot", message));
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(Failure::new(Exit::Failed, "snapshot", "the snapshot is not there after ten minutes"))
}

fn count(counters: &[(String, u64)], name: &str) -> u64 {
    counters.iter().find(|(found, _)| found == name).map_or(0, |(_, count)| *count)
}

fn verify(folder: PathBuf, cluster: &str, context: &Context) -> Result<(), Failure> {
    let cluster = u128::from_str_radix(cluster, 16)
        .map_err(|_| Failure::usage("--cluster must be 1 to 32 hexadecimal digits"))?;
    if !folder.is_dir() {
        let message = format!("{} is no folder", folder.display());
        return Err(Failure::usage(message));
    }
    let owner = Owner { cluster, group: 1, configuration: 1 };
    let bar = progress::bytes(context.output, "verify", 0);
    let files = progress::Observed::new(FsRepo::read_only(folder), &bar);
    let mut store = Store::new(Box::new(files), owner);
    let failed =
        |error: &dyn std::error::Error| Failure::new(Exit::Failed, "snapshot", error.to_string());
    let mut table = Table::new(&["INDEX", "STEP", "BYTES", "BLOCKED", "STATE"]);
    let (mut rows, mut damaged) = (Vec::new(), None);
    let all = store.list().map_err(|error| failed(&error))?;
    let lengths = all.iter().map(|index| store.length(*index));
    bar.set_length(lengths.sum::<Result<u64, _>>().map_err(|error| failed(&error))?);
    for index in all {
        match store.load(index) {
            Ok(loaded) => {
                let (head, blocked) = (loaded.head, loaded.snapshot.blocked());
                let hash = format!("{:032x}", head.state_hash);
                rows.push(json!({ "index": index, "step": head.step, "bytes": loaded.bytes,
                    "blocked": blocked, "state_hash": hash }));
                table.row([
                    index.to_string(),
                    head.step.to_string(),
                    loaded.bytes.to_string(),
                    blocked.to_string(),
                    hash[..8].to_owned(),
                ]);
            }
            Err(error) => {
                rows.push(json!({ "index": index, "error": error.to_string() }));
                damaged.get_or_insert(error);
            }
        }
    }
    bar.finish_and_clear();
    if context.output.json {
        context.output.line(&json!({ "snapshots": rows }).to_string());
    } else {
        context.output.line(table.render().trim_end());
    }
    damaged.map_or(Ok(()), |error| {
        Err(failed(&error).advise(
            "a replica sets a damaged snapshot aside when it starts, and goes on from the one before",
        ))
    })
}
