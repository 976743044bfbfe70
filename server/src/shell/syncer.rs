//! The thread that makes the log durable while the driver does other things.
//!
//! Handing over costs two wake-ups, so the driver does it itself when there is nothing else to do.
//! Invariant: one sync at a time. The log itself stays with the driver.

use std::sync::mpsc::{Sender, channel};

use tokio::sync::oneshot;

use crate::log::{Synced, Syncing};

/// A sync that is to be done, and who waits for it.
type Sync = (Syncing, oneshot::Sender<Synced>);

/// See the file's head.
pub(super) struct Syncer(Sender<Sync>);

impl Syncer {
    /// Starts the thread, which ends with the driver.
    pub(super) fn start() -> std::io::Result<Self> {
        let (sender, syncs) = channel::<Sync>();
        std::thread::Builder::new().name("log-sync".into()).spawn(move || {
            for (syncing, done) in syncs {
                // Should the driver be gone, nobody waits.
                let _gone = done.send(syncing.run());
            }
        })?;
        Ok(Self(sender))
    }

    /// Begins to make the log durable.
    pub(super) fn begin(&self, syncing: Syncing) -> oneshot::Receiver<Synced> {
        let (sender, done) = oneshot::channel();
        // The thread ends only when the driver does, or by a panic, which whoever waits hears of.
        let _gone = self.0.send((syncing, sender));
        done
    }
}
