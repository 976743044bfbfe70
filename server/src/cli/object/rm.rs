//! `gesmas object rm`: removes objects.

use clap::Args;
use serde_json::json;

use crate::cli::{connect::Context, failure::Failure, names::ObjectPath};

/// `gesmas object rm`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  gesmas object rm Queue/jobs

Callers that are blocked in it end with `object-removed`, detached ones too. This cannot be undone.")]
pub(crate) struct RmArgs {
    /// The objects.
    #[arg(required = true, value_name = "CLASS/NAME")]
    objects: Vec<ObjectPath>,
}

pub(super) async fn run(args: RmArgs, context: &Context) -> Result<(), Failure> {
    for object in args.objects {
        let link = context.open().await?;
        let remove = link.session.remove_object(object.class.clone(), object.object.clone());
        link.finish(remove).await?;
        let name = object.to_string();
        context.output.value(&json!({ "removed": name }), || format!("{name} is removed"));
    }
    Ok(())
}
