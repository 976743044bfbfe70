//! What cargo knows about a class crate.

use std::{
    env,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{BuildError, command, target::TARGET};

/// Name of the nested target folder.
const NESTED: &str = "gesmas-classes";

/// A class crate that can be compiled.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// The nested target folder.
    pub(crate) target_dir: PathBuf,
    /// Folders, and what the module calls them. The compiler takes the last that fits.
    pub(crate) remapped: Vec<(PathBuf, String)>,
    library: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    version: String,
    manifest_path: PathBuf,
    /// None for a package that lies in a folder.
    source: Option<String>,
    targets: Vec<MetadataTarget>,
}

#[derive(Deserialize)]
struct MetadataTarget {
    name: String,
    kind: Vec<String>,
}

impl Package {
    /// Asks cargo.
    pub(crate) fn describe(manifest_dir: &Path) -> Result<Self, BuildError> {
        let manifest = manifest_dir.join("Cargo.toml");
        let shown = manifest.display().to_string();
        let failed = |reason: String| BuildError::Metadata { manifest: shown.clone(), reason };
        let manifest = manifest.canonicalize().map_err(|reason| failed(reason.to_string()))?;
        let folder = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
        let metadata = ask(&manifest, &folder).and_then(|(success, output, complaint)| {
            if !success {
                return Err(failed(complaint));
            }
            serde_json::from_slice::<Metadata>(&output).map_err(|reason| failed(reason.to_string()))
        })?;
        let own = metadata.packages.iter().find(|package| package.manifest_path == manifest);
        let own = own.ok_or_else(|| failed("its own package is not listed".into()))?;
        let is_library = |target: &&MetadataTarget| {
            target.kind.iter().any(|kind| ["lib", "rlib", "cdylib"].contains(&kind.as_str()))
        };
        let library = own.targets.iter().find(is_library);
        let library = library.ok_or_else(|| BuildError::NoLibrary { manifest: shown.clone() })?;
        Ok(Self {
            name: own.name.clone(),
            folder,
            target_dir: metadata.target_directory.join(NESTED),
            remapped: remapped(&metadata),
            library: library.name.replace('-', "_"),
        })
    }

    /// The module that the compiler writes.
    pub(crate) fn artifact(&self) -> PathBuf {
        let folder = self.target_dir.join(TARGET).join("release");
        folder.join(format!("{}.wasm", self.library))
    }

    /// The sources that cargo has listed beside the module, and the manifest.
    pub(crate) fn sources(&self, listed: &[u8]) -> Vec<PathBuf> {
        let listed = String::from_utf8_lossy(listed);
        let mut sources = vec![self.folder.join("Cargo.toml")];
        for line in listed.lines() {
            if let Some((_, files)) = line.split_once(": ") {
                sources.extend(split_files(files).map(PathBuf::from));
            }
        }
        sources
    }
}

/// Files are set apart by blanks; a blank in a name is escaped.
fn split_files(files: &str) -> impl Iterator<Item = String> {
    let marked = files.replace("\\ ", "\0");
    let names: Vec<_> = marked.split_whitespace().map(|name| name.replace('\0', " ")).collect();
    names.into_iter()
}

fn ask(manifest: &Path, folder: &Path) -> Result<(bool, Vec<u8>, String), BuildError> {
    let program = command::cargo();
    let mut cargo = command::clean(&program, folder);
    cargo.args(["metadata", "--format-version", "1", "--filter-platform", TARGET]);
    cargo.arg("--manifest-path").arg(manifest);
    let output = cargo.output().map_err(|reason| BuildError::Start { program, reason })?;
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok((output.status.success(), output.stdout, complaint))
}

/// Every folder whose name could get into a panic message.
fn remapped(metadata: &Metadata) -> Vec<(PathBuf, String)> {
    let mut remapped = Vec::new();
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    remapped.extend(home.map(|home| (home, "cargo".to_owned())));
    for package in metadata.packages.iter().filter(|package| package.source.is_none()) {
        if let Some(folder) = package.manifest_path.parent()
            && !folder.starts_with(&metadata.workspace_root)
        {
            remapped.push((folder.into(), format!("{}-{}", package.name, package.version)));
        }
    }
    remapped.push((metadata.workspace_root.clone(), String::new()));
    remapped
}
