//! `gesmas class ls`: the classes that are loaded, and the standard ones that calls would load.

use clap::Args;

use crate::{
    cli::{
        connect::{Context, Freshness},
        output::Table,
    },
    failure::Failure,
    view::class::{self, ON_FIRST_USE},
};

/// Digits of a code hash that a table shows.
const DIGITS: usize = 12;

/// `gesmas class ls`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gesmas class ls --json")]
pub(crate) struct LsArgs {
    #[command(flatten)]
    freshness: Freshness,
}

pub(super) async fn run(args: &LsArgs, context: &Context) -> Result<(), Failure> {
    let client = context.ask(args.freshness).await?;
    let rows = class::rows(&client.list_classes().await?);
    let mut table = Table::new(&["CLASS", "STATE", "BYTES", "OBJECTS", "CODE"]);
    for row in &rows {
        let state = if row.state == ON_FIRST_USE { "on first use" } else { row.state };
        table.row([
            row.name.clone(),
            state.into(),
            row.bytes.to_string(),
            row.objects.to_string(),
            row.code[..DIGITS].into(),
        ]);
    }
    let values = rows.iter().map(class::ClassRow::as_json).collect();
    context.output.rows(&table, "no class is loaded", values);
    Ok(())
}
