//! `gesmas backup`: the state of a running cluster in one file.
//!
//! A replica writes a snapshot while calls go on, and hands over its file piece by piece.
//! Invariant: a file of that name is whole, was checked to the last byte, and is durable.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use gesmas_client::Client;
use serde_json::json;

use super::{
    connect::{self, Context},
    exit::Exit,
    failure::Failure,
    progress,
    snapshot::write_one,
};
use crate::snapshot::{Inspected, inspect};

/// How long an endpoint may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// `gesmas backup`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas backup
  gesmas backup /backup --endpoints 127.0.0.1:7100

Any replica will do, and calls go on meanwhile. The file is a snapshot under its own name, for
gesmas restore. What was acknowledged before the command began is in it.")]
pub(crate) struct BackupArgs {
    /// The folder for the file.
    #[arg(default_value = ".")]
    folder: PathBuf,
}

pub(super) async fn run(args: &BackupArgs, context: &Context) -> Result<(), Failure> {
    let client = connect_to_one(context).await?;
    let (index, _) = write_one(&client).await?;
    let path = args.folder.join(format!("{index:016}.snapshot"));
    let failed = |error: io::Error| {
        Failure::new(Exit::Failed, "file", format!("{}: {error}", path.display()))
    };
    if path.exists() {
        let message = format!("{} is there already", path.display());
        return Err(Failure::new(Exit::Failed, "occupied", message)
            .advise("nothing was applied since it was made; it is the backup"));
    }
    fs::create_dir_all(&args.folder).map_err(failed)?;
    let partial = path.with_extension("snapshot.partial");
    let outcome = fetch(&client, index, &partial, context).await;
    client.shutdown().await;
    let found = outcome.inspect_err(|_| {
        // Should this fail as well, the name says what the file is.
        let _left = fs::remove_file(&partial);
    })?;
    fs::rename(&partial, &path)
        .and_then(|()| File::open(&args.folder)?.sync_all())
        .map_err(failed)?;
    let (head, bytes) = (found.head, fs::metadata(&path).map_err(failed)?.len());
    let value = json!({ "file": path, "index": head.index, "step": head.step,
        "epoch": head.epoch, "bytes": bytes, "blocked": found.snapshot.blocked(),
        "state_hash": format!("{:032x}", head.state_hash) });
    context.output.value(&value, || {
        format!("{}: step {}, {bytes} bytes, checked", path.display(), head.step)
    });
    Ok(())
}

/// A snapshot is one replica's: its pieces come from the replica that wrote it.
async fn connect_to_one(context: &Context) -> Result<Client, Failure> {
    let mut last = None;
    for endpoint in &context.target.endpoints {
        match connect::connect(vec![endpoint.clone()], PATIENCE).await {
            Ok(client) => return Ok(client),
            Err(error) => last = Some(error),
        }
    }
    Err(last.expect("the command line has at least one endpoint"))
}

/// Gets a file and checks it.
async fn fetch(
    client: &Client,
    index: u64,
    path: &Path,
    context: &Context,
) -> Result<Inspected, Failure> {
    let failed = |error: io::Error| {
        Failure::new(Exit::Failed, "file", format!("{}: {error}", path.display()))
    };
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(true).clone();
    let mut file = options.open(path).map_err(failed)?;
    let bar = progress::bytes(context.output, "backup", 0);
    let mut offset = 0;
    loop {
        let (total, bytes) = client.snapshot_piece(index, offset).await?;
        bar.set_length(total);
        if bytes.is_empty() {
            break;
        }
        file.write_all(&bytes).map_err(failed)?;
        offset += bytes.len() as u64;
        bar.set_position(offset);
    }
    file.sync_all().map_err(failed)?;
    bar.finish_and_clear();
    let mut whole = vec![0; usize::try_from(offset).expect("a state fits into memory")];
    file.read_exact_at(&mut whole, 0).map_err(failed)?;
    let damaged = |error: &dyn std::error::Error| {
        Failure::new(Exit::Failed, "snapshot", format!("the backup is not good: {error}"))
    };
    let found = inspect(&whole).map_err(|error| damaged(&error))?;
    match &found.unsound {
        None => Ok(found),
        Some(unsound) => Err(damaged(unsound)),
    }
}
