//! A folder that fails as it is told.
//!
//! A plan, given by the caller, is asked before each operation and names the fault, if any. So a
//! simulation decides by its seed what fails, and a test by counting.
//! Not here: crashes, which [`MemDisk`](super::MemDisk) models.

use std::io;

use rustix::io::Errno;

use super::{Action, FileSync, Repo, RepoError};

/// What is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The kind of operation.
    pub action: Action,
    /// The file, or 0 where there is none.
    pub file: u64,
    /// Where in the file, or 0.
    pub offset: u64,
    /// How many bytes, or 0.
    pub length: u64,
}

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not.
    None,
    /// The system reports this and nothing happens.
    Error(io::ErrorKind),
    /// The system reports this number of its own and nothing happens.
    Errno(Errno),
    /// A write puts down only this many bytes and reports an error.
    Torn(u64),
    /// A write puts down, or a read returns, this bit of its bytes flipped, and reports success.
    /// The bit counts modulo the bits there are.
    FlipBit(u64),
    /// A write or sync does nothing and reports success: a disk that lies.
    Ignored,
}

/// Wraps a folder and fails as the plan says.
pub struct FaultyRepo<R> {
    inner: R,
    plan: Box<dyn FnMut(Operation) -> Fault + Send>,
}

impl<R: Repo> FaultyRepo<R> {
    /// Wraps `inner`; `plan` is asked before each operation.
    pub fn new(inner: R, plan: impl FnMut(Operation) -> Fault + Send + 'static) -> Self {
        Self { inner, plan: Box::new(plan) }
    }

    /// Asks the plan. A fault that only makes sense elsewhere is none here.
    fn fault(
        &mut self,
        action: Action,
        file: u64,
        offset: u64,
        length: u64,
    ) -> Result<Fault, RepoError> {
        match (self.plan)(Operation { action, file, offset, length }) {
            Fault::Error(kind) => Err(RepoError::of_file(action, file, kind.into())),
            Fault::Errno(errno) => Err(RepoError::of_file(action, file, errno.into())),
            other => Ok(other),
        }
    }
}

fn flip(bytes: &mut [u8], bit: u64) {
    if !bytes.is_empty() {
        let bit = bit % (bytes.len() as u64 * 8);
        bytes[usize::try_from(bit / 8).expect("within the slice")] ^= 1 << (bit % 8);
    }
}

impl<R: Repo> Repo for FaultyRepo<R> {
    fn list(&mut self) -> Result<Vec<u64>, RepoError> {
        self.fault(Action::List, 0, 0, 0)?;
        self.inner.list()
    }

    fn length(&mut self, file: u64) -> Result<u64, RepoError> {
        self.fault(Action::Length, file, 0, 0)?;
        self.inner.length(file)
    }

    fn read(&mut self, file: u64, offset: u64, bytes: &mut [u8]) -> Result<(), RepoError> {
        let fault = self.fault(Action::Read, file, offset, bytes.len() as u64)?;
        self.inner.read(file, offset, bytes)?;
        if let Fault::FlipBit(bit) = fault {
            flip(bytes, bit);
        }
        Ok(())
    }

    fn write(&mut self, file: u64, offset: u64, bytes: &[u8]) -> Result<(), RepoError> {
        match self.fault(Action::Write, file, offset, bytes.len() as u64)? {
            Fault::Torn(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
                self.inner.write(file, offset, &bytes[..length])?;
                Err(RepoError::of_file(Action::Write, file, io::ErrorKind::WriteZero.into()))
            }
            Fault::FlipBit(bit) => {
                let mut bytes = bytes.to_vec();
                flip(&mut bytes, bit);
                self.inner.write(file, offset, &bytes)
            }
            Fault::Ignored => Ok(()),
            Fault::None | Fault::Error(_) | Fault::Errno(_) => {
                self.inner.write(file, offset, bytes)
            }
        }
    }

    fn begin_sync(&mut self, file: u64) -> Result<FileSync, RepoError> {
        match self.fault(Action::Sync, file, 0, 0)? {
            Fault::Ignored => Ok(Box::new(|| Ok(()))),
            _ => self.inner.begin_sync(file),
        }
    }

    fn create(&mut self, file: u64, size: u64, header: &[u8]) -> Result<(), RepoError> {
        self.fault(Action::Create, file, 0, size)?;
        self.inner.create(file, size, header)
    }

    fn remove(&mut self, file: u64) -> Result<(), RepoError> {
        self.fault(Action::Remove, file, 0, 0)?;
        self.inner.remove(file)
    }

    /// Begins nothing, so that a fault of creation strikes where the file is needed.
    fn create_ahead(&mut self, _file: u64, _size: u64, _header: &[u8]) {}

    fn wait_created(&mut self, _file: u64) -> Result<bool, RepoError> {
        Ok(false)
    }
}
