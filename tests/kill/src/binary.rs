//! The binary under test.
//!
//! `GESMAS_BINARY` names it. Without that, cargo is asked for the one of this build, in the profile
//! and target folder in which this program lies.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::Command,
};

/// The path of `gesmas`.
pub(crate) fn gesmas() -> io::Result<PathBuf> {
    let binary = match env::var_os("GESMAS_BINARY") {
        Some(binary) => std::path::absolute(binary)?,
        None => build(&env::current_exe()?)?,
    };
    match binary.is_file() {
        true => Ok(binary),
        false => Err(io::Error::other(format!("{} is no binary", binary.display()))),
    }
}

/// This program lies in `TARGET/PROFILE`.
fn build(program: &Path) -> io::Result<PathBuf> {
    let nowhere = || io::Error::other("this program lies in no target folder");
    let profile_folder = program.parent().ok_or_else(nowhere)?;
    let target = profile_folder.parent().ok_or_else(nowhere)?;
    let profile = match profile_folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", "gesmas", "--bin", "gesmas", "--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))
        .output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("gesmas cannot be built:\n{complaint}")));
    }
    Ok(profile_folder.join("gesmas"))
}
