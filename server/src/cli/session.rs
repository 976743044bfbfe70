//! `gesmas session`: the leases of clients, and ending them.

use clap::{Args, Subcommand};
use gesmas_client::protocol::SessionSummary;
use serde_json::json;

use super::{
    connect::{Context, Freshness, Limit},
    failure::Failure,
    output::Table,
};
use crate::{json::format_duration, view};

/// `gesmas session`.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// Lists sessions that are open.
    #[command(after_help = "Example:\n  gesmas session ls --json")]
    Ls {
        #[command(flatten)]
        limit: Limit,
        #[command(flatten)]
        freshness: Freshness,
    },
    /// Ends sessions: their blocked calls are cancelled, their permits given back.
    #[command(after_help = "Example:\n  gesmas session kill 17")]
    Kill {
        /// Numbers of the sessions, as `gesmas session ls` shows them.
        #[arg(required = true, value_name = "ID")]
        sessions: Vec<u64>,
    },
}

pub(super) async fn run(args: SessionArgs, context: &Context) -> Result<(), Failure> {
    match args.command {
        SessionCommand::Ls { limit, freshness } => list(limit, freshness, context).await,
        SessionCommand::Kill { sessions } => {
            for session in sessions {
                let link = context.open().await?;
                let kill = link.session.kill_session(session);
                link.finish(kill).await?;
                let text = || format!("session {session} is over");
                context.output.value(&json!({ "killed": session }), text);
            }
            Ok(())
        }
    }
}

async fn list(limit: Limit, freshness: Freshness, context: &Context) -> Result<(), Failure> {
    let client = context.ask(freshness).await?;
    let page = limit.gather(async |last: Option<&SessionSummary>, limit| {
        client.list_sessions(last.map_or(0, |last| last.session), limit).await
    });
    let page = page.await?;
    let headings = ["ID", "PRINCIPAL", "TIMEOUT", "OPEN", "REPLIES", "EVENTS", "PERMITS"];
    let mut table = Table::new(&headings);
    let mut values = Vec::new();
    for session in &page.items {
        table.row([
            session.session.to_string(),
            session.principal.clone(),
            format_duration(session.timeout_ns),
            session.open_requests.to_string(),
            session.stored_replies.to_string(),
            session.events.to_string(),
            session.permits.to_string(),
        ]);
        values.push(view::session::as_json(session));
    }
    context.output.rows(&table, "no session is open", values);
    limit.note(page.more, context.output);
    Ok(())
}
