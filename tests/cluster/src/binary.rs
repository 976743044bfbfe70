//! The binary under test.
//!
//! Cargo builds no binaries of other packages for a test, so the first cluster of a process asks it
//! to, in the profile and target folder in which the test executable lies: in a clean clone it is
//! compiled there, otherwise this takes a moment. `GESMAS_BINARY` names another binary instead.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The path of the binary.
///
/// # Panics
/// When it cannot be built.
pub fn gesmas_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os("GESMAS_BINARY") {
        Some(binary) => binary.into(),
        None => build(),
    })
}

/// Test executables lie in `TARGET/PROFILE/deps`.
fn build() -> PathBuf {
    let test = env::current_exe().expect("a process knows its executable");
    let profile_folder = test.parent().and_then(Path::parent).expect("it lies in a deps folder");
    let target = profile_folder.parent().expect("profiles lie in a target folder");
    let profile = match profile_folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "gesmas", "--bin", "gesmas", "--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))
        .output()
        .expect("cargo can be started");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the gesmas binary cannot be built:\n{complaint}");
    profile_folder.join("gesmas")
}
