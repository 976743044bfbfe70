//! Progress bars of commands that read or write much.
//!
//! They go to stderr when that is a terminal, and nowhere with `--json`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::Output;
use crate::{log, snapshot};

/// A bar over so many bytes.
pub(super) fn bytes(output: Output, what: &'static str, total: u64) -> ProgressBar {
    if output.json {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{msg:>10} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
    );
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    bar.with_style(style.expect("the template is good")).with_message(what)
}

/// Files that tell a bar how many bytes are read and written.
pub(super) struct Observed<R> {
    files: R,
    bar: ProgressBar,
}

impl<R> Observed<R> {
    pub(super) fn new(files: R, bar: &ProgressBar) -> Self {
        Self { files, bar: bar.clone() }
    }
}

impl<R: snapshot::repo::Repo> snapshot::repo::Repo for Observed<R> {
    fn list(
        &mut self,
        stage: snapshot::repo::Stage,
    ) -> Result<Vec<u64>, snapshot::repo::RepoError> {
        self.files.list(stage)
    }

    fn length(
        &mut self,
        stage: snapshot::repo::Stage,
        index: u64,
    ) -> Result<u64, snapshot::repo::RepoError> {
        self.files.length(stage, index)
    }

    fn read(
        &mut self,
        stage: snapshot::repo::Stage,
        index: u64,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), snapshot::repo::RepoError> {
        self.files.read(stage, index, offset, bytes)?;
        self.bar.inc(bytes.len() as u64);
        Ok(())
    }

    fn begin(
        &mut self,
        stage: snapshot::repo::Stage,
        index: u64,
    ) -> Result<(), snapshot::repo::RepoError> {
        self.files.begin(stage, index)
    }

    fn append(
        &mut self,
        stage: snapshot::repo::Stage,
        index: u64,
        bytes: &[u8],
    ) -> Result<(), snapshot::repo::RepoError> {
        self.files.append(stage, index, bytes)?;
        self.bar.inc(bytes.len() as u64);
        Ok(())
    }

    fn sync(
        &mut self,
        stage: snapshot::repo::Stage,
        index: u64,
    ) -> Result<(), snapshot::repo::RepoError> {
        self.files.sync(stage, index)
    }

    fn finish(
        &mut self,
        stage: snapshot::repo::Stage,
        index: u64,
    ) -> Result<(), snapshot::repo::RepoError> {
        self.files.finish(stage, index)
    }

    fn set_aside(
        &mut self,
        index: u64,
        why: snapshot::repo::Aside,
    ) -> Result<(), snapshot::repo::RepoError> {
        self.files.set_aside(index, why)
    }

    fn remove(
        &mut self,
        stage: snapshot::repo::Stage,
        index: u64,
    ) -> Result<(), snapshot::repo::RepoError> {
        self.files.remove(stage, index)
    }
}

impl<R: log::repo::Repo> log::repo::Repo for Observed<R> {
    fn list(&mut self) -> Result<Vec<u64>, log::repo::RepoError> {
        self.files.list()
    }

    fn length(&mut self, file: u64) -> Result<u64, log::repo::RepoError> {
        self.files.length(file)
    }

    fn read(
        &mut self,
        file: u64,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), log::repo::RepoError> {
        self.files.read(file, offset, bytes)?;
        self.bar.inc(bytes.len() as u64);
        Ok(())
    }

    fn write(&mut self, file: u64, offset: u64, bytes: &[u8]) -> Result<(), log::repo::RepoError> {
        self.files.write(file, offset, bytes)
    }

    fn begin_sync(&mut self, file: u64) -> Result<log::repo::FileSync, log::repo::RepoError> {
        self.files.begin_sync(file)
    }

    fn create(&mut self, file: u64, size: u64, header: &[u8]) -> Result<(), log::repo::RepoError> {
        self.files.create(file, size, header)
    }

    fn create_ahead(&mut self, file: u64, size: u64, header: &[u8]) {
        self.files.create_ahead(file, size, header);
    }

    fn remove(&mut self, file: u64) -> Result<(), log::repo::RepoError> {
        self.files.remove(file)
    }

    fn wait_created(&mut self, file: u64) -> Result<bool, log::repo::RepoError> {
        self.files.wait_created(file)
    }
}
