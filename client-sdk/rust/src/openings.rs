//! How sessions come into the hub and leave it.
//!
//! Invariant: a session that nobody waits for and nobody holds is closed, so that dropped futures
//! leave nothing behind in the cluster.

use std::{sync::Arc, time::Duration};

use gesmas_protocol::{OverReason, SessionAttached, SessionOpened, SessionRefused};
use tokio::sync::oneshot;

use crate::{
    clock::Moment,
    command::{Opened, SessionPorts},
    events::EventQueue,
    failure::OpenError,
    hub::{Hub, Slot},
    session::{
        core::SessionCore,
        reads::passes,
        settings::{Role, SessionSettings},
    },
};

impl Hub {
    /// Adds a session and gives its key.
    pub(crate) fn open(
        &mut self,
        settings: SessionSettings,
        nonce: u128,
        ports: Option<SessionPorts>,
    ) -> u64 {
        let key = self.next_correlation();
        let role = settings.role;
        let mut core = SessionCore::new(settings, key, nonce);
        if self.welcome.is_some() {
            core.handle_connected(self.window());
        }
        if let Role::Guest { session } = role {
            self.name(session, key);
        }
        self.slots.insert(key, Slot { core, ports, timer: None, forgotten: false });
        self.touched.push(key);
        key
    }

    /// A session has one handle in a client: a newer one takes the place of an older.
    fn name(&mut self, session: u64, key: u64) {
        if let Some(older) = self.keys.insert(session, key).filter(|older| *older != key) {
            self.slots.remove(&older);
        }
    }

    /// A session is attached; whoever waits for that is told.
    pub(crate) fn attached(&mut self, now: Moment, attached: SessionAttached) {
        let SessionAttached { session, last_admitted } = attached;
        let Some(&key) = self.keys.get(&session) else { return };
        self.with(key, |core| core.handle_attached(now, last_admitted));
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let timeout = slot.core.timeout();
        let waiting = slot.ports.as_mut().and_then(|ports| ports.opened.take());
        if let Some(sender) = waiting
            && sender.send(Ok(Opened { key, session, timeout })).is_err()
        {
            self.close(now, key, true, None);
        }
    }

    /// The server says that a session is over.
    pub(crate) fn over(&mut self, session: u64, reason: OverReason) {
        let Some(&key) = self.keys.get(&session) else { return };
        let slot = self.slots.get_mut(&key);
        let waiting = slot.and_then(|slot| slot.ports.as_mut()?.opened.take());
        if let Some(sender) = waiting {
            drop(sender.send(Err(OpenError::Over(reason))));
        }
        self.with(key, |core| core.handle_over(reason));
    }

    /// Sends the events of a session to another queue, from a number on.
    pub(crate) fn replay(&mut self, now: Moment, key: u64, after: u64, queue: Arc<EventQueue>) {
        let ports = self.slots.get_mut(&key).and_then(|slot| slot.ports.as_mut());
        let Some(ports) = ports else { return queue.end() };
        std::mem::replace(&mut ports.events, queue).end();
        self.with(key, |core| core.replay(now, after));
    }

    pub(crate) fn opened(&mut self, now: Moment, opened: SessionOpened) {
        let SessionOpened { correlation: key, session, timeout_ns } = opened;
        let timeout = Duration::from_nanos(timeout_ns);
        self.pacing.reset();
        let opener = |slot: &Slot| slot.core.role() == Role::Opener;
        if self.slots.get(&key).is_some_and(opener) {
            let ports = self.slots.remove(&key).and_then(|slot| slot.ports);
            let opened = ports.and_then(|ports| ports.opened);
            opened.map(|sender| sender.send(Ok(Opened { key, session, timeout })));
            return;
        }
        self.name(session, key);
        self.with(key, |core| core.handle_opened(now, session, timeout));
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let opened = slot.ports.as_mut().and_then(|ports| ports.opened.take());
        if let Some(sender) = opened
            && sender.send(Ok(Opened { key, session, timeout })).is_err()
        {
            // Nobody waits for the session any more; left alone it would live on for ever.
            let leave = slot.core.role() != Role::Owner;
            self.close(now, key, leave, None);
        }
    }

    pub(crate) fn open_refused(&mut self, now: Moment, refused: SessionRefused) {
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

    pub(crate) fn close(
        &mut self,
        now: Moment,
        session: u64,
        leave: bool,
        done: Option<oneshot::Sender<()>>,
    ) {
        let Some(slot) = self.slots.get_mut(&session) else { return };
        if leave {
            if self.welcome.is_some() {
                // What was asked for before leaves before, what gives something back above all.
                slot.core.poll_transmit(now, &mut |message| self.unsent.push(message.clone()));
            }
            slot.core.leave();
        } else {
            slot.core.close();
        }
        slot.forgotten = true;
        if let (Some(id), Some(done), Some(_)) = (slot.core.id(), done, &self.welcome) {
            self.closing.insert(id, done);
        }
        self.touched.push(session);
    }

    /// Opens sessions again whose opening was refused for a while.
    pub(crate) fn reopen(&mut self, now: Moment) {
        let window = self.window();
        while let Some(&(time, key)) = self.reopenings.first()
            && time <= now
        {
            self.reopenings.pop_first();
            self.with(key, |core| core.handle_connected(window));
        }
    }
}
