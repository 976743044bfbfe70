//! `gesmas class put`: loads a class; when it returns, the class can be called.

use std::{fs, path::Path, time::Duration};

use clap::Args;
use gesmas_machine::CodeHash;
use serde_json::json;

use super::build;
use crate::cli::{connect::Context, exit::Exit, failure::Failure, interface, output::Output};

/// How long loading may take: compilation by a majority, and an election on the way.
const PATIENCE: Duration = Duration::from_secs(60);

/// `gesmas class put`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas class put ./rendezvous
  gesmas class put rendezvous.wasm
  gesmas class put Queue

Loading the same module again does nothing. A name that other code has is refused: classes are
immutable. Standard classes need no loading, calls ship them.")]
pub(crate) struct PutArgs {
    /// A module, the folder of a class crate, or the name of a standard class.
    #[arg(value_name = "FILE|DIR|NAME")]
    source: String,
}

pub(super) async fn run(args: &PutArgs, context: &Context) -> Result<(), Failure> {
    let module = load(&args.source, context.output)?;
    let class = interface::of_module(&module)?.class;
    let (code, bytes) = (CodeHash::of(&module).to_string(), module.len());
    let link = context.open().await?;
    let put = link.session.put_class(class.clone(), module).deadline(PATIENCE);
    link.finish(put).await?;
    context.output.value(&json!({ "class": class, "bytes": bytes, "code": code }), || {
        format!("class {class} is loaded: {bytes} bytes, code {code}")
    });
    Ok(())
}

fn load(source: &str, output: Output) -> Result<Vec<u8>, Failure> {
    let path = Path::new(source);
    if path.is_dir() {
        return build::compile(path, output);
    }
    if path.exists() {
        return fs::read(path).map_err(|error| Failure::file(path, &error));
    }
    match gesmas_classes::find(source) {
        Some(standard) => Ok(standard.module.into()),
        None => {
            let names: Vec<_> = gesmas_classes::ALL.iter().map(|standard| standard.name).collect();
            let message = format!("{source} is neither a file nor a folder nor a standard class");
            Err(Failure::new(Exit::Usage, "file", message)
                .advise(format!("the standard classes are {}", names.join(", "))))
        }
    }
}
