//! The keeper of snapshots: a thread that does the core's jobs with their files.
//!
//! It never holds up the driver: jobs wait in a queue, which is short by the core's own rules (one
//! write, one fetch, one piece for each peer at a time).
//! Invariant: should it panic, the driver hears of it and stops the replica.

use std::sync::mpsc::{Sender, channel};

use tokio::sync::mpsc;

use super::input::Input;
use crate::snapshot::{Job, Worker};

/// What the driver hands jobs to.
pub(super) struct Keeper(Sender<Job>);

impl Keeper {
    /// Starts the keeper's thread, which ends with the driver.
    pub(super) fn start(mut worker: Worker, done: mpsc::Sender<Input>) -> std::io::Result<Self> {
        let (sender, jobs) = channel();
        std::thread::Builder::new().name("snapshots".into()).spawn(move || {
            let _guard = Guard(done.clone());
            for job in jobs {
                let end = worker.work(job);
                if done.blocking_send(Input::SnapshotDone(end)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self(sender))
    }

    /// Adds a job.
    pub(super) fn add(&self, job: Job) {
        // The thread ends only when the driver does.
        let _gone = self.0.send(job);
    }
}

/// Tells the driver should the thread panic: it would wait for the end of a job for ever.
struct Guard(mpsc::Sender<Input>);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Should the driver be gone, nobody waits.
            let _gone = self.0.blocking_send(Input::KeeperBroke);
        }
    }
}
