//! `gesmas cluster`: the cluster as a whole.

mod status;
mod transfer_leader;

use clap::{Args, Subcommand};

use super::connect::Context;
use crate::failure::Failure;

/// `gesmas cluster`.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Asks every endpoint: who leads, how far each replica is, whether their states agree.
    #[command(after_help = "Examples:
  gesmas cluster status --endpoints 127.0.0.1:7100,127.0.0.1:7101,127.0.0.1:7102
  GESMAS_ENDPOINTS=127.0.0.1:7100,127.0.0.1:7101 gesmas cluster status --json

Exit code 3 if an endpoint does not answer, 1 if two replicas at the same step have different
states.")]
    Status,
    /// Lets another replica lead, before the one that does is stopped, say.
    TransferLeader(transfer_leader::TransferLeaderArgs),
}

pub(super) async fn run(args: &ClusterArgs, context: &Context) -> Result<(), Failure> {
    match &args.command {
        ClusterCommand::Status => status::run(context).await,
        ClusterCommand::TransferLeader(args) => transfer_leader::run(args, context).await,
    }
}
