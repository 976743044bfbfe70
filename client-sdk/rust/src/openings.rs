//! How sessions come into the hub and leave it.
//!
//! Invariant: a session that nobody waits for and nobody holds is closed, so that dropped futures
//! leave nothing behind in the cluster.

use std::time::{Duration, Instant};

use gesmas_protocol::{SessionOpened, SessionRefused};
use tokio::sync::oneshot;

use crate::{
    command::{Opened, SessionPorts},
    failure::OpenError,
    hub::{Hub, Slot},
    session::{
        core::{SessionCore, SessionSettings},
        reads::passes,
    },
};

/// No timeout is taken for shorter, so that keep-alives leave room for anything else.
const TIMEOUT_MIN: Duration = Duration::from_millis(30);

impl Hub {
    /// Adds a session and gives its key.
    pub(crate) fn open(
        &mut self,
        settings: SessionSettings,
        nonce: u128,
        ports: Option<SessionPorts>,
    ) -> u64 {
        let key = self.next_correlation();
        let mut core = SessionCore::new(settings, key, nonce);
        if self.welcome.is_some() {
            core.handle_connected(self.window());
        }
        self.slots.insert(key, Slot { core, ports, timer: None, forgotten: false });
        self.touched.push(key);
        key
    }

    pub(crate) fn opened(&mut self, now: Instant, opened: SessionOpened) {
        let SessionOpened { correlation: key, session, timeout_ns } = opened;
        let timeout = Duration::from_nanos(timeout_ns).max(TIMEOUT_MIN);
        self.keys.insert(session, key);
        self.pacing.reset();
        self.with(key, |core| core.handle_opened(now, session, timeout));
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let opened = slot.ports.as_mut().and_then(|ports| ports.opened.take());
        if let Some(sender) = opened
            && sender.send(Ok(Opened { key, session, timeout })).is_err()
        {
            // Nobody waits for the session any more; left alone it would live on for ever.
            self.close(key, None);
        }
    }

    pub(crate) fn open_refused(&mut self, now: Instant, refused: SessionRefused) {
        let SessionRefused { correlation: key, refusal } = refused;
        if passes(&refusal) {
            self.reopenings.insert((now + self.pacing.pause(), key));
            return;
        }
        let Some(slot) = self.slots.remove(&key) else { return };
        match slot.ports.and_then(|ports| ports.opened) {
            Some(sender) => drop(sender.send(Err(OpenError::Refused(refusal)))),
            None => self.shipping_refused(now, &refusal),
        }
    }

    pub(crate) fn close(&mut self, session: u64, done: Option<oneshot::Sender<()>>) {
        let Some(slot) = self.slots.get_mut(&session) else { return };
        slot.core.close();
        slot.forgotten = true;
        if let (Some(id), Some(done), Some(_)) = (slot.core.id(), done, &self.welcome) {
            self.closing.insert(id, done);
        }
        self.touched.push(session);
    }

    /// Opens sessions again whose opening was refused for a while.
    pub(crate) fn reopen(&mut self, now: Instant) {
        let window = self.window();
        while let Some(&(time, key)) = self.reopenings.first()
            && time <= now
        {
            self.reopenings.pop_first();
            self.with(key, |core| core.handle_connected(window));
        }
    }
}
