//! The thread that makes the log durable while the driver does other things.
//!
//! Handing over costs two wake-ups, so the driver does it itself when there is nothing else to do.
//! Invariant: one sync at a time, and nobody else touches the log meanwhile.

use std::sync::mpsc::{Sender, channel};

use tokio::sync::oneshot;

use crate::{
    log::LogError,
    paxos::{self, SharedLog},
};

/// A sync that is to be done, and who waits for it.
type Sync = (SharedLog, oneshot::Sender<Result<(), LogError>>);

/// See the file's head.
pub(super) struct Syncer(Sender<Sync>);

impl Syncer {
    /// Starts the thread, which ends with the driver.
    pub(super) fn start() -> std::io::Result<Self> {
        let (sender, syncs) = channel::<Sync>();
        std::thread::Builder::new().name("log-sync".into()).spawn(move || {
            for (log, done) in syncs {
                // Should the driver be gone, nobody waits.
                let _gone = done.send(paxos::sync(&log));
            }
        })?;
        Ok(Self(sender))
    }

    /// Begins to make the log durable.
    pub(super) fn begin(&self, log: SharedLog) -> oneshot::Receiver<Result<(), LogError>> {
        let (sender, done) = oneshot::channel();
        // The thread ends only when the driver does, or by a panic, which whoever waits hears of.
        let _gone = self.0.send((log, sender));
        done
    }
}
