//! `gesmas man`: manual pages, made of the same definition as the help.
//!
//! Invariant: every command that the help lists has a page; what is hidden there has none.
//! Not here: where the pages of a system lie; whoever packages the program knows that.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, CommandFactory as _};
use clap_mangen::Man;
use serde_json::json;

use super::{Cli, output::Output};
use crate::failure::Failure;

/// `gesmas man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas man | man -l -                     # this program's page, in the pager
  gesmas man --out /usr/local/share/man/man1
  man gesmas-object-create

Without --out the page of the program is printed, as roff.")]
pub(crate) struct ManArgs {
    /// The folder into which a page for the program and for each command is written; it is made if it
    /// is not there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &ManArgs, output: Output) -> Result<(), Failure> {
    let pages = pages(Cli::command());
    let Some(folder) = &args.out else {
        let (_, page) = pages.first().expect("the program itself comes first");
        output.line(page.trim_end());
        return Ok(());
    };
    write(folder, &pages)?;
    let names: Vec<_> = pages.iter().map(|(name, _)| name).collect();
    output.value(&json!({ "folder": folder, "pages": names }), || {
        format!("{} pages are in {}", names.len(), folder.display())
    });
    Ok(())
}

/// The pages of a command and of all below it: the name of each file, and what is in it.
fn pages(command: clap::Command) -> Vec<(String, String)> {
    // A page for `help` would only say that there is help.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut found = Vec::new();
    add_pages(&command, &mut found);
    found
}

fn add_pages(command: &clap::Command, found: &mut Vec<(String, String)>) {
    let version = env!("CARGO_PKG_VERSION");
    let man = Man::new(command.clone()).source(format!("gesmas {version}")).manual("gesmas");
    let mut page = Vec::new();
    man.render(&mut page).expect("memory takes what is written to it");
    found.push((man.get_filename(), in_ascii(&String::from_utf8_lossy(&page))));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(below, found);
    }
}

/// Formatters of manuals differ in what encoding they take a page to have, but know these escapes alike.
fn in_ascii(page: &str) -> String {
    let escaped = |sign: char| match sign {
        sign if sign.is_ascii() => sign.to_string(),
        sign => format!("\\[u{:04X}]", u32::from(sign)),
    };
    page.chars().map(escaped).collect()
}

fn write(folder: &Path, pages: &[(String, String)]) -> Result<(), Failure> {
    let failure = |path: &Path, error: io::Error| Failure::file(path, &error);
    fs::create_dir_all(folder).map_err(|error| failure(folder, error))?;
    for (name, page) in pages {
        let path = folder.join(name);
        fs::write(&path, page).map_err(|error| failure(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
        found.insert(format!("{path}.1"));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            names(below, &format!("{path}-{}", below.get_name()), found);
        }
    }

    #[test]
    fn every_command_has_a_page_with_what_readers_of_manuals_look_for() {
        let mut wanted = BTreeSet::new();
        names(&Cli::command(), "gesmas", &mut wanted);
        let pages = pages(Cli::command());
        let found: BTreeSet<_> = pages.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(found, wanted);
        assert_eq!(found.len(), pages.len(), "two commands share a page");
        assert!(found.contains("gesmas-object-create.1"), "{found:?}");
        for (name, page) in &pages {
            let sections: Vec<_> =
                page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
            assert!(page.lines().any(|line| line.starts_with(".TH ")), "{name} has no title");
            assert!(page.is_ascii(), "{name} depends on an encoding");
            for section in ["NAME", "SYNOPSIS"] {
                assert!(sections.contains(&section), "{name} has no {section}: {sections:?}");
            }
        }
    }
}
