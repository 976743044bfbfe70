//! `gesmas fault`: handlers that failed, and ending them.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use gesmas_client::protocol::FaultSummary;
use serde_json::json;

use super::{
    connect::{Context, Freshness, Limit},
    names::{self, ObjectPath},
    output::Table,
};
use crate::{
    failure::Failure,
    interface,
    json::{Integers, format_time},
    view::fault,
};

/// `gesmas fault`.
#[derive(Debug, Args)]
pub(crate) struct FaultArgs {
    #[command(subcommand)]
    command: FaultCommand,
}

#[derive(Debug, Subcommand)]
enum FaultCommand {
    /// Lists handlers that failed: what called them, and why they failed.
    #[command(after_help = "Examples:
  gesmas fault ls
  gesmas fault ls WorkQueue --json")]
    Ls(LsArgs),
    /// Calls handlers once more, with the arguments that they had.
    #[command(after_help = "Example:
  gesmas fault retry WorkQueue/mail 17

The handler runs on its own, soon after this command, from its beginning. If it fails again there is
a new fault.")]
    Retry(EndArgs),
    /// Forgets faults.
    #[command(after_help = "Example:\n  gesmas fault drop WorkQueue/mail 17 18")]
    Drop(EndArgs),
}

#[derive(Debug, Args)]
struct LsArgs {
    /// Only those of a class.
    #[arg(value_parser = names::class)]
    class: Option<String>,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    freshness: Freshness,
}

#[derive(Debug, Args)]
struct EndArgs {
    /// The object that keeps them.
    #[arg(value_name = "CLASS/NAME")]
    object: ObjectPath,
    /// Numbers of the faults, as `gesmas fault ls` shows them.
    #[arg(required = true, value_name = "FAULT")]
    faults: Vec<u64>,
}

pub(super) async fn run(args: FaultArgs, context: &Context) -> Result<(), Failure> {
    match args.command {
        FaultCommand::Ls(args) => list(args, context).await,
        FaultCommand::Retry(args) => end(args, true, context).await,
        FaultCommand::Drop(args) => end(args, false, context).await,
    }
}

async fn end(args: EndArgs, retry: bool, context: &Context) -> Result<(), Failure> {
    for fault in args.faults {
        let link = context.open().await?;
        let ObjectPath { class, object } = args.object.clone();
        let end = link.session.end_fault(class, object, fault, retry);
        link.finish(end).await?;
        let (word, text) =
            if retry { ("retried", "is called once more") } else { ("dropped", "is gone") };
        context
            .output
            .value(&json!({ word: fault }), || format!("the handler of fault {fault} {text}"));
    }
    Ok(())
}

async fn list(args: LsArgs, context: &Context) -> Result<(), Failure> {
    let client = context.ask(args.freshness).await?;
    let page = args.limit.gather(async |last: Option<&FaultSummary>, limit| {
        let after = last.map(|last| (last.class.clone(), last.object.clone()));
        client.list_faults(args.class.clone(), after, limit).await
    });
    let page = page.await?;
    let mut interfaces = BTreeMap::new();
    let mut table = Table::new(&["FAULT", "OBJECT", "HANDLER", "ARGUMENTS", "AT", "ERROR"]);
    let mut values = Vec::new();
    for item in &page.items {
        if !interfaces.contains_key(&item.class) {
            // Without it the arguments are not shown.
            let interface = interface::of_class(&client, &item.class).await.ok();
            interfaces.insert(item.class.clone(), interface);
        }
        let interface = interfaces.get(&item.class).and_then(Option::as_ref);
        let arguments = fault::arguments(item, interface, Integers::Numbers);
        table.row([
            item.fault.to_string(),
            format!("{}/{}", item.class, item.object),
            item.handler.clone(),
            arguments.map_or_else(|| "-".into(), |arguments| arguments.to_string()),
            format_time(item.at),
            item.error.clone(),
        ]);
        values.push(fault::as_json(item, interface, Integers::Numbers));
    }
    context.output.rows(&table, "no handler has failed", values);
    args.limit.note(page.more, context.output);
    Ok(())
}
