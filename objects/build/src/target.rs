//! Makes sure that the compiler can compile for WebAssembly.

use std::path::{Path, PathBuf};

use crate::{BuildError, command};

/// The target of classes.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Adds the target when it is missing.
pub(crate) fn ensure(manifest_dir: &Path) -> Result<(), BuildError> {
    if is_installed(manifest_dir)? {
        return Ok(());
    }
    let missing = |reason: String| BuildError::TargetMissing { target: TARGET, reason };
    let mut rustup = command::clean("rustup", manifest_dir);
    let added = rustup.args(["target", "add", TARGET]).output();
    let added =
        added.map_err(|reason| missing(format!("rustup could not be started: {reason}")))?;
    if !added.status.success() {
        return Err(missing(String::from_utf8_lossy(&added.stderr).trim().into()));
    }
    if is_installed(manifest_dir)? {
        Ok(())
    } else {
        Err(missing("rustup added it to another toolchain than the one that builds".into()))
    }
}

fn is_installed(manifest_dir: &Path) -> Result<bool, BuildError> {
    let program = command::rustc();
    let mut rustc = command::clean(&program, manifest_dir);
    let printed = rustc.args(["--print", "target-libdir", "--target", TARGET]).output();
    let printed = printed.map_err(|reason| BuildError::Start { program, reason })?;
    let folder = PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim());
    // Without the target, the path is printed all the same, and nothing is there.
    Ok(printed.status.success() && folder.is_dir())
}
