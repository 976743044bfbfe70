//! `gesmas config check`: reads a configuration as `serve` would, and says what it means.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{failure::Failure, output::Output};
use crate::shell::Config;

/// `gesmas config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Says whether a replica could be served with this file.
    ///
    /// Nothing is started and nothing is written. docs/gesmas.toml explains every setting.
    #[command(after_help = "Example:\n  gesmas config check /etc/gesmas.toml")]
    Check {
        /// The configuration of a replica.
        file: PathBuf,
    },
}

pub(super) fn run(args: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let ConfigCommand::Check { file } = &args.command;
    let config = Config::load(file)?;
    let (replica, count) = (config.replica, config.members.len());
    let peers = config.own_peers();
    output.value(
        &json!({
            "file": file,
            "replica": replica,
            "replicas": count,
            "clients": config.listen.to_string(),
            "peers": peers.to_string(),
            "data": config.data,
        }),
        || {
            format!(
                "{} is good: replica {replica} of {count}, clients at {}, peers at {peers}, data in {}",
                file.display(),
                config.listen,
                config.data.display()
            )
        },
    );
    Ok(())
}
