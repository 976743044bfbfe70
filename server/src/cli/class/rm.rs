//! `gesmas class rm`: removes a class that nothing needs.

use clap::Args;
use serde_json::json;

use crate::{
    cli::{connect::Context, names},
    failure::Failure,
};

/// `gesmas class rm`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  gesmas class rm Rendezvous

A class that has objects stays: `gesmas object rm` removes them, and ends their callers.")]
pub(crate) struct RmArgs {
    /// The class.
    #[arg(value_parser = names::class)]
    name: String,
}

pub(super) async fn run(args: RmArgs, context: &Context) -> Result<(), Failure> {
    let link = context.open().await?;
    let remove = link.session.remove_class(args.name.clone());
    link.finish(remove).await?;
    let text = || format!("class {} is removed", args.name);
    context.output.value(&json!({ "removed": args.name }), text);
    Ok(())
}
