//! The disks of the replicas, and the faults that can be planted in them.
//!
//! Invariant: without a plant a disk does what its model in the log's crate does, no more.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use gesmas::{
    log::{
        Identity, Log, LogError, LogSettings,
        repo::{Action, FileSync, MemDisk, MemRepo, Repo, RepoError},
    },
    snapshot::{self, Store},
};

use crate::{options::Plant, prng::Prng};

/// The cluster of every simulation.
pub(crate) const CLUSTER: u128 = 0x6765_736d_6173;
/// Records that a forgetful disk may lose.
const FORGOTTEN: u64 = 3;

/// Where a write went: file, offset, length.
type Written = (u64, u64, usize);

/// Whether two writes have bytes in common.
fn meet(one: Written, other: Written) -> bool {
    let end = |(_, offset, length): Written| offset + length as u64;
    one.0 == other.0 && one.1 < end(other) && other.1 < end(one)
}

/// What was done to the log's files.
#[derive(Debug, Default)]
struct Done {
    written: Vec<Written>,
    /// Writes that were made durable.
    synced: usize,
    /// Whether the next read fails.
    fails: bool,
}

/// A replica's disk.
#[derive(Debug)]
pub(crate) struct Disk {
    disk: MemDisk,
    plant: Option<Plant>,
    settings: LogSettings,
    done: Arc<Mutex<Done>>,
    snapshots: snapshot::repo::MemRepo,
    piece_bytes: u64,
}

impl Disk {
    /// An empty disk.
    pub(crate) fn new(
        replica: u64,
        file_bytes: u64,
        piece_bytes: u64,
        plant: Option<Plant>,
    ) -> Self {
        let settings = LogSettings {
            identity: Identity { cluster: CLUSTER, replica },
            file_bytes,
            cache_bytes: file_bytes / 2,
            salt: 0x5a17 + replica,
        };
        Self {
            disk: MemDisk::new(),
            plant,
            settings,
            done: Arc::default(),
            snapshots: snapshot::repo::MemRepo::new(),
            piece_bytes,
        }
    }

    /// Opens the log, or makes it.
    pub(crate) fn open_log(&self) -> Result<Log, LogError> {
        let repo = self.disk.open().map_err(LogError::from)?;
        let mut repo = Box::new(PlantedRepo {
            repo,
            lies: self.plant == Some(Plant::LyingSync),
            done: self.done.clone(),
        });
        let fresh = repo.list().map_err(LogError::from)?.is_empty();
        if fresh { Log::create(repo, self.settings) } else { Log::open(repo, self.settings) }
    }

    /// The snapshots on it.
    pub(crate) fn snapshots(&self) -> Store {
        let owner = snapshot::Owner { cluster: CLUSTER, group: 1, configuration: 1 };
        Store::new(Box::new(self.snapshots.clone()), owner).with_pieces_of(self.piece_bytes)
    }

    /// Another, empty disk is put in its place.
    pub(crate) fn wipe(&self) {
        self.disk.wipe();
        self.snapshots.wipe();
        *self.done() = Done::default();
    }

    /// A bit of a snapshot flips, or its end is lost. False when there is none.
    pub(crate) fn rot(&self, prng: &mut Prng) -> bool {
        let whole = self.snapshots.whole();
        if whole.is_empty() {
            return false;
        }
        let cut = prng.permille(300);
        self.snapshots.alter(whole[prng.index(whole.len())], |bytes| {
            if bytes.is_empty() {
                return;
            }
            let at = prng.index(bytes.len());
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << prng.below(8);
            }
        });
        true
    }

    /// A bit of the log flips.
    pub(crate) fn flip(&self, prng: &mut Prng) {
        let files = self.disk.files();
        if !files.is_empty() {
            self.disk.alter(files[prng.index(files.len())], |bytes| {
                let at = prng.index(bytes.len());
                bytes[at] ^= 1 << prng.below(8);
            });
        }
    }

    /// One of the writes of the past that were followed by others, none of them to the same place,
    /// went elsewhere in its file, and not over the last of those: nothing would tell it from a torn
    /// end. False when there is none.
    pub(crate) fn misdirect(&self, prng: &mut Prng) -> bool {
        let files = self.disk.files();
        let (chosen, last) = {
            let done = self.done();
            let followed = &done.written[..done.synced.saturating_sub(1)];
            let there: Vec<_> = (0..followed.len())
                .filter(|at| files.contains(&followed[*at].0))
                .filter(|at| {
                    !done.written[at + 1..].iter().any(|later| meet(followed[*at], *later))
                })
                .map(|at| followed[at])
                .collect();
            if there.is_empty() {
                return false;
            }
            (there[prng.index(there.len())], done.written[done.synced - 1])
        };
        let (file, offset, length) = chosen;
        let size = self.disk.bytes(file).len();
        let to = prng.index(size - length + 1);
        if !files.contains(&last.0) || meet((file, to as u64, length), last) {
            return false;
        }
        let start = usize::try_from(offset).expect("it is in memory");
        self.disk.alter(file, |bytes| {
            let from = start..start + length;
            let moved = bytes[from.clone()].to_vec();
            bytes[from].fill(0);
            bytes[to..to + length].copy_from_slice(&moved);
        });
        true
    }

    /// The next read of the log fails.
    pub(crate) fn fail_read(&self) {
        self.done().fails = true;
    }

    /// Whether a read has yet to fail; it does not any more.
    pub(crate) fn take_fails(&self) -> bool {
        std::mem::take(&mut self.done().fails)
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().expect("one thread")
    }

    /// Whether there is room for another file of the log from now on.
    pub(crate) fn set_full(&self, full: bool) {
        self.disk.set_full(full);
    }

    /// The power fails after some further steps on the disk.
    pub(crate) fn fail_after(&self, steps: u64) {
        self.disk.fail_after(steps);
    }

    /// The power fails now.
    pub(crate) fn cut_power(&self, prng: &mut Prng) {
        self.snapshots.cut_power(&mut |choices| prng.below(choices));
        if self.plant == Some(Plant::LyingSync) {
            return self.disk.cut_power(&mut |_| 0);
        }
        self.disk.cut_power(&mut |choices| prng.below(choices));
        if self.plant == Some(Plant::ForgetfulDisk) {
            for _ in 0..prng.between(1, FORGOTTEN) {
                self.forget_last();
            }
        }
    }

    fn forget_last(&self) {
        let last = self.done().written.pop();
        if let Some((file, offset, length)) = last
            && self.disk.files().contains(&file)
        {
            let start = usize::try_from(offset).expect("it is in memory");
            self.disk.alter(file, |bytes| bytes[start..start + length].fill(0));
        }
    }
}

/// A repository with a planted fault, or without.
struct PlantedRepo {
    repo: MemRepo,
    lies: bool,
    done: Arc<Mutex<Done>>,
}

impl PlantedRepo {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().expect("one thread")
    }
}

impl Repo for PlantedRepo {
    fn list(&mut self) -> Result<Vec<u64>, RepoError> {
        self.repo.list()
    }

    fn length(&mut self, file: u64) -> Result<u64, RepoError> {
        self.repo.length(file)
    }

    fn read(&mut self, file: u64, offset: u64, bytes: &mut [u8]) -> Result<(), RepoError> {
        if std::mem::take(&mut self.done().fails) {
            let failed = io::Error::other("the sector cannot be read");
            let subject = format!("log file {file}");
            return Err(RepoError::Io { action: Action::Read, subject, source: failed });
        }
        self.repo.read(file, offset, bytes)
    }

    fn write(&mut self, file: u64, offset: u64, bytes: &[u8]) -> Result<(), RepoError> {
        self.repo.write(file, offset, bytes)?;
        self.done().written.push((file, offset, bytes.len()));
        Ok(())
    }

    fn begin_sync(&mut self, file: u64) -> Result<FileSync, RepoError> {
        if self.lies {
            return Ok(Box::new(|| Ok(())));
        }
        let (sync, done) = (self.repo.begin_sync(file)?, Arc::clone(&self.done));
        Ok(Box::new(move || {
            sync()?;
            let mut done = done.lock().expect("one thread");
            done.synced = done.written.len();
            Ok(())
        }))
    }

    fn create(&mut self, file: u64, size: u64, header: &[u8]) -> Result<(), RepoError> {
        self.repo.create(file, size, header)
    }

    fn remove(&mut self, file: u64) -> Result<(), RepoError> {
        self.repo.remove(file)
    }

    fn create_ahead(&mut self, file: u64, size: u64, header: &[u8]) {
        self.repo.create_ahead(file, size, header);
    }

    fn wait_created(&mut self, file: u64) -> Result<bool, RepoError> {
        self.repo.wait_created(file)
    }
}
