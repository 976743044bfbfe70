//! `gesmas limits`: the limits of the cluster, which are state of it like any other.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    connect::{Context, Freshness},
    output::Table,
};
use crate::failure::Failure;

/// `gesmas limits`.
#[derive(Debug, Args)]
pub(crate) struct LimitsArgs {
    #[command(subcommand)]
    command: LimitsCommand,
}

#[derive(Debug, Subcommand)]
enum LimitsCommand {
    /// Lists all limits, with the range in which each can be set.
    #[command(after_help = "Example:\n  gesmas limits show --json")]
    Show {
        #[command(flatten)]
        freshness: Freshness,
    },
    /// Changes one, for the whole cluster and from now on.
    #[command(after_help = "Examples:
  gesmas limits set value_bytes 4194304
  gesmas limits set sessions 1000000

What is over a limit that was lowered stays: it may shrink, and not grow. Units are in the names:
bytes, and nanoseconds for session_timeout; all others are counts.")]
    Set {
        /// Name of the limit.
        name: String,
        /// Its value from now on.
        value: u64,
    },
}

pub(super) async fn run(args: LimitsArgs, context: &Context) -> Result<(), Failure> {
    match args.command {
        LimitsCommand::Show { freshness } => show(freshness, context).await,
        LimitsCommand::Set { name, value } => {
            let link = context.open().await?;
            let set = link.session.set_limit(&name, value);
            link.finish(set).await?;
            let text = || format!("{name} is {value} from now on");
            context.output.value(&json!({ "limit": name, "value": value }), text);
            Ok(())
        }
    }
}

async fn show(freshness: Freshness, context: &Context) -> Result<(), Failure> {
    let client = context.ask(freshness).await?;
    let mut table = Table::new(&["LIMIT", "VALUE", "LEAST", "GREATEST"]);
    let mut values = Vec::new();
    for limit in client.limits().await? {
        values.push(json!({
            "limit": limit.name,
            "value": limit.value,
            "least": limit.least,
            "greatest": limit.greatest,
        }));
        // All others are counts, or bytes as their names say.
        let unit = if limit.name == "session_timeout" { " ns" } else { "" };
        let numbers =
            [limit.value, limit.least, limit.greatest].map(|number| format!("{number}{unit}"));
        let [value, least, greatest] = numbers;
        table.row([limit.name, value, least, greatest]);
    }
    context.output.rows(&table, "there are no limits", values);
    Ok(())
}
