//! `gesmas object`: creating, listing, showing and removing objects.

mod create;
mod ls;
mod rm;
mod show;

use clap::{Args, Subcommand};

use super::connect::Context;
use crate::failure::Failure;

/// `gesmas object`.
#[derive(Debug, Args)]
pub(crate) struct ObjectArgs {
    #[command(subcommand)]
    command: ObjectCommand,
}

#[derive(Debug, Subcommand)]
enum ObjectCommand {
    /// Creates an object. One that exists with the same arguments is left as it is.
    Create(create::CreateArgs),
    /// Lists objects.
    Ls(ls::LsArgs),
    /// Shows the state of an object as files: values, collections, semaphores, timers.
    Show(show::ShowArgs),
    /// Removes objects with all their state; their callers are told.
    Rm(rm::RmArgs),
}

pub(super) async fn run(args: ObjectArgs, context: &Context) -> Result<(), Failure> {
    match args.command {
        ObjectCommand::Create(args) => create::run(args, context).await,
        ObjectCommand::Ls(args) => ls::run(args, context).await,
        ObjectCommand::Show(args) => show::run(args, context).await,
        ObjectCommand::Rm(args) => rm::run(args, context).await,
    }
}
