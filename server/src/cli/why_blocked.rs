//! `gesmas why-blocked`: what a call waits for, who owns that, and what they wait for.

use std::{fmt::Write as _, str::FromStr};

use clap::Args;
use gesmas_client::{InvocationFilter, protocol::InvocationState};

use super::{
    connect::{Context, Freshness},
    names::ObjectPath,
};
use crate::{
    failure::{Failure, exit::Exit},
    json::format_time,
    view::{
        chain::{Chain, Link},
        invocation,
    },
};

/// `gesmas why-blocked`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas why-blocked 42
  gesmas why-blocked Lock/mail
  gesmas why-blocked Lock/mail --json

A call waits for a permit of a semaphore. If somebody owns its permits, those who do can give them
back, and what they are blocked in is shown next, down to whoever could go on. If nobody owns one,
any call that gives a permit lets the first waiter go on.
Calls that wait for permits which calls own, in a circle, are ended by the cluster (`deadlock`). A
circle through sessions is shown here: a session may still give back what it owns, by another call.")]
pub(crate) struct WhyBlockedArgs {
    /// The call, as `gesmas invocation ls` shows it; or an object, for the first that waits there.
    #[arg(value_name = "ID|CLASS/NAME")]
    what: Subject,
    #[command(flatten)]
    freshness: Freshness,
}

/// What is asked about.
#[derive(Clone, Debug)]
enum Subject {
    Invocation(u64),
    Object(ObjectPath),
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(id) => Ok(Self::Invocation(id)),
            Err(_) => text.parse().map(Self::Object),
        }
    }
}

pub(super) async fn run(args: &WhyBlockedArgs, context: &Context) -> Result<(), Failure> {
    let client = context.ask(args.freshness).await?;
    let first = match &args.what {
        Subject::Invocation(id) => *id,
        Subject::Object(path) => {
            let filter = InvocationFilter {
                class: Some(path.class.clone()),
                object: Some(path.object.clone()),
                session: None,
            };
            let page = client.list_invocations(filter, 0, 1).await?;
            let found = page.items.first().map(|found| found.invocation);
            found.ok_or_else(|| {
                let message = format!("nothing is blocked on {path}");
                Failure::new(Exit::NotFound, "invocation-unknown", message)
            })?
        }
    };
    let chain = Chain::of(&client, first).await?;
    context.output.value(&chain.as_json(), || render(&chain).trim_end().to_owned());
    Ok(())
}

fn render(chain: &Chain) -> String {
    let mut text: String = chain.links.iter().map(describe).collect();
    if !chain.cycle.is_empty() {
        let way: Vec<_> = chain.cycle.iter().chain(chain.cycle.first()).collect();
        let way: Vec<_> = way.into_iter().map(u64::to_string).collect();
        let _ = writeln!(text, "\nThey wait for each other: {}", way.join(" -> "));
    }
    text
}

fn describe(link: &Link) -> String {
    let summary = &link.invocation;
    let whose = match summary.session {
        Some(session) => format!("session {session}"),
        None => "a handler".into(),
    };
    let mut text = format!(
        "invocation {} of {whose}: {} of {}\n",
        summary.invocation,
        summary.method,
        invocation::object(summary)
    );
    let InvocationState::Blocked { semaphore, since } = &summary.state else {
        return text + "    is about to go on\n";
    };
    let name = invocation::semaphore_name(semaphore);
    let _ = write!(text, "    waits for {name} since {}", format_time(*since));
    match (&link.semaphore, link.place()) {
        (Some(found), Some(place)) => {
            let _ =
                writeln!(text, ", place {place} of {}, count {}", found.waiters.len(), found.count);
        }
        _ => text.push('\n'),
    }
    let owners = link.owners();
    let _ = if owners.is_empty() {
        writeln!(text, "    nobody owns a permit: any call that gives one lets the first go on")
    } else {
        writeln!(text, "    owned by {}", owners.join(", "))
    };
    text
}
