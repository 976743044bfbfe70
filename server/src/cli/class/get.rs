//! `gesmas class get`: saves the module of a class, byte for byte as it was loaded.

use std::{fs, path::PathBuf};

use clap::Args;
use gesmas_client::{
    AdminFailure,
    protocol::{AdminError, Bytes},
};
use serde_json::json;

use crate::cli::{
    connect::{Context, Freshness},
    failure::Failure,
    names,
};

/// `gesmas class get`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gesmas class get Queue -o queue.wasm")]
pub(crate) struct GetArgs {
    /// The class.
    #[arg(value_parser = names::class)]
    name: String,
    /// Where the module goes; NAME.wasm in the current folder if not said.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    freshness: Freshness,
}

pub(super) async fn run(args: GetArgs, context: &Context) -> Result<(), Failure> {
    let client = context.ask(args.freshness).await?;
    let class = args.name;
    let module = match client.get_class(&class).await {
        Err(AdminFailure::Answered(error @ AdminError::ClassUnknown { .. })) => {
            match gesmas_classes::find(&class) {
                Some(standard) => Bytes::from_static(standard.module),
                None => return Err(AdminFailure::Answered(error).into()),
            }
        }
        result => result?,
    };
    let path = args.output.unwrap_or_else(|| PathBuf::from(format!("{class}.wasm")));
    fs::write(&path, &module).map_err(|error| Failure::file(&path, &error))?;
    let bytes = module.len();
    context.output.value(&json!({ "class": class, "file": path, "bytes": bytes }), || {
        format!("{}: {bytes} bytes", path.display())
    });
    Ok(())
}
