//! `gesmas class new`: a crate with a class that builds, passes its tests and can be shipped.
//!
//! Its sources are those of `objects/template`, which is built and tested with everything else, under
//! the names that the user wants.
//! Not here: a registry to take the SDK from. It is taken from the sources of gesmas.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use gesmas_machine::ClassName;
use serde_json::json;

use crate::cli::{failure::Failure, output::Output};

const LIBRARY: &str = include_str!("../../../../objects/template/src/lib.rs");
const TESTS: &str = include_str!("../../../../objects/template/tests/class.rs");
/// Where the sources of gesmas were when this program was built.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// `gesmas class new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gesmas class new TicketBooth          # in the new folder ticket-booth
  gesmas class new TicketBooth --in classes --sources ~/src/gesmas

Then, in the folder:
  cargo test
  gesmas class put .
  gesmas call TicketBooth/one put hello")]
pub(crate) struct NewArgs {
    /// The class: a name like TicketBooth.
    name: String,
    /// The folder in which the folder of the crate is made.
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    parent: PathBuf,
    /// The sources of gesmas, with the SDK; those that this program was built from if not said.
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
}

pub(super) fn run(args: &NewArgs, output: Output) -> Result<(), Failure> {
    let words = words(&args.name)?;
    let sources = sources(args.sources.as_deref())?;
    let folder = args.parent.join(words.join("-"));
    if folder.exists() {
        return Err(Failure::usage(format!("{} exists already", folder.display())));
    }
    let renamed =
        |text: &str| text.replace("gesmas_slot", &words.join("_")).replace("Slot", &args.name);
    // The versions with which gesmas is tested; cargo takes out what the crate does not need.
    let lock = sources.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|error| Failure::file(&lock, &error))?;
    let files = [
        ("Cargo.lock", lock),
        ("Cargo.toml", manifest(&words.join("-"), &sources)),
        (".gitignore", "/target\n".into()),
        ("src/lib.rs", renamed(LIBRARY)),
        ("tests/class.rs", renamed(TESTS)),
    ];
    for (name, text) in &files {
        let path = folder.join(name);
        let parent = path.parent().expect("it is in the folder");
        fs::create_dir_all(parent).map_err(|error| Failure::file(parent, &error))?;
        fs::write(&path, text).map_err(|error| Failure::file(&path, &error))?;
    }
    let names = files.map(|(name, _)| name);
    output.value(&json!({ "class": args.name, "folder": folder, "files": names }), || {
        let (class, folder) = (&args.name, folder.display());
        format!(
            "class {class} is in {folder}; next:\n\n    cd {folder}\n    cargo test\n    gesmas \
             class put ."
        )
    });
    Ok(())
}

/// The words of a class's name, in small letters: of `TicketBooth`, `ticket` and `booth`.
fn words(name: &str) -> Result<Vec<String>, Failure> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_ascii_uppercase() => word.push(letter),
            None if !letter.is_ascii_uppercase() => break,
            _ => words.push(letter.to_ascii_lowercase().into()),
        }
    }
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric())
        && ClassName::new(name).is_ok()
        && !words.is_empty();
    if !is_name {
        return Err(Failure::usage(format!("{name:?} is no name for a class"))
            .advise("a name begins with a capital and has letters and digits: TicketBooth"));
    }
    if gesmas_classes::find(name).is_some() {
        return Err(Failure::usage(format!("{name} is the name of a standard class"))
            .advise("standard names are reserved; `gesmas class ls` lists them"));
    }
    Ok(words)
}

/// The sources of gesmas, as a path that holds from anywhere.
fn sources(said: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = said.unwrap_or_else(|| Path::new(SOURCES));
    let found = folder.join("objects/sdk/Cargo.toml").is_file();
    fs::canonicalize(folder).ok().filter(|_| found).ok_or_else(|| {
        Failure::usage(format!("the SDK is not in {}", folder.display()))
            .advise("--sources says where the sources of gesmas are")
    })
}

fn manifest(name: &str, sources: &Path) -> String {
    let path = |part: &str| format!("{:?}", sources.join("objects").join(part));
    format!(
        "[package]
name = \"{name}\"
version = \"0.1.0\"
edition = \"2024\"
publish = false

[dependencies]
gesmas-sdk = {{ path = {sdk} }}

[dev-dependencies]
gesmas-testkit = {{ path = {testkit} }}

# The engine compiles modules in the tests: without optimization that takes long.
[profile.dev.package.\"*\"]
opt-level = 2

# A workspace of its own. Without this line it can be a member of yours.
[workspace]
",
        sdk = path("sdk"),
        testkit = path("testkit"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_at_their_capitals() {
        for (name, expected) in
            [("Gate", "gate"), ("TicketBooth", "ticket-booth"), ("Http2Gate", "http2-gate")]
        {
            assert_eq!(words(name).expect("it is a name").join("-"), expected);
        }
    }

    #[test]
    fn what_is_no_name_of_a_new_class_is_refused() {
        for name in ["", "gate", "Ticket Booth", "Ticket-Booth", "../Gate", "Queue", "1Gate"] {
            assert!(words(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn sources_without_the_sdk_are_refused() {
        assert!(sources(None).is_ok());
        assert!(sources(Some(Path::new("/"))).is_err());
    }
}
