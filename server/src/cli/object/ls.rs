//! `gesmas object ls`: objects by class and name.

use clap::Args;
use gesmas_client::protocol::ObjectSummary;

use crate::{
    cli::{
        connect::{Context, Freshness, Limit},
        names,
        output::Table,
    },
    failure::Failure,
    view,
};

/// `gesmas object ls`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gesmas object ls\n  gesmas object ls Queue --limit 10")]
pub(crate) struct LsArgs {
    /// Only those of this class.
    #[arg(value_parser = names::class)]
    class: Option<String>,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    freshness: Freshness,
}

pub(super) async fn run(args: LsArgs, context: &Context) -> Result<(), Failure> {
    let client = context.ask(args.freshness).await?;
    let page = args.limit.gather(async |last: Option<&ObjectSummary>, limit| {
        let after = last.map(|last| (last.class.clone(), last.object.clone()));
        client.list_objects(args.class.clone(), after, limit).await
    });
    let page = page.await?;
    let mut table = Table::new(&["OBJECT", "BYTES", "WAITING"]);
    let mut values = Vec::new();
    for object in &page.items {
        let name = format!("{}/{}", object.class, object.object);
        table.row([name, object.bytes.to_string(), object.waiters.to_string()]);
        values.push(view::object::row(object));
    }
    context.output.rows(&table, "there is no object", values);
    args.limit.note(page.more, context.output);
    Ok(())
}
