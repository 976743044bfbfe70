//! `gesmas object create`: makes an object with the arguments of its class's `init`.

use clap::Args;
use gesmas_abi::interface::{Interface, Method, MethodKind, TypeOwned};
use serde_json::json;

use crate::cli::{
    call::{self, Patience},
    connect::{Context, Link},
    failure::Failure,
    interface,
    names::ObjectPath,
    words,
};

/// `gesmas object create`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas object create Queue/jobs 16
  gesmas object create Barrier/epoch-7 3

The same arguments again do nothing; others are refused. An object whose class needs no arguments
is also created by the first call.")]
pub(crate) struct CreateArgs {
    /// The object.
    #[arg(value_name = "CLASS/NAME")]
    object: ObjectPath,
    /// Arguments of `init`.
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    patience: Patience,
}

pub(super) async fn run(args: CreateArgs, context: &Context) -> Result<(), Failure> {
    let link = context.open().await?;
    let result = create(&args, &link).await;
    link.close().await;
    result?;
    let object = args.object.to_string();
    context.output.value(&json!({ "object": object }), || format!("{object} is created"));
    Ok(())
}

async fn create(args: &CreateArgs, link: &Link) -> Result<(), Failure> {
    let ObjectPath { class, object } = args.object.clone();
    let interface = interface::of_class(&link.client, &class).await?;
    let init = init(&interface);
    let arguments = words::encode(&init, &args.arguments)?;
    let call = link.session.create_object(class, object, init.signature, arguments);
    let result = link.wait(args.patience.limit(call)).await;
    result.map(drop).map_err(|failure| call::explain(failure, &init, &args.object))
}

/// The `init` of a class; one that has none takes nothing.
fn init(interface: &Interface) -> Method {
    interface.init().cloned().unwrap_or_else(|| Method {
        name: "init".into(),
        docs: String::new(),
        kind: MethodKind::Init,
        detached: false,
        parameters: Vec::new(),
        result: TypeOwned::Unit,
        error: None,
        signature: 0,
    })
}
