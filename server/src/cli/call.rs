//! `gesmas call`: invokes one method of one object with arguments in JSON.

use std::time::Duration;

use clap::Args;
use gesmas_abi::interface::{Method, MethodKind, TypeOwned};
use gesmas_client::{Call, Read, SessionState};
use serde_json::Value;

use super::{
    connect::{Context, Link, WaitFailure},
    exit::Exit,
    failure::Failure,
    interface,
    names::ObjectPath,
    words,
};
use crate::json::{self, Integers, type_name};

/// `gesmas call`.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  gesmas call Queue/jobs produce 'resize cat.png'
  gesmas call Queue/jobs consume --timeout 5m
  gesmas call Queue/jobs consume --timeout none
  gesmas call Counter/visits add -1
  gesmas call Lock/leader lock 1 --hold
  gesmas call Queue/jobs produce '{"base64": "AAEC"}' --json

Arguments are JSON, checked against the interface of the class (`gesmas class show Queue`). A word
that is not JSON stands for itself where a text, bytes, a duration or a time is wanted. Bytes are
{"text": …}, {"base64": …} or a text; durations "30s"; numbers of 64 bits may be texts.
The result is printed as JSON. A blocked call is cancelled by Ctrl-C and by its timeout."#)]
pub(crate) struct CallArgs {
    /// The object.
    #[arg(value_name = "CLASS/NAME")]
    object: ObjectPath,
    /// The method.
    method: String,
    /// Its arguments.
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    patience: Patience,
    /// Lets the replica answer a read from what it has, which may be old.
    #[arg(long)]
    stale: bool,
    /// Keeps the session open after the result, with what the method left to it (a lock, say), until
    /// interrupted.
    #[arg(long)]
    hold: bool,
}

/// How long a call may be blocked.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Patience {
    /// Cancels the call after this time; "none" lets it wait as long as it takes.
    #[arg(long, default_value = "30s", value_parser = timeout, value_name = "DURATION")]
    timeout: Timeout,
}

/// A time, or none.
#[derive(Clone, Copy, Debug)]
struct Timeout(Option<Duration>);

impl Patience {
    /// Limits a call, or takes the limit of its session away.
    pub(super) fn limit(self, call: Call) -> Call {
        match self.timeout {
            Timeout(Some(timeout)) => call.deadline(timeout),
            Timeout(None) => call.without_deadline(),
        }
    }

    fn limit_read(self, read: Read) -> Read {
        match self.timeout {
            Timeout(Some(timeout)) => read.deadline(timeout),
            Timeout(None) => read.without_deadline(),
        }
    }
}

fn timeout(text: &str) -> Result<Timeout, String> {
    if text == "none" {
        return Ok(Timeout(None));
    }
    match json::parse_duration(text) {
        None => {
            Err(r#"a duration is written as "30s", "1h30m" or "250ms"; "none" is no limit"#.into())
        }
        Some(0) => Err("a call needs some time".into()),
        Some(nanoseconds) => Ok(Timeout(Some(Duration::from_nanos(nanoseconds)))),
    }
}

pub(super) async fn run(args: CallArgs, context: &Context) -> Result<(), Failure> {
    // The session is opened first: once it is, the replica has applied all that came before.
    let link = context.open().await?;
    let result = call(&args, &link).await;
    if let Ok((value, unit)) = &result {
        if context.output.json || !unit {
            context.output.line(&value.to_string());
        }
        if args.hold {
            let session = link.session.id();
            context.output.note(&format!("session {session} is held open; Ctrl-C closes it"));
            hold(&link).await?;
        }
    }
    link.close().await;
    result.map(|_| ())
}

/// Makes the call; with its result comes whether it is of the type of nothing.
async fn call(args: &CallArgs, link: &Link) -> Result<(Value, bool), Failure> {
    let ObjectPath { class, object } = args.object.clone();
    let interface = interface::of_class(&link.client, &class).await?;
    let method = interface::method(&interface, &args.method)?;
    let arguments = words::encode(method, &args.arguments)?;
    let (name, signature) = (method.name.clone(), method.signature);
    let session = &link.session;
    let result = if method.kind == MethodKind::Read {
        let read = session.read(class, object, name, signature, arguments);
        let read = if args.stale { read.stale() } else { read };
        link.wait(args.patience.limit_read(read)).await
    } else {
        if args.stale {
            let message = format!("{name} is an update: only reads can be stale");
            return Err(Failure::usage(message));
        }
        let call = session.call(class, object, name, signature, arguments);
        link.wait(args.patience.limit(call)).await
    };
    let bytes = result.map_err(|failure| explain(failure, method, &args.object))?;
    let value = json::decode(&method.result, &bytes, Integers::Numbers).map_err(|error| {
        let message = format!("the result is no {}: {error}", type_name(&method.result));
        Failure::new(Exit::Failed, "result-malformed", message)
    })?;
    Ok((value, method.result == TypeOwned::Unit))
}

/// Waits until the user has enough or the session is over.
async fn hold(link: &Link) -> Result<(), Failure> {
    let mut states = link.session.states();
    let over = states.wait_for(|state| matches!(state, SessionState::Lost(_)));
    tokio::select! {
        _ = over => Err(Failure::new(Exit::TimedOut, "session-over", "the session is over")),
        () = link.interrupted() => Ok(()),
    }
}

/// Says an error of the class in its own words.
pub(super) fn explain(failure: WaitFailure, method: &Method, object: &ObjectPath) -> Failure {
    match failure {
        WaitFailure::Call(failure) => {
            Failure::of_call(failure, method, &object.to_string(), Integers::Numbers)
        }
        WaitFailure::Interrupted => failure.into(),
    }
}
