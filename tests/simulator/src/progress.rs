//! How far a long run is, in a file, so that it can be stopped and gone on with.
//!
//! One JSON object: first and next seed, the seeds that failed, time and counts so far.
//! Invariants: the file is whole whenever it is there; it is gone on with only from the same first
//! seed. Not here: whether the code is the same. A seed means the same only with the same code, so a
//! run that is gone on with after a change is of both.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use crate::verdict::Counts;

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The first seed of all.
    pub first: u64,
    /// The next seed to run.
    pub next: u64,
    /// Seeds that failed.
    pub failed: Vec<u64>,
    /// Milliseconds that it took so far.
    pub milliseconds: u64,
    /// What happened so far.
    pub counts: Counts,
}

impl Progress {
    /// A run that has not begun.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self { first, next: first, ..Self::default() }
    }

    /// Reads a file, or begins anew if there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or is of another run.
    pub fn read(path: &Path, first: u64) -> io::Result<Self> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::new(first)),
            read => read?,
        };
        let object: Value = serde_json::from_slice(&bytes)?;
        let wrong = |what: &str| io::Error::other(format!("{}: {what}", path.display()));
        let number = |name: &str| object[name].as_u64().ok_or_else(|| wrong("no progress file"));
        if number("first_seed")? != first {
            return Err(wrong("it is of a run with another first seed"));
        }
        let failed = object["failed"].as_array().ok_or_else(|| wrong("no progress file"))?;
        let mut progress = Self {
            first,
            next: number("next_seed")?,
            failed: failed.iter().filter_map(Value::as_u64).collect(),
            milliseconds: number("milliseconds")?,
            counts: Counts::default(),
        };
        for (name, count) in object["counts"].as_object().into_iter().flatten() {
            let count = count.as_u64().unwrap_or(0);
            if !progress.counts.set(name, count) {
                return Err(wrong("it counts something that is not counted any more"));
            }
        }
        Ok(progress)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When that fails; the file is as it was then.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let counts: serde_json::Map<_, _> = self
            .counts
            .named()
            .into_iter()
            .map(|(name, count)| (name.into(), count.into()))
            .collect();
        let object = json!({
            "first_seed": self.first,
            "next_seed": self.next,
            "failed": self.failed,
            "milliseconds": self.milliseconds,
            "counts": counts,
        });
        let beside = path.with_extension("writing");
        fs::write(&beside, format!("{object}\n"))?;
        fs::rename(beside, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress.json");
        assert_eq!(Progress::read(&path, 7).unwrap(), Progress::new(7));
        let counts = Counts { frames: 3, ..Counts::default() };
        let progress = Progress { first: 7, next: 107, failed: vec![20], milliseconds: 5, counts };
        progress.write(&path).unwrap();
        assert_eq!(Progress::read(&path, 7).unwrap(), progress);
        assert!(Progress::read(&path, 8).is_err(), "it is of another run");
        fs::write(&path, "{}").unwrap();
        assert!(Progress::read(&path, 7).is_err());
    }
}
