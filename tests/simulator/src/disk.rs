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
        repo::{Action, FileSync, Lack, MemDisk, MemRepo, Repo, RepoError},
    },
    snapshot::{self, Store},
};

use crate::{options::Plant, prng::Prng, trace::hash};

/// The cluster of every simulation.
pub(crate) const CLUSTER: u128 = 0x6765_736d_6173;
/// Records that a forgetful disk may lose.
const FORGOTTEN: u64 = 3;

/// Where a write went, and what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    file: u64,
    offset: u64,
    length: usize,
    /// Of its bytes, if it is a record: neither zeros over a torn end, nor one byte that was mended.
    record: Option<u64>,
}

impl Written {
    fn new(file: u64, offset: u64, bytes: &[u8]) -> Self {
        let is_record = bytes.len() > 1 && bytes.iter().any(|byte| *byte != 0);
        Self { file, offset, length: bytes.len(), record: is_record.then(|| hash(bytes)) }
    }

    /// Whether two writes have bytes in common.
    fn meets(&self, other: &Self) -> bool {
        let end = |write: &Self| write.offset + write.length as u64;
        self.file == other.file && self.offset < end(other) && other.offset < end(self)
    }
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

    /// One of the records of the past that were followed by others, none of them in the same place,
    /// went elsewhere in its file, and not over the last one: nothing would tell that from a torn end.
    /// False when there is none.
    pub(crate) fn misdirect(&self, prng: &mut Prng) -> bool {
        let Some((chosen, last)) = self.choose_misdirected(prng) else { return false };
        let size = self.disk.bytes(chosen.file).len();
        let to = prng.index(size - chosen.length + 1);
        let moved = Written { offset: to as u64, ..chosen };
        if moved.meets(&last) {
            return false;
        }
        let start = usize::try_from(chosen.offset).expect("it is in memory");
        self.disk.alter(chosen.file, |bytes| {
            let from = start..start + chosen.length;
            let moved = bytes[from.clone()].to_vec();
            bytes[from].fill(0);
            bytes[to..to + chosen.length].copy_from_slice(&moved);
        });
        true
    }

    /// A record that can be misdirected, and the last one of those that are durable.
    fn choose_misdirected(&self, prng: &mut Prng) -> Option<(Written, Written)> {
        let done = self.done();
        let standing: Vec<_> =
            (0..done.synced).filter(|at| self.stands(done.written[*at])).collect();
        let (last, earlier) = standing.split_last()?;
        let alone: Vec<_> = earlier
            .iter()
            .map(|at| (done.written[*at], &done.written[at + 1..]))
            .filter(|(write, later)| !later.iter().any(|later| write.meets(later)))
            .collect();
        if alone.is_empty() {
            return None;
        }
        Some((alone[prng.index(alone.len())].0, done.written[*last]))
    }

    /// Whether a write was a record that is still there. What was never durable may be gone.
    fn stands(&self, write: Written) -> bool {
        let Some(record) = write.record else { return false };
        if !self.disk.files().contains(&write.file) {
            return false;
        }
        let start = usize::try_from(write.offset).expect("it is in memory");
        hash(&self.disk.bytes(write.file)[start..start + write.length]) == record
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

    /// What is lacking for another file from now on: room for one of the log, or a file descriptor.
    pub(crate) fn set_lack(&self, lack: Option<Lack>) {
        self.disk.set_lack(lack);
        self.snapshots.set_descriptors(lack != Some(Lack::Descriptor));
    }

    /// Whether the next sync of the log fails, and the system forgets what it was to write.
    pub(crate) fn fail_sync(&self, fails: bool) {
        self.disk.fail_sync(fails);
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
        if let Some(Written { file, offset, length, .. }) = last
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
        self.done().written.push(Written::new(file, offset, bytes));
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gesmas::log::{Call, Instance};

    use super::*;

    const INSTANCE: Instance = Instance { group: 1, configuration: 1 };

    /// Three turns are durable, the fourth is torn, and a recovery has wiped it away.
    fn wiped(disk: &Disk, prng: &mut Prng) {
        let mut log = disk.open_log().expect("the disk is new");
        let append = |log: &mut Log| {
            let entry = Bytes::from_static(b"something longer than a record's header is");
            log.record(INSTANCE, &Call::Append(vec![entry])).expect("there is room");
        };
        for _ in 0..3 {
            append(&mut log);
            log.sync().expect("the disk works");
        }
        append(&mut log);
        let syncing = log.begin_sync().expect("the disk works");
        disk.cut_power(prng);
        drop(syncing);
        drop(disk.open_log().expect("a torn end is no damage"));
    }

    #[test]
    fn no_record_is_misdirected_whose_loss_nobody_could_notice() {
        let mut moved = 0;
        for seed in 0..300 {
            let mut prng = Prng::new(seed);
            let disk = Disk::new(1, 4096, 1024, None);
            wiped(&disk, &mut prng);
            if !disk.misdirect(&mut prng) {
                continue;
            }
            moved += 1;
            // It is refused, or all is there that was durable.
            if let Ok(log) = disk.open_log() {
                assert!(log.end(INSTANCE) >= 3, "seed {seed}");
            }
        }
        assert!(moved > 100, "only {moved}");
    }
}
