//! The nested run of cargo.
//!
//! Invariant: nothing of the outer build's profile, flags, target or tools reaches it; a module is
//! the same from `cargo build`, `cargo clippy`, `cargo test` and `gesmas class build`.

use std::{env, path::Path, process::Command};

use crate::{BuildError, package::Package, target::TARGET};

/// Settings of the profile. `s` rather than `3`: the time of a call is that of instantiation and
/// host calls, which code size helps and loops do not (Queue: 15 KB at `s`, 21 KB at `3`).
/// Overflow checks stay on: a sum that wraps in silence would be replicated.
const PROFILE: [(&str, &str); 8] = [
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
    ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "false"),
    ("CARGO_PROFILE_RELEASE_LTO", "true"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"),
    ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("CARGO_PROFILE_RELEASE_STRIP", "true"),
];

/// Variables of cargo that say how to reach registries and how to talk, not what to build.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_REGISTR",
    "CARGO_TARGET_DIR",
    "CARGO_TERM_",
];

/// Other variables by which a build tells its compilers what to do.
const REMOVED: [&str; 8] = [
    "CLIPPY_ARGS",
    "LLVM_PROFILE_FILE",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "TARGET",
    "__CARGO_TESTS_ONLY_SRC_ROOT",
];

/// A program that knows nothing of the outer build, run in this folder.
pub(crate) fn clean(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let of_cargo =
            name.starts_with("CARGO_") && !KEPT.iter().any(|kept| name.starts_with(kept));
        if of_cargo || REMOVED.contains(&name.as_ref()) {
            command.env_remove(name.as_ref());
        }
    }
    command
}

/// The cargo that runs this build, or the one on the path.
pub(crate) fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// The compiler that this build uses, or the one on the path.
pub(crate) fn rustc() -> String {
    env::var("RUSTC").unwrap_or_else(|_| "rustc".into())
}

/// Compiles the package's library to a module.
pub(crate) fn compile(package: &Package) -> Result<(), BuildError> {
    let program = cargo();
    let mut command = clean(&program, &package.folder);
    command.args(["rustc", "--lib", "--crate-type", "cdylib", "--release", "--target", TARGET]);
    command.arg("-p").arg(&package.name);
    command.arg("--target-dir").arg(&package.target_dir);
    command.envs(PROFILE);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags(package).join("\x1f"));
    command.env("CARGO_TERM_COLOR", "never");
    let output = command.output().map_err(|reason| BuildError::Start { program, reason })?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(BuildError::Compile { package: package.name.clone(), reason })
}

/// A stack of 16 KiB, so that stack, data and a small heap fit the one page a module starts with;
/// and no trace of where folders lie.
fn flags(package: &Package) -> Vec<String> {
    let mut flags = vec!["-Clink-arg=-zstack-size=16384".to_owned()];
    for (from, to) in &package.remapped {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    }
    flags
}
