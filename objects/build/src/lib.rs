//! Compiles class crates to WebAssembly, from a build script or a tool.
//!
//! A crate that ships classes says in the `main` of its `build.rs`
//!
//! ```no_run
//! gesmas_build::embed(&["../rendezvous", "../ticket"]);
//! ```
//!
//! and includes what it wrote, a constant `MODULES: &[(&str, &[u8])]` of names and modules:
//!
//! ```text
//! include!(concat!(env!("OUT_DIR"), "/classes.rs"));
//! ```
//!
//! Invariants: all classes of a workspace share one nested target folder, so that the SDK is
//! compiled for them once; the bytes of a module do not depend on the folder it is built in, the
//! user's flags or the profile of the outer build, since their hash is the identity of the class.
//! Not here: loading modules into a cluster.

mod command;
mod package;
mod section;
mod target;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

pub use section::interface_of;

/// Why a class crate was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program could not be started.
    #[error("{program} could not be started: {reason}")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        reason: std::io::Error,
    },
    /// The target is not installed and could not be added.
    #[error(
        "the target {target} is not installed, and it could not be added: {reason}\nrun this, then \
         build again:\n\n    rustup target add {target}\n"
    )]
    TargetMissing {
        /// The target.
        target: &'static str,
        /// What rustup says.
        reason: String,
    },
    /// Cargo does not know what the crate is made of.
    #[error("cargo cannot describe {manifest}: {reason}")]
    Metadata {
        /// The manifest.
        manifest: String,
        /// What cargo says.
        reason: String,
    },
    /// The crate is not a library.
    #[error("{manifest} has no library: a class is a library crate")]
    NoLibrary {
        /// The manifest.
        manifest: String,
    },
    /// The crate does not compile.
    #[error("{package} does not compile to WebAssembly:\n{reason}")]
    Compile {
        /// The package.
        package: String,
        /// What the compiler says.
        reason: String,
    },
    /// The module has no class in it.
    #[error("{package} has no class: {reason} (a class has `#[class]` and `#[methods]`)")]
    NoClass {
        /// The package.
        package: String,
        /// What is wrong with its interface section.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
}

/// A compiled class.
#[derive(Clone, Debug)]
pub struct Module {
    /// Name of the class, from its interface.
    pub class: String,
    /// The module.
    pub bytes: Vec<u8>,
    /// The files it was made of: when none of them changes, neither does the module.
    pub sources: Vec<PathBuf>,
}

/// Compiles the class crate in this folder to a module. The crate may be anywhere.
///
/// # Errors
/// [`BuildError`] says what to do where there is something to do.
pub fn compile(manifest_dir: impl AsRef<Path>) -> Result<Vec<u8>, BuildError> {
    build(manifest_dir.as_ref()).map(|module| module.bytes)
}

/// Like [`compile`], and also tells the name of the class and the sources.
///
/// # Errors
/// As [`compile`].
pub fn build(manifest_dir: &Path) -> Result<Module, BuildError> {
    target::ensure(manifest_dir)?;
    let package = package::Package::describe(manifest_dir)?;
    // Cargo lets go of its own lock before the module is read, and another build may then replace it.
    let _lock = lock(&package.target_dir)?;
    command::compile(&package)?;
    let artifact = package.artifact();
    let bytes = read(&artifact)?;
    let interface = interface_of(&bytes).map_err(|malformed| BuildError::NoClass {
        package: package.name.clone(),
        reason: malformed.to_string(),
    })?;
    let sources = package.sources(&read(&artifact.with_extension("d"))?);
    Ok(Module { class: interface.class, bytes, sources })
}

/// For build scripts: compiles the class crates in these folders, which are relative to the crate's
/// own, and writes `classes.rs` and the modules into `OUT_DIR`.
///
/// # Panics
/// When a crate does not compile, with what to do about it: this is how a build script fails.
pub fn embed(manifest_dirs: &[&str]) {
    if let Err(error) = try_embed(manifest_dirs) {
        panic!("{error}");
    }
}

fn try_embed(manifest_dirs: &[&str]) -> Result<(), BuildError> {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let (Some(own_dir), Some(out_dir)) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"))
    else {
        panic!(
            "gesmas_build::embed is for build scripts: cargo sets CARGO_MANIFEST_DIR and OUT_DIR"
        );
    };
    let mut listed = String::new();
    for (place, manifest_dir) in manifest_dirs.iter().enumerate() {
        let module = build(&own_dir.join(manifest_dir))?;
        // Several codes of one class are different files.
        let path = out_dir.join(format!("{place}-{}.wasm", module.class));
        fs::write(&path, &module.bytes)
            .map_err(|reason| BuildError::File { path: path.clone(), reason })?;
        listed += &format!("    ({:?}, include_bytes!({path:?})),\n", module.class);
        for source in &module.sources {
            println!("cargo:rerun-if-changed={}", source.display());
        }
    }
    let text = format!(
        "/// Names of classes, and their modules.\npub const MODULES: &[(&str, &[u8])] = &[\n{listed}];\n"
    );
    let path = out_dir.join("classes.rs");
    fs::write(&path, text).map_err(|reason| BuildError::File { path, reason })
}

/// Keeps other builds out of the nested target folder until it is dropped.
fn lock(target_dir: &Path) -> Result<fs::File, BuildError> {
    let path = target_dir.join("gesmas-build.lock");
    let locked = fs::create_dir_all(target_dir)
        .and_then(|()| fs::File::create(&path))
        .and_then(|file| file.lock().map(|()| file));
    locked.map_err(|reason| BuildError::File { path, reason })
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    fs::read(path).map_err(|reason| BuildError::File { path: path.into(), reason })
}
