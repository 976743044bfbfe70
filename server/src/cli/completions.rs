//! `gesmas completions`: what a shell needs to complete command lines.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, output::Output};

/// `gesmas completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas completions bash > /etc/bash_completion.d/gesmas
  gesmas completions zsh > ~/.zfunc/_gesmas
  gesmas completions fish > ~/.config/fish/completions/gesmas.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs, output: Output) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gesmas", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end());
}
