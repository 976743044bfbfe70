//! `gesmas invocation`: calls that are blocked, and ending them.

use clap::{Args, Subcommand};
use gesmas_client::{InvocationFilter, protocol::InvocationSummary};
use serde_json::json;

use super::{
    connect::{Context, Freshness, Limit},
    failure::Failure,
    names::Selection,
    output::Table,
};
use crate::{json::format_time, view};

/// `gesmas invocation`.
#[derive(Debug, Args)]
pub(crate) struct InvocationArgs {
    #[command(subcommand)]
    command: InvocationCommand,
}

#[derive(Debug, Subcommand)]
enum InvocationCommand {
    /// Lists calls that are blocked: on what, since when, for whom.
    #[command(after_help = "Examples:
  gesmas invocation ls
  gesmas invocation ls Queue/jobs
  gesmas invocation ls --session 17 --json")]
    Ls(LsArgs),
    /// Cancels calls. Each may clean up, and its caller is told that an operator ended it.
    #[command(after_help = "Example:\n  gesmas invocation kill 42")]
    Kill {
        /// Numbers of the calls, as `gesmas invocation ls` shows them.
        #[arg(required = true, value_name = "ID")]
        invocations: Vec<u64>,
    },
}

#[derive(Debug, Args)]
struct LsArgs {
    /// Only those of a class or of one object.
    #[arg(value_name = "CLASS[/NAME]")]
    selection: Option<Selection>,
    /// Only those of this session.
    #[arg(long)]
    session: Option<u64>,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    freshness: Freshness,
}

pub(super) async fn run(args: InvocationArgs, context: &Context) -> Result<(), Failure> {
    match args.command {
        InvocationCommand::Ls(args) => list(args, context).await,
        InvocationCommand::Kill { invocations } => {
            for invocation in invocations {
                let link = context.open().await?;
                let kill = link.session.kill(invocation);
                link.finish(kill).await?;
                let text = || format!("invocation {invocation} is cancelled");
                context.output.value(&json!({ "killed": invocation }), text);
            }
            Ok(())
        }
    }
}

async fn list(args: LsArgs, context: &Context) -> Result<(), Failure> {
    let client = context.ask(args.freshness).await?;
    let (class, object) = match args.selection {
        Some(selection) => (Some(selection.class), selection.object),
        None => (None, None),
    };
    let filter = InvocationFilter { class, object, session: args.session };
    let page = args.limit.gather(async |last: Option<&InvocationSummary>, limit| {
        let after = last.map_or(0, |last| last.invocation);
        client.list_invocations(filter.clone(), after, limit).await
    });
    let page = page.await?;
    let mut table =
        Table::new(&["ID", "OBJECT", "METHOD", "SESSION", "WAITS FOR", "SINCE", "DEADLINE"]);
    let mut values = Vec::new();
    for invocation in &page.items {
        let (semaphore, since) = view::invocation::state(&invocation.state);
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        table.row([
            invocation.invocation.to_string(),
            view::invocation::object(invocation),
            invocation.method.clone(),
            or_none(invocation.session.map(|session| session.to_string())),
            or_none(semaphore),
            or_none(since),
            or_none(invocation.deadline.map(format_time)),
        ]);
        values.push(view::invocation::as_json(invocation));
    }
    context.output.rows(&table, "nothing is blocked", values);
    args.limit.note(page.more, context.output);
    Ok(())
}
