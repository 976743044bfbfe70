//! Compiled code on disk, so that a restart does not compile again.
//!
//! A file is named by the hash of the module and of the engine's identity, and holds a tag and the
//! code. The tag is a keyed hash over both names and the code, with a secret that lies in the same
//! folder, readable by its owner alone. So what another user, a backup or a copied folder brings is
//! not run as code; whoever can read the secret could run code here anyway.
//! Invariants: a file appears whole or not at all; code is handed out only when its tag verifies.
//! Not here: eviction. The folder may be removed at any time while no server uses it.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use gesmas_machine::CodeHash;

use super::Artifact;
use crate::identity;

/// Name of the file with the secret.
const SECRET: &str = "secret";
/// Largest file that is read, bytes.
const LARGEST: u64 = 256 << 20;
/// Length of a tag and of the secret, bytes.
const HASH: usize = 32;

/// Why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A file or the folder cannot be read or written.
    #[error("cannot use {path} of the cache of compiled classes: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Others could read the secret.
    #[error("others can read {0}: remove the cache folder, it will be made again")]
    SecretExposed(PathBuf),
    /// The secret is not one.
    #[error("{0} is damaged: remove the cache folder, it will be made again")]
    SecretDamaged(PathBuf),
    /// The tag does not verify: the file is damaged, or not from this server. Compile again.
    #[error("{0} was not written by this server, or is damaged")]
    NotOurs(PathBuf),
}

/// A folder of compiled code.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    secret: [u8; HASH],
    engine: [u8; 32],
    written: AtomicU64,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CacheError + '_ {
    move |error| CacheError::Io { path: path.into(), error }
}

impl Cache {
    /// Opens the folder, and makes it and its secret when they are not there.
    ///
    /// # Errors
    /// [`CacheError`], but never [`CacheError::NotOurs`].
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(io_error(&folder))?;
        let secret = secret(&folder)?;
        let engine = identity::wasm().hash;
        Ok(Self { folder, secret, engine, written: AtomicU64::new(0) })
    }

    fn path(&self, code: CodeHash) -> PathBuf {
        let engine: String = self.engine[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{code}-{engine}.code"))
    }

    fn tag(&self, code: CodeHash, artifact: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(&code.0).update(&self.engine).update(artifact);
        hasher.finalize()
    }

    /// Code that was stored, if any.
    ///
    /// # Errors
    /// [`CacheError::NotOurs`] when the file is not to be trusted; storing again replaces it.
    pub fn load(&self, code: CodeHash) -> Result<Option<Artifact>, CacheError> {
        let path = self.path(code);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(&path)(error)),
        };
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).map_err(io_error(&path))?;
        let Some((tag, artifact)) = bytes.split_first_chunk::<HASH>() else {
            return Err(CacheError::NotOurs(path));
        };
        // Comparing two of these hashes takes the same time wherever they differ.
        if self.tag(code, artifact) != blake3::Hash::from_bytes(*tag) {
            return Err(CacheError::NotOurs(path));
        }
        Ok(Some(Artifact::trusted(artifact.to_vec())))
    }

    /// Stores code for the next start.
    ///
    /// # Errors
    /// [`CacheError::Io`]. The code can be used all the same.
    pub fn store(&self, code: CodeHash, artifact: &Artifact) -> Result<(), CacheError> {
        let path = self.path(code);
        let tag = self.tag(code, artifact.as_bytes());
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let draft = self.folder.join(format!("{code}.{}.{number}.draft", std::process::id()));
        write_private(&draft, &[tag.as_bytes(), artifact.as_bytes()])
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(io_error(&path))
    }
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // The mode above counts only for a file that was not there.
    file.set_permissions(Permissions::from_mode(0o600))?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()
}

/// Reads the secret, or draws one. Of several processes that draw at once, one wins.
fn secret(folder: &Path) -> Result<[u8; HASH], CacheError> {
    let path = folder.join(SECRET);
    if !path.exists() {
        let draft = folder.join(format!("{SECRET}.{}.draft", std::process::id()));
        let made = random().and_then(|secret| write_private(&draft, &[&secret])).and_then(|()| {
            match fs::hard_link(&draft, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        });
        made.and_then(|()| fs::remove_file(&draft)).map_err(io_error(&path))?;
    }
    let file = File::open(&path).map_err(io_error(&path))?;
    let mode = file.metadata().map_err(io_error(&path))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(CacheError::SecretExposed(path));
    }
    let mut bytes = Vec::new();
    file.take(HASH as u64 + 1).read_to_end(&mut bytes).map_err(io_error(&path))?;
    bytes.try_into().map_err(|_| CacheError::SecretDamaged(path))
}

fn random() -> io::Result<[u8; HASH]> {
    let mut secret = [0; HASH];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    Ok(secret)
}
