//! Snapshots in a folder of the file system.
//!
//! `0000000000000123.snapshot` is a whole one; `.writing` and `.fetching` follow the name of one that
//! is not, and `.damaged` that of one that was set aside, or
//! `.diverged`; the `.evidence` of a divergence has the number of a step. The folder needs no lock: it belongs to the replica that has the log locked.
//! Invariant: what has its final name is durable, with its name and the folder it is in.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::PathBuf,
};

use super::{Action, Aside, Repo, RepoError, Stage};
use crate::folder::{self as folders, sync as sync_folder};

/// A folder of snapshots.
#[derive(Debug)]
pub struct FsRepo {
    folder: PathBuf,
    /// The file that is appended to.
    open: Option<(Stage, u64, File)>,
}

impl FsRepo {
    /// Descriptors that it takes at most: a file that is written, one that is read, the folder.
    pub(crate) const DESCRIPTORS: u64 = 3;

    /// Opens a folder, and makes it if it is not there.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, RepoError> {
        let folder = folder.into();
        folders::make(&folder)
            .map_err(|source| RepoError::new(Action::Open, folder.display().to_string(), source))?;
        Ok(Self { folder, open: None })
    }

    /// Opens a folder to look at it.
    pub fn read_only(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), open: None }
    }

    fn path(&self, stage: Stage, index: u64) -> PathBuf {
        self.folder.join(name(stage, index))
    }

    fn file(&mut self, stage: Stage, index: u64) -> io::Result<&mut File> {
        let is_open =
            self.open.as_ref().is_some_and(|(at, open, _)| (*at, *open) == (stage, index));
        if !is_open {
            let file = OpenOptions::new().append(true).open(self.path(stage, index))?;
            self.open = Some((stage, index, file));
        }
        Ok(&mut self.open.as_mut().expect("it was just opened").2)
    }
}

fn name(stage: Stage, index: u64) -> String {
    let suffix = match stage {
        Stage::Writing => ".writing",
        Stage::Fetching => ".fetching",
        Stage::Whole => "",
        Stage::Evidence => ".evidence",
    };
    format!("{index:016}.snapshot{suffix}")
}

fn failed(action: Action, stage: Stage, index: u64) -> impl Fn(io::Error) -> RepoError {
    move |source| RepoError::new(action, format!("snapshot {}", name(stage, index)), source)
}

impl Repo for FsRepo {
    fn list(&mut self, stage: Stage) -> Result<Vec<u64>, RepoError> {
        let failed =
            |source| RepoError::new(Action::List, self.folder.display().to_string(), source);
        let mut indices = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let found = entry.map_err(failed)?.file_name();
            let index = found.to_str().and_then(|found| found.get(..16)?.parse::<u64>().ok());
            indices.extend(index.filter(|index| found == name(stage, *index).as_str()));
        }
        indices.sort_unstable();
        Ok(indices)
    }

    fn length(&mut self, stage: Stage, index: u64) -> Result<u64, RepoError> {
        let metadata = fs::metadata(self.path(stage, index));
        Ok(metadata.map_err(failed(Action::Length, stage, index))?.len())
    }

    fn read(
        &mut self,
        stage: Stage,
        index: u64,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), RepoError> {
        File::open(self.path(stage, index))
            .and_then(|file| file.read_exact_at(bytes, offset))
            .map_err(failed(Action::Read, stage, index))
    }

    fn begin(&mut self, stage: Stage, index: u64) -> Result<(), RepoError> {
        self.open = None;
        File::create(self.path(stage, index)).map_err(failed(Action::Create, stage, index))?;
        Ok(())
    }

    fn append(&mut self, stage: Stage, index: u64, bytes: &[u8]) -> Result<(), RepoError> {
        self.file(stage, index).and_then(|file| file.write_all(bytes)).map_err(failed(
            Action::Write,
            stage,
            index,
        ))
    }

    fn sync(&mut self, stage: Stage, index: u64) -> Result<(), RepoError> {
        self.file(stage, index).and_then(|file| file.sync_all()).map_err(failed(
            Action::Sync,
            stage,
            index,
        ))
    }

    fn finish(&mut self, stage: Stage, index: u64) -> Result<(), RepoError> {
        self.sync(stage, index)?;
        self.open = None;
        let named = match stage {
            Stage::Evidence => Ok(()),
            _ => fs::rename(self.path(stage, index), self.path(Stage::Whole, index)),
        };
        named.and_then(|()| sync_folder(&self.folder)).map_err(failed(
            Action::Create,
            Stage::Whole,
            index,
        ))
    }

    fn set_aside(&mut self, index: u64, why: Aside) -> Result<(), RepoError> {
        let whole = self.path(Stage::Whole, index);
        let mut aside = whole.clone().into_os_string();
        aside.push(match why {
            Aside::Damaged => ".damaged",
            Aside::Diverged => ".diverged",
        });
        fs::rename(whole, aside).and_then(|()| sync_folder(&self.folder)).map_err(failed(
            Action::Remove,
            Stage::Whole,
            index,
        ))
    }

    fn remove(&mut self, stage: Stage, index: u64) -> Result<(), RepoError> {
        self.open = None;
        fs::remove_file(self.path(stage, index))
            .and_then(|()| sync_folder(&self.folder))
            .map_err(failed(Action::Remove, stage, index))
    }
}
