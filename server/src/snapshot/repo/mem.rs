//! Snapshots on a model of a disk, with the faults that its caller chooses.
//!
//! What was appended is lost in a power cut from a chosen byte after the last sync on. Clones are
//! the same disk.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use rustix::io::Errno;

use super::{Action, Aside, Repo, RepoError, Stage};

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub struct MemRepo(Arc<Mutex<Disk>>);

#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<(Stage, u64), File>,
    /// Bytes that can still be appended, if there is a bound.
    room: Option<u64>,
    /// Whether no file can be opened.
    no_descriptor: bool,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    synced: usize,
}

impl MemRepo {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cuts the power: of each file `choose(n)` picks how many of the `n - 1` bytes that were not
    /// synced are there afterwards.
    pub fn cut_power(&self, choose: &mut dyn FnMut(u64) -> u64) {
        for file in self.disk().files.values_mut() {
            let loose = (file.bytes.len() - file.synced) as u64;
            let kept = usize::try_from(choose(loose + 1)).expect("at most what there is");
            file.bytes.truncate(file.synced + kept);
            file.synced = file.bytes.len();
        }
    }

    /// Changes the bytes of a whole file behind the back of whoever uses it.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn alter(&self, index: u64, change: impl FnOnce(&mut Vec<u8>)) {
        let mut disk = self.disk();
        let file = disk.files.get_mut(&(Stage::Whole, index)).expect("the file exists");
        change(&mut file.bytes);
        file.synced = file.bytes.len();
    }

    /// Lets only so many more bytes be written, or as many as one likes.
    pub fn set_room(&self, room: Option<u64>) {
        self.disk().room = room;
    }

    /// Whether files can be opened from now on.
    pub fn set_descriptors(&self, some: bool) {
        self.disk().no_descriptor = !some;
    }

    /// Opens a file, if it can be.
    fn check_descriptors(&self, action: Action, index: u64) -> Result<(), RepoError> {
        if self.disk().no_descriptor {
            return Err(RepoError::new(action, format!("snapshot {index}"), Errno::MFILE.into()));
        }
        Ok(())
    }

    /// Indices of the whole files.
    #[must_use]
    pub fn whole(&self) -> Vec<u64> {
        let disk = self.disk();
        let whole = disk.files.keys().filter(|(stage, _)| *stage == Stage::Whole);
        whole.map(|(_, index)| *index).collect()
    }

    /// Forgets everything: another disk was put in its place.
    pub fn wipe(&self) {
        self.disk().files.clear();
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().expect("no holder panics while it holds the disk")
    }

    fn with<T>(
        &self,
        action: Action,
        stage: Stage,
        index: u64,
        work: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> Result<T, RepoError> {
        let mut disk = self.disk();
        let file = disk.files.get_mut(&(stage, index));
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
            .and_then(work)
            .map_err(|source| RepoError::new(action, format!("snapshot {index}"), source))
    }
}

impl Repo for MemRepo {
    fn list(&mut self, stage: Stage) -> Result<Vec<u64>, RepoError> {
        let disk = self.disk();
        Ok(disk.files.keys().filter(|(at, _)| *at == stage).map(|(_, index)| *index).collect())
    }

    fn length(&mut self, stage: Stage, index: u64) -> Result<u64, RepoError> {
        self.with(Action::Length, stage, index, |file| Ok(file.bytes.len() as u64))
    }

    fn read(
        &mut self,
        stage: Stage,
        index: u64,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), RepoError> {
        self.check_descriptors(Action::Read, index)?;
        self.with(Action::Read, stage, index, |file| {
            let start = usize::try_from(offset).map_err(io::Error::other)?;
            let range = file.bytes.get(start..start + bytes.len());
            bytes.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn begin(&mut self, stage: Stage, index: u64) -> Result<(), RepoError> {
        self.check_descriptors(Action::Create, index)?;
        self.disk().files.insert((stage, index), File::default());
        Ok(())
    }

    fn append(&mut self, stage: Stage, index: u64, bytes: &[u8]) -> Result<(), RepoError> {
        {
            let mut disk = self.disk();
            if let Some(room) = &mut disk.room {
                let Some(left) = room.checked_sub(bytes.len() as u64) else {
                    let full = io::ErrorKind::StorageFull.into();
                    let subject = format!("snapshot {index}");
                    return Err(RepoError::new(Action::Write, subject, full));
                };
                *room = left;
            }
        }
        self.with(Action::Write, stage, index, |file| {
            file.bytes.extend_from_slice(bytes);
            Ok(())
        })
    }

    fn sync(&mut self, stage: Stage, index: u64) -> Result<(), RepoError> {
        self.with(Action::Sync, stage, index, |file| {
            file.synced = file.bytes.len();
            Ok(())
        })
    }

    fn finish(&mut self, stage: Stage, index: u64) -> Result<(), RepoError> {
        self.sync(stage, index)?;
        let mut disk = self.disk();
        if stage != Stage::Evidence {
            let file = disk.files.remove(&(stage, index)).expect("it was just synced");
            disk.files.insert((Stage::Whole, index), file);
        }
        Ok(())
    }

    fn set_aside(&mut self, index: u64, _why: Aside) -> Result<(), RepoError> {
        self.remove(Stage::Whole, index)
    }

    fn remove(&mut self, stage: Stage, index: u64) -> Result<(), RepoError> {
        self.with(Action::Remove, stage, index, |_| Ok(()))?;
        self.disk().files.remove(&(stage, index));
        Ok(())
    }
}
