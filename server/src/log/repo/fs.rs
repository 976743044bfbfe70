//! Log files in a folder of the file system.
//!
//! Files are named by their number in sixteen decimal digits, `0000000000000001.log`. A new file is
//! written under a temporary name, synced, renamed, and the folder synced; left-over temporary
//! files are removed when the folder is opened for writing. A lock on the file `lock` keeps a
//! second process out; the system drops it with the process, however that ends.
//!
//! Invariants: at most [`OPEN_MOST`] files are open besides the lock, the folder and one spare descriptor,
//! however many there are; a file that is there can be opened although the process has no descriptor
//! left, since one of those is given up for it.
//! Not here: any retry. An error goes to the log, which stops.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::{Action, FileSync, Repo, RepoError, lacks_descriptor};
use crate::folder as folders;

const LOCK_NAME: &str = "lock";
const FILE_SUFFIX: &str = ".log";
const TEMPORARY_SUFFIX: &str = ".log.new";
/// Zeros are written in pieces of this many bytes.
const ZERO_CHUNK_BYTES: usize = 1 << 20;
/// Files that stay open: the one that is written, and some that are read.
pub(crate) const OPEN_MOST: usize = 8;

/// A folder of log files.
#[derive(Debug)]
pub struct FsRepo {
    folder: PathBuf,
    open: BTreeMap<u64, Arc<File>>,
    ahead: BTreeMap<u64, JoinHandle<Result<File, RepoError>>>,
    /// None for a reader.
    held: Option<Held>,
}

/// What is held for as long as the folder is open for writing.
#[derive(Debug)]
struct Held {
    /// Keeps others out.
    _lock: File,
    /// The folder: to make durable which files it has takes no descriptor then.
    folder: Arc<File>,
    /// A descriptor that is given up for a file when there is no other.
    spare: Option<File>,
}

impl FsRepo {
    /// Descriptors that it takes at most: the lock, the folder, the spare one, the files that are open,
    /// one more that is being opened, and one that is made ahead.
    pub(crate) const DESCRIPTORS: u64 = 5 + OPEN_MOST as u64;

    /// Opens a folder for writing, makes it if it is not there, and locks it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, RepoError> {
        let folder = folder.into();
        let failed = |source| RepoError::new(Action::Open, folder.display().to_string(), source);
        folders::make(&folder).map_err(failed)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join(LOCK_NAME))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RepoError::Locked { folder: folder.display().to_string() });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        remove_temporary_files(&folder).map_err(failed)?;
        let itself = File::open(&folder).map_err(failed)?;
        itself.sync_all().map_err(failed)?;
        let spare = Some(itself.try_clone().map_err(failed)?);
        let held = Some(Held { _lock: lock, folder: Arc::new(itself), spare });
        Ok(Self { folder, open: BTreeMap::new(), ahead: BTreeMap::new(), held })
    }

    /// Opens a folder to look at it. It is not locked, not changed, and must not be written to.
    pub fn read_only(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), open: BTreeMap::new(), ahead: BTreeMap::new(), held: None }
    }

    fn file(&mut self, action: Action, number: u64) -> Result<&Arc<File>, RepoError> {
        if !self.open.contains_key(&number) {
            let file = self
                .open_file(number)
                .map_err(|source| RepoError::of_file(action, number, source))?;
            self.keep_open(number, file);
        }
        Ok(&self.open[&number])
    }

    /// Opens a file that is there. Without a descriptor for it, one of this folder's own is given up.
    fn open_file(&mut self, number: u64) -> io::Result<File> {
        let path = path(&self.folder, number, FILE_SUFFIX);
        let mut options = OpenOptions::new();
        options.read(true).write(self.held.is_some());
        match options.open(&path) {
            Err(error) if lacks_descriptor(&error) => {
                self.open.pop_first();
                if let Some(held) = &mut self.held {
                    held.spare = None;
                }
                options.open(&path)
            }
            opened => opened,
        }
    }

    /// Keeps a file open; the oldest of too many is closed, which is read seldom.
    fn keep_open(&mut self, number: u64, file: File) {
        self.open.insert(number, Arc::new(file));
        if self.open.len() > OPEN_MOST
            && let Some(oldest) = self.open.keys().copied().find(|open| *open != number)
        {
            self.open.remove(&oldest);
        }
        if let Some(Held { folder, spare: spare @ None, .. }) = &mut self.held {
            // Should there be none for it, the next file that is opened tries again.
            *spare = folder.try_clone().ok();
        }
    }

    /// Where new files are made.
    fn place(&self) -> Place {
        Place { path: self.folder.clone(), folder: Arc::clone(&self.held().folder) }
    }

    fn held(&self) -> &Held {
        self.held.as_ref().expect("a folder that was opened to look at it is not written to")
    }
}

impl Repo for FsRepo {
    fn list(&mut self) -> Result<Vec<u64>, RepoError> {
        let failed =
            |source| RepoError::new(Action::List, self.folder.display().to_string(), source);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(FILE_SUFFIX));
            let number = number.and_then(|number| number.parse::<u64>().ok());
            // Whatever is not named as the log names its files is somebody else's.
            numbers
                .extend(number.filter(|number| name == file_name(*number, FILE_SUFFIX).as_str()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn length(&mut self, file: u64) -> Result<u64, RepoError> {
        let metadata = self.file(Action::Length, file)?.metadata();
        Ok(metadata.map_err(|source| RepoError::of_file(Action::Length, file, source))?.len())
    }

    fn read(&mut self, file: u64, offset: u64, bytes: &mut [u8]) -> Result<(), RepoError> {
        self.file(Action::Read, file)?
            .read_exact_at(bytes, offset)
            .map_err(|source| RepoError::of_file(Action::Read, file, source))
    }

    fn write(&mut self, file: u64, offset: u64, bytes: &[u8]) -> Result<(), RepoError> {
        self.held();
        self.file(Action::Write, file)?
            .write_all_at(bytes, offset)
            .map_err(|source| RepoError::of_file(Action::Write, file, source))
    }

    fn begin_sync(&mut self, number: u64) -> Result<FileSync, RepoError> {
        self.held();
        let file = Arc::clone(self.file(Action::Sync, number)?);
        Ok(Box::new(move || {
            file.sync_data().map_err(|source| RepoError::of_file(Action::Sync, number, source))
        }))
    }

    fn create(&mut self, file: u64, size: u64, header: &[u8]) -> Result<(), RepoError> {
        let place = self.place();
        self.open.remove(&file);
        let made = place.create(file, size, header)?;
        self.keep_open(file, made);
        Ok(())
    }

    fn remove(&mut self, file: u64) -> Result<(), RepoError> {
        let itself = Arc::clone(&self.held().folder);
        self.open.remove(&file);
        fs::remove_file(path(&self.folder, file, FILE_SUFFIX))
            .and_then(|()| itself.sync_all())
            .map_err(|source| RepoError::of_file(Action::Remove, file, source))
    }

    fn create_ahead(&mut self, file: u64, size: u64, header: &[u8]) {
        let place = self.place();
        let header = header.to_vec();
        let spawned = std::thread::Builder::new()
            .name(format!("log-file-{file}"))
            .spawn(move || place.create(file, size, &header));
        // Without a thread the file is made when it is needed.
        if let Ok(thread) = spawned {
            self.ahead.insert(file, thread);
        }
    }

    fn wait_created(&mut self, file: u64) -> Result<bool, RepoError> {
        let Some(thread) = self.ahead.remove(&file) else { return Ok(false) };
        let made = thread.join().expect("making a file does not panic")?;
        self.keep_open(file, made);
        Ok(true)
    }
}

impl Drop for FsRepo {
    /// Nobody may write into the folder once its lock is gone.
    fn drop(&mut self) {
        for (_, thread) in std::mem::take(&mut self.ahead) {
            // The outcome concerns nobody any more: recovery finds the whole file or none.
            drop(thread.join());
        }
    }
}

fn file_name(number: u64, suffix: &str) -> String {
    format!("{number:016}{suffix}")
}

fn path(folder: &Path, number: u64, suffix: &str) -> PathBuf {
    folder.join(file_name(number, suffix))
}

/// Where files are made, on any thread.
struct Place {
    path: PathBuf,
    folder: Arc<File>,
}

impl Place {
    /// Makes a durable file, and gives it as it is open: to write to it takes no further descriptor.
    fn create(&self, number: u64, size: u64, header: &[u8]) -> Result<File, RepoError> {
        self.try_create(number, size, header).map_err(|source| {
            // What was written of it takes the room that is lacking. Should this fail too, the next
            // start removes it.
            let _left = fs::remove_file(path(&self.path, number, TEMPORARY_SUFFIX));
            RepoError::of_file(Action::Create, number, source)
        })
    }

    fn try_create(&self, number: u64, size: u64, header: &[u8]) -> io::Result<File> {
        let temporary = path(&self.path, number, TEMPORARY_SUFFIX);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = options.open(&temporary)?;
        file.write_all(header)?;
        let zeros = vec![0; ZERO_CHUNK_BYTES];
        let mut left = size - header.len() as u64;
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
            file.write_all(&zeros[..length])?;
            left -= length as u64;
        }
        file.sync_all()?;
        fs::rename(&temporary, path(&self.path, number, FILE_SUFFIX))?;
        self.folder.sync_all()?;
        Ok(file)
    }
}

fn remove_temporary_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.ends_with(TEMPORARY_SUFFIX)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
