//! Class crates outside of this workspace: what comes out, and what is said when nothing does.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gesmas_build::{BuildError, build, compile, interface_of};

const RENDEZVOUS: &str = r#"//! Two parties meet.
use gesmas_sdk::prelude::*;

/// Two parties meet.
#[class(transient)]
pub struct Rendezvous {
    place: Semaphore,
}

#[methods]
impl Rendezvous {
    /// Waits for the other one.
    pub fn meet(&mut self) -> Result<u64> {
        if self.place.waiters() > 0 { self.place.v() } else { self.place.p()? }
        Ok(self.place.value().checked_mul(2).expect("no number is that great"))
    }
}
"#;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// A crate of its own in a temporary folder. Its dependencies are those that this workspace locks,
/// and are compiled into a folder that the tests share.
fn write_crate(library: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (root, path) = (workspace(), folder.path());
    let manifest = format!(
        "[package]\nname = \"outside-class\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ngesmas-sdk = {{ path = {:?} }}\n\n[workspace]\n",
        root.join("objects/sdk")
    );
    let target = root.join("target/tests/outside");
    let config = format!("[build]\ntarget-dir = {target:?}\n");
    fs::create_dir_all(path.join("src")).expect("src");
    fs::create_dir_all(path.join(".cargo")).expect(".cargo");
    fs::write(path.join(".cargo/config.toml"), config).expect("config");
    fs::write(path.join("Cargo.toml"), manifest).expect("manifest");
    fs::write(path.join("src/lib.rs"), library).expect("library");
    fs::copy(root.join("Cargo.lock"), path.join("Cargo.lock")).expect("lock file");
    folder
}

#[test]
fn crate_compiles_to_the_same_small_module_in_any_folder() {
    let (here, there) = (write_crate(RENDEZVOUS), write_crate(RENDEZVOUS));
    let module = build(here.path()).expect("it compiles");
    assert_eq!(module.class, "Rendezvous");
    assert!(module.bytes.len() < 40_000, "it has {} bytes", module.bytes.len());
    let told = here.path().file_name().expect("a name").as_encoded_bytes();
    assert!(!module.bytes.windows(told.len()).any(|window| window == told));
    assert!(compile(there.path()).expect("it compiles") == module.bytes, "the folder shows");

    let interface = interface_of(&module.bytes).expect("it has an interface");
    assert!(interface.transient);
    assert_eq!(interface.method("meet").expect("a method").docs, "Waits for the other one.");

    let listed = |file: &str| module.sources.iter().any(|source| source.ends_with(file));
    assert!(listed("src/lib.rs") && listed("Cargo.toml") && listed("sdk/src/ctx.rs"));
}

#[test]
fn crate_without_a_class_is_told_so() {
    let folder = write_crate("//! Nothing.\n");
    let error = compile(folder.path()).expect_err("there is no class");
    assert!(matches!(&error, BuildError::NoClass { package, .. } if package == "outside-class"));
    assert!(error.to_string().contains("#[class]"), "{error}");
}

#[test]
fn crate_that_does_not_compile_is_told_with_the_compilers_words() {
    let folder = write_crate("//! Nonsense.\npub fn nonsense() -> u8 { \"text\" }\n");
    let error = compile(folder.path()).expect_err("it does not compile");
    assert!(matches!(error, BuildError::Compile { .. }), "{error}");
    assert!(error.to_string().contains("mismatched types"), "{error}");
}

#[test]
fn folder_without_a_crate_is_told_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = compile(folder.path()).expect_err("there is no crate");
    assert!(matches!(error, BuildError::Metadata { .. }), "{error}");
}
