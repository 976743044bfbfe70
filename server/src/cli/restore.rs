//! `gesmas restore`: a replica of a new history begins with the state of a snapshot.
//!
//! Every member restores from the same file into an empty data folder, and the cluster is founded
//! with it. Invariant: what is there already is never overwritten.

use std::{fs, path::PathBuf};

use clap::Args;
use serde_json::json;

use super::{output::Output, progress};
use crate::failure::{Failure, exit::Exit};
use crate::{
    shell::Config,
    snapshot::{Owner, SnapshotError, Store, repo::FsRepo},
};

/// `gesmas restore`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas restore 0000000000006668.snapshot --config replica-1.toml

Do it on every member, with the same file, while none of them runs; then start them all. Calls made
after the snapshot are gone. Fencing tokens and all numbers go on from beyond those given out before.")]
pub(crate) struct RestoreArgs {
    /// A file of a replica's folder `snapshots`, under its own name.
    snapshot: PathBuf,
    /// The configuration of the replica to restore. Its data folder must be empty or not there.
    #[arg(long)]
    config: PathBuf,
}

pub(super) fn run(args: &RestoreArgs, output: Output) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    let owner = Owner { cluster: config.cluster_id()?, group: 1, configuration: 1 };
    let (folder, index) = place(&args.snapshot)?;
    let occupied = fs::read_dir(&config.data).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        let message = format!("{} is not empty", config.data.display());
        return Err(Failure::new(Exit::Failed, "occupied", message)
            .advise("move the old data away first; nothing is overwritten"));
    }
    let failed = |error: SnapshotError| Failure::new(Exit::Failed, "snapshot", error.to_string());
    let bar = progress::bytes(output, "restore", 0);
    let files = progress::Observed::new(FsRepo::read_only(folder), &bar);
    let mut source = Store::new(Box::new(files), owner);
    // It is read, and written once more.
    let length = source.length(index).map_err(SnapshotError::from).map_err(failed)?;
    bar.set_length(2 * length);
    let loaded = source.load(index).map_err(failed)?;
    let repo = FsRepo::open(config.data.join("snapshots")).map_err(SnapshotError::from);
    let files = progress::Observed::new(repo.map_err(failed)?, &bar);
    let mut target = Store::new(Box::new(files), owner);
    let members = config.members.iter().map(|member| member.replica).collect();
    let restored = loaded.snapshot.restored(members);
    let (head, bytes) = target.write(0, &restored).map_err(failed)?;
    bar.finish_and_clear();
    if output.json {
        let value = json!({ "step": head.step, "epoch": head.epoch, "bytes": bytes,
            "state_hash": format!("{:032x}", head.state_hash) });
        output.line(&value.to_string());
    } else {
        output.line(&format!(
            "replica {} begins epoch {} at step {}, state {:032x}",
            config.replica, head.epoch, head.step, head.state_hash
        ));
    }
    Ok(())
}

/// Folder and index of a file of a snapshot.
fn place(path: &std::path::Path) -> Result<(PathBuf, u64), Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let index = name.and_then(|name| name.strip_suffix(".snapshot")?.parse().ok());
    let Some(index) = index else {
        let message = "a snapshot is named by sixteen digits and .snapshot, as it was written";
        return Err(Failure::usage(message));
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.map_or_else(|| ".".into(), PathBuf::from), index))
}
