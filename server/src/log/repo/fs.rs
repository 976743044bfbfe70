//! Log files in a folder of the file system.
//!
//! Files are named by their number in sixteen decimal digits, `0000000000000001.log`. A new file is
//! written under a temporary name, synced, renamed, and the folder synced; left-over temporary
//! files are removed when the folder is opened for writing. A lock on the file `lock` keeps a
//! second process out; the system drops it with the process, however that ends.
//! Not here: any retry. An error goes to the log, which stops.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::{Action, FileSync, Repo, RepoError};

const LOCK_NAME: &str = "lock";
const FILE_SUFFIX: &str = ".log";
const TEMPORARY_SUFFIX: &str = ".log.new";
/// Zeros are written in pieces of this many bytes.
const ZERO_CHUNK_BYTES: usize = 1 << 20;

/// A folder of log files.
#[derive(Debug)]
pub struct FsRepo {
    folder: PathBuf,
    open: BTreeMap<u64, Arc<File>>,
    ahead: BTreeMap<u64, JoinHandle<Result<(), RepoError>>>,
    /// Held for as long as the folder is open for writing; none for a reader.
    lock: Option<File>,
}

impl FsRepo {
    /// Opens a folder for writing, makes it if it is not there, and locks it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, RepoError> {
        let folder = folder.into();
        let failed = |source| RepoError::new(Action::Open, folder.display().to_string(), source);
        fs::create_dir_all(&folder).map_err(failed)?;
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
        sync_folder(&folder).map_err(failed)?;
        if let Some(parent) = folder.parent().filter(|parent| parent.is_dir()) {
            sync_folder(parent).map_err(failed)?;
        }
        Ok(Self { folder, open: BTreeMap::new(), ahead: BTreeMap::new(), lock: Some(lock) })
    }

    /// Opens a folder to look at it. It is not locked, not changed, and must not be written to.
    pub fn read_only(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), open: BTreeMap::new(), ahead: BTreeMap::new(), lock: None }
    }

    fn file(&mut self, action: Action, number: u64) -> Result<&Arc<File>, RepoError> {
        use std::collections::btree_map::Entry;
        match self.open.entry(number) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let path = path(&self.folder, number, FILE_SUFFIX);
                let file = OpenOptions::new()
                    .read(true)
                    .write(self.lock.is_some())
                    .open(&path)
                    .map_err(|source| RepoError::of_file(action, number, source))?;
                Ok(entry.insert(Arc::new(file)))
            }
        }
    }

    fn check_writable(&self) {
        assert!(self.lock.is_some(), "a folder that was opened to look at it is not written to");
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
        self.check_writable();
        self.file(Action::Write, file)?
            .write_all_at(bytes, offset)
            .map_err(|source| RepoError::of_file(Action::Write, file, source))
    }

    fn begin_sync(&mut self, number: u64) -> Result<FileSync, RepoError> {
        self.check_writable();
        let file = Arc::clone(self.file(Action::Sync, number)?);
        Ok(Box::new(move || {
            file.sync_data().map_err(|source| RepoError::of_file(Action::Sync, number, source))
        }))
    }

    fn create(&mut self, file: u64, size: u64, header: &[u8]) -> Result<(), RepoError> {
        self.check_writable();
        self.open.remove(&file);
        create_durable(&self.folder, file, size, header)
    }

    fn remove(&mut self, file: u64) -> Result<(), RepoError> {
        self.check_writable();
        self.open.remove(&file);
        fs::remove_file(path(&self.folder, file, FILE_SUFFIX))
            .and_then(|()| sync_folder(&self.folder))
            .map_err(|source| RepoError::of_file(Action::Remove, file, source))
    }

    fn create_ahead(&mut self, file: u64, size: u64, header: &[u8]) {
        self.check_writable();
        let folder = self.folder.clone();
        let header = header.to_vec();
        let spawned = std::thread::Builder::new()
            .name(format!("log-file-{file}"))
            .spawn(move || create_durable(&folder, file, size, &header));
        // Without a thread the file is made when it is needed.
        if let Ok(thread) = spawned {
            self.ahead.insert(file, thread);
        }
    }

    fn wait_created(&mut self, file: u64) -> Result<bool, RepoError> {
        let Some(thread) = self.ahead.remove(&file) else { return Ok(false) };
        thread.join().expect("making a file does not panic")?;
        self.open.remove(&file);
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

fn create_durable(folder: &Path, number: u64, size: u64, header: &[u8]) -> Result<(), RepoError> {
    let create = || -> io::Result<()> {
        let temporary = path(folder, number, TEMPORARY_SUFFIX);
        let mut file = File::create(&temporary)?;
        file.write_all(header)?;
        let zeros = vec![0; ZERO_CHUNK_BYTES];
        let mut left = size - header.len() as u64;
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
            file.write_all(&zeros[..length])?;
            left -= length as u64;
        }
        file.sync_all()?;
        fs::rename(&temporary, path(folder, number, FILE_SUFFIX))?;
        sync_folder(folder)
    };
    create().map_err(|source| {
        // What was written of it takes the room that is lacking. Should this fail too, the next start
        // removes it.
        let _left = fs::remove_file(path(folder, number, TEMPORARY_SUFFIX));
        RepoError::of_file(Action::Create, number, source)
    })
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
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
