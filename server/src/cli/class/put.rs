//! `gesmas class put`: loads a class; when it returns, the class can be called.

use std::{fs, path::Path, time::Duration};

use clap::Args;
use gesmas_client::protocol::Replace;
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
  gesmas class put ./rendezvous --replace --dry-run
  gesmas class put ./rendezvous --replace

Loading the same module again does nothing. A name that other code has is refused, unless --replace
says that this is to take its place: then new calls run the new code, and blocked ones go on in
theirs. A new layout of the state needs a `#[migrate]`, and nothing of the class may be blocked;
objects are migrated when they are next used. Standard classes need no loading, calls ship them.")]
pub(crate) struct PutArgs {
    /// A module, the folder of a class crate, or the name of a standard class.
    #[arg(value_name = "FILE|DIR|NAME")]
    source: String,
    /// Takes the place of other code that has the name.
    #[arg(long)]
    replace: bool,
    /// Only tries, on a copy of the state: whether it would be refused, and whether each object's
    /// `migrate` would succeed.
    #[arg(long, requires = "replace")]
    dry_run: bool,
    /// Cancels blocked calls that are in the way of a new layout; they clean up first.
    #[arg(long, requires = "replace")]
    cancel_pinned: bool,
}

pub(super) async fn run(args: &PutArgs, context: &Context) -> Result<(), Failure> {
    let module = load(&args.source, context.output)?;
    let class = interface::of_module(&module)?.class;
    let (code, bytes) = (CodeHash::of(&module).to_string(), module.len());
    let replace = Replace { cancel_pinned: args.cancel_pinned };
    if args.dry_run {
        return try_replacement(&class, module, replace, context).await;
    }
    let link = context.open().await?;
    let put = if args.replace {
        link.session.replace_class(class.clone(), module, replace)
    } else {
        link.session.put_class(class.clone(), module)
    };
    link.finish(put.deadline(PATIENCE)).await?;
    context.output.value(&json!({ "class": class, "bytes": bytes, "code": code }), || {
        format!("class {class} is loaded: {bytes} bytes, code {code}")
    });
    Ok(())
}

async fn try_replacement(
    class: &str,
    module: Vec<u8>,
    replace: Replace,
    context: &Context,
) -> Result<(), Failure> {
    let client = context.connect().await?;
    let trial = client.try_class(class, module.into(), replace).await?;
    if let Some(error) = trial.refusal {
        return Err(error.into());
    }
    let failures: Vec<_> = (trial.failures.iter())
        .map(|(object, error)| json!({ "object": object, "error": error }))
        .collect();
    let value = json!({ "migrated": trial.migrated, "failures": failures, "more": trial.more });
    context.output.value(&value, || {
        let mut text =
            format!("class {class} could be replaced; objects tried: {}", trial.migrated);
        for (object, error) in &trial.failures {
            text += &format!("\n{object}: {error}");
        }
        text
    });
    if trial.more {
        context.output.note("there are more objects than were tried");
    }
    if trial.failures.is_empty() {
        return Ok(());
    }
    let message = format!("the migration of {} objects would fail", trial.failures.len());
    Err(Failure::new(Exit::Failed, "migrate-failed", message))
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
