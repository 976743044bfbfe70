//! `gesmas object show`: one object with its state.

use std::fmt::Write as _;

use clap::Args;
use gesmas_abi::interface::Interface;
use gesmas_client::protocol::ObjectDetail;

use crate::{
    cli::{
        connect::{Context, Freshness},
        failure::Failure,
        interface,
        names::ObjectPath,
        output::Table,
    },
    json::{Integers, format_time},
    view::{
        fault,
        object::{as_json, when},
        state::{self, Content, File},
    },
};

/// `gesmas object show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas object show Queue/jobs
  gesmas object show Lock/leader --json

Values are decoded by the class's interface; what does not fit it is shown as it is.")]
pub(crate) struct ShowArgs {
    /// The object.
    #[arg(value_name = "CLASS/NAME")]
    object: ObjectPath,
    /// Shows at most so many entries, and so many waiters of each semaphore.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    freshness: Freshness,
}

pub(super) async fn run(args: ShowArgs, context: &Context) -> Result<(), Failure> {
    let client = context.ask(args.freshness).await?;
    let ObjectPath { class, object } = &args.object;
    let detail = client.show_object(class, object, args.limit).await?;
    let interface = interface::of_class(&client, class).await?;
    let files = state::files(&interface, &detail, Integers::Numbers);
    context.output.value(&as_json(&detail, &files, &interface, Integers::Numbers), || {
        render(&args.object, &detail, &files, &interface).trim_end().to_owned()
    });
    if detail.more {
        context.output.note(&format!("there is more than {} entries: see --limit", args.limit));
    }
    Ok(())
}

fn render(
    object: &ObjectPath,
    detail: &ObjectDetail,
    files: &[File],
    interface: &Interface,
) -> String {
    let summary = &detail.summary;
    let mut table = Table::default();
    for file in files {
        let text = match &file.content {
            Content::Value(None) => String::new(),
            Content::Value(Some(value)) => value.to_string(),
            Content::Semaphore { count, waiters, owners } => semaphore(*count, waiters, owners),
        };
        table.row([format!("/{object}/{}", file.path), text]);
    }
    for timer in &detail.timers {
        table.row([format!("timer {}", timer.alarm), format!("{} {}", timer.handler, when(timer))]);
    }
    let mut text = format!(
        "/{object}: incarnation {}, {} bytes, {} waiting\n",
        summary.incarnation, summary.bytes, summary.waiters
    );
    text += &table.render();
    for fault in &detail.faults {
        let arguments = fault::arguments(fault, Some(interface), Integers::Numbers);
        let arguments = arguments.map_or_else(String::new, |arguments| format!(" {arguments}"));
        let (id, handler, at) = (fault.fault, &fault.handler, format_time(fault.at));
        let _ = writeln!(text, "fault {id}: {handler}{arguments} at {at}: {}", fault.error);
    }
    text
}

fn semaphore(count: u64, waiters: &[u64], owners: &[String]) -> String {
    let mut text = format!("semaphore, count {count}");
    if !waiters.is_empty() {
        let waiters: Vec<_> = waiters.iter().map(u64::to_string).collect();
        text += &format!(", waiting: {}", waiters.join(", "));
    }
    if !owners.is_empty() {
        text += &format!(", owned by: {}", owners.join(", "));
    }
    text
}
