//! A model of a disk, with what is durable and what a power cut may still lose.
//!
//! A write lands at once for whoever reads, and stays pending until its file is synced. At a power
//! cut the caller decides, sector by sector, whether a pending write reached the disk, was lost, or
//! tore the sector in two; and for each new file whose name was not yet durable, whether it is
//! there. A countdown lets the power fail between any two steps, inside `create` too.
//!
//! Invariant: the model draws nothing by itself; equal choices give equal disks.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;

use super::{Action, FileSync, Repo, RepoError};

/// What a disk writes as a whole, if it writes it at all.
const SECTOR_BYTES: usize = 512;

/// A disk that outlives the replicas that use it. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct MemDisk(Arc<Mutex<Disk>>);

/// One replica's access to a [`MemDisk`]; at most one at a time.
#[derive(Debug)]
pub struct MemRepo(Opened);

/// One opening of the disk.
#[derive(Clone, Debug)]
struct Opened {
    disk: MemDisk,
    /// Which it is; a power cut makes it stale.
    generation: u64,
}

#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<u64, MemFile>,
    locked: bool,
    generation: u64,
    steps_left: Option<u64>,
    /// Why no other file can be made, if none can.
    lack: Option<Lack>,
    /// Whether the next sync fails, and what it was to make durable is forgotten.
    fails_sync: bool,
    syncs: u64,
}

/// What is lacking for another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Room on the disk.
    Room,
    /// A file descriptor.
    Descriptor,
}

#[derive(Debug, Default)]
struct MemFile {
    /// What a reader sees.
    current: Vec<u8>,
    /// What survives every power cut.
    durable: Vec<u8>,
    /// What was there before this file under the name, while its own name is not durable.
    unnamed_over: Option<Option<Box<Self>>>,
    pending: Vec<(usize, Vec<u8>)>,
}

impl MemDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the disk for one replica.
    pub fn open(&self) -> Result<MemRepo, RepoError> {
        let mut disk = self.disk();
        if disk.locked {
            return Err(RepoError::Locked { folder: "in memory".into() });
        }
        disk.locked = true;
        disk.generation += 1;
        // Whoever opens a folder syncs it first.
        disk.files.values_mut().for_each(|file| file.unnamed_over = None);
        Ok(MemRepo(Opened { disk: self.clone(), generation: disk.generation }))
    }

    /// Cuts the power. `choose(n)` picks one of `0..n`: per pending sector 0 loses it, 1 keeps it
    /// and 2 tears it at a further choice; per file without a durable name 0 loses it. Whoever has
    /// the disk open gets errors from now on.
    pub fn cut_power(&self, choose: &mut dyn FnMut(u64) -> u64) {
        let mut disk = self.disk();
        disk.locked = false;
        disk.generation += 1;
        disk.steps_left = None;
        let numbers: Vec<u64> = disk.files.keys().copied().collect();
        for number in numbers {
            let mut file = disk.files.remove(&number).expect("listed");
            if let Some(before) = file.unnamed_over.take()
                && choose(2) == 0
            {
                let Some(before) = before else { continue };
                file = *before;
            }
            file.lose_power(choose);
            disk.files.insert(number, file);
        }
    }

    /// Lets everything fail after `steps` further steps, as if the power had gone there.
    pub fn fail_after(&self, steps: u64) {
        self.disk().steps_left = Some(steps);
    }

    /// What is lacking for another file from now on.
    pub fn set_lack(&self, lack: Option<Lack>) {
        self.disk().lack = lack;
    }

    /// Whether the next sync fails, as one does whose sectors cannot be written: a reader sees what was
    /// written, the system takes it for done, no later sync writes it, and a power cut loses it.
    pub fn fail_sync(&self, fails: bool) {
        self.disk().fails_sync = fails;
    }

    /// How often anything was made durable, to check that a turn costs one sync.
    pub fn syncs(&self) -> u64 {
        self.disk().syncs
    }

    /// The bytes of a file as a reader sees them.
    pub fn bytes(&self, file: u64) -> Vec<u8> {
        self.disk().files[&file].current.clone()
    }

    /// Changes the bytes of a file behind the back of whoever uses it, durably: bit rot, a torn or
    /// truncated file. The file must exist.
    pub fn alter(&self, file: u64, change: impl FnOnce(&mut Vec<u8>)) {
        let mut disk = self.disk();
        let file = disk.files.get_mut(&file).expect("the file exists");
        change(&mut file.current);
        file.durable = file.current.clone();
        file.pending.clear();
    }

    /// Removes a file behind the back of whoever uses it.
    pub fn remove(&self, file: u64) {
        self.disk().files.remove(&file).expect("the file exists");
    }

    /// Forgets everything: another disk was put in its place. Nobody may have it open.
    pub fn wipe(&self) {
        let mut disk = self.disk();
        assert!(!disk.locked, "a disk is taken out when nobody uses it");
        disk.files.clear();
    }

    /// The files that a reader sees.
    pub fn files(&self) -> Vec<u64> {
        self.disk().files.keys().copied().collect()
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().expect("no holder panics while it holds the disk")
    }
}

impl MemFile {
    fn lose_power(&mut self, choose: &mut dyn FnMut(u64) -> u64) {
        for (offset, bytes) in std::mem::take(&mut self.pending) {
            let mut at = 0;
            while at < bytes.len() {
                // Sectors are those of the disk, not of the write.
                let in_sector = SECTOR_BYTES - (offset + at) % SECTOR_BYTES;
                let length = in_sector.min(bytes.len() - at);
                let kept = match choose(3) {
                    0 => 0,
                    1 => length,
                    _ => usize::try_from(choose(length as u64)).expect("less than a sector"),
                };
                self.durable[offset + at..][..kept].copy_from_slice(&bytes[at..][..kept]);
                at += length;
            }
        }
        self.current = self.durable.clone();
    }

    fn sync(&mut self) {
        for (offset, bytes) in self.pending.drain(..) {
            self.durable[offset..][..bytes.len()].copy_from_slice(&bytes);
        }
    }
}

impl Opened {
    /// Runs one step on the disk, unless the power has failed.
    fn step<T>(
        &self,
        action: Action,
        file: u64,
        step: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> Result<T, RepoError> {
        let failed = |source| RepoError::of_file(action, file, source);
        let mut disk = self.disk.disk();
        if disk.generation != self.generation || disk.steps_left == Some(0) {
            return Err(failed(io::Error::other("the power failed")));
        }
        if let Some(left) = &mut disk.steps_left {
            *left -= 1;
        }
        step(&mut disk).map_err(failed)
    }
}

fn find(disk: &mut Disk, file: u64) -> io::Result<&mut MemFile> {
    disk.files.get_mut(&file).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn range(file: &MemFile, offset: u64, length: usize) -> io::Result<std::ops::Range<usize>> {
    let start = usize::try_from(offset).map_err(io::Error::other)?;
    let end = start.saturating_add(length);
    if end > file.current.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(start..end)
}

impl Repo for MemRepo {
    fn list(&mut self) -> Result<Vec<u64>, RepoError> {
        self.0.step(Action::List, 0, |disk| Ok(disk.files.keys().copied().collect()))
    }

    fn length(&mut self, file: u64) -> Result<u64, RepoError> {
        self.0.step(Action::Length, file, |disk| Ok(find(disk, file)?.current.len() as u64))
    }

    fn read(&mut self, file: u64, offset: u64, bytes: &mut [u8]) -> Result<(), RepoError> {
        self.0.step(Action::Read, file, |disk| {
            let file = find(disk, file)?;
            bytes.copy_from_slice(&file.current[range(file, offset, bytes.len())?]);
            Ok(())
        })
    }

    fn write(&mut self, file: u64, offset: u64, bytes: &[u8]) -> Result<(), RepoError> {
        self.0.step(Action::Write, file, |disk| {
            let file = find(disk, file)?;
            let range = range(file, offset, bytes.len())?;
            file.pending.push((range.start, bytes.to_vec()));
            file.current[range].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn begin_sync(&mut self, file: u64) -> Result<FileSync, RepoError> {
        let opened = self.0.clone();
        Ok(Box::new(move || {
            opened.step(Action::Sync, file, |disk| {
                disk.syncs += 1;
                if std::mem::take(&mut disk.fails_sync) {
                    find(disk, file)?.pending.clear();
                    return Err(Errno::IO.into());
                }
                find(disk, file)?.sync();
                Ok(())
            })
        }))
    }

    fn create(&mut self, file: u64, size: u64, header: &[u8]) -> Result<(), RepoError> {
        let mut current = vec![0; usize::try_from(size).expect("a file fits into memory")];
        current[..header.len()].copy_from_slice(header);
        // The temporary file is written and synced; a power cut here leaves nothing that counts.
        self.0.step(Action::Create, file, |disk| {
            match disk.lack {
                Some(Lack::Room) => return Err(io::ErrorKind::StorageFull.into()),
                Some(Lack::Descriptor) => return Err(Errno::MFILE.into()),
                None => {}
            }
            disk.syncs += 1;
            Ok(())
        })?;
        self.0.step(Action::Create, file, |disk| {
            let before = disk.files.remove(&file).map(Box::new);
            let durable = current.clone();
            let unnamed_over = Some(before);
            disk.files.insert(file, MemFile { current, durable, unnamed_over, pending: vec![] });
            Ok(())
        })?;
        self.0.step(Action::Create, file, |disk| {
            find(disk, file)?.unnamed_over = None;
            Ok(())
        })
    }

    fn remove(&mut self, file: u64) -> Result<(), RepoError> {
        self.0.step(Action::Remove, file, |disk| {
            disk.syncs += 1;
            disk.files.remove(&file).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }

    /// Does nothing: a model makes the file when it is needed, at no cost.
    fn create_ahead(&mut self, _file: u64, _size: u64, _header: &[u8]) {}

    fn wait_created(&mut self, _file: u64) -> Result<bool, RepoError> {
        Ok(false)
    }
}

impl Drop for MemRepo {
    fn drop(&mut self) {
        let mut disk = self.0.disk.disk();
        if disk.generation == self.0.generation {
            disk.locked = false;
        }
    }
}
