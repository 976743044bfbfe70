//! `gesmas class`: building, loading and looking at classes.

mod build;
mod get;
mod ls;
mod new;
mod put;
mod rm;
mod show;

use clap::{Args, Subcommand};

use super::connect::Context;
use crate::failure::Failure;

/// `gesmas class`.
#[derive(Debug, Args)]
pub(crate) struct ClassArgs {
    #[command(subcommand)]
    command: ClassCommand,
}

#[derive(Debug, Subcommand)]
enum ClassCommand {
    /// Makes a crate with a class, to begin with.
    New(new::NewArgs),
    /// Compiles a class crate to a module, or attaches an interface to a module.
    Build(build::BuildArgs),
    /// Loads a class into the cluster.
    Put(put::PutArgs),
    /// Removes a class that has no objects.
    Rm(rm::RmArgs),
    /// Saves the module of a class.
    Get(get::GetArgs),
    /// Lists classes.
    Ls(ls::LsArgs),
    /// Shows the interface of a class as documentation.
    Show(show::ShowArgs),
}

pub(super) async fn run(args: ClassArgs, context: &Context) -> Result<(), Failure> {
    match args.command {
        ClassCommand::New(args) => new::run(&args, context.output),
        ClassCommand::Build(args) => build::run(&args, context.output),
        ClassCommand::Put(args) => put::run(&args, context).await,
        ClassCommand::Rm(args) => rm::run(args, context).await,
        ClassCommand::Get(args) => get::run(args, context).await,
        ClassCommand::Ls(args) => ls::run(&args, context).await,
        ClassCommand::Show(args) => show::run(&args, context).await,
    }
}
