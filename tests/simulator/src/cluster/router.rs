//! Which client is told what, on one replica.
//!
//! As the shell of the product does it: a session belongs to the newest connection that has used
//! it; effects for sessions that nobody here uses are dropped.

use std::collections::BTreeMap;

use gesmas::replica::ReadId;
use gesmas_machine::SessionId;

/// A client's connection: which client, and which of its connections.
pub(super) type Connection = (usize, u64);

/// What a wait in the core is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiting {
    Read {
        connection: Connection,
        correlation: u64,
    },
    /// When a keep-alive was asked, and the last event that its client has.
    Session {
        connection: Connection,
        session: SessionId,
        asked: u64,
        events: u64,
    },
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Router {
    sessions: BTreeMap<SessionId, Connection>,
    openings: BTreeMap<u128, Connection>,
    waiting: BTreeMap<ReadId, Waiting>,
    next_read: u64,
}

impl Router {
    /// A session is used through a connection.
    pub(super) fn attach(&mut self, session: SessionId, connection: Connection) {
        let known = self.sessions.entry(session).or_insert(connection);
        if known.0 != connection.0 || known.1 < connection.1 {
            *known = connection;
        }
    }

    /// The connection of a session.
    pub(super) fn of_session(&self, session: SessionId) -> Option<Connection> {
        self.sessions.get(&session).copied()
    }

    /// A session is over.
    pub(super) fn detach(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    /// Somebody opens a session.
    pub(super) fn open(&mut self, nonce: u128, connection: Connection) {
        self.openings.insert(nonce, connection);
    }

    /// Who opened a session.
    pub(super) fn take_opening(&mut self, nonce: u128) -> Option<Connection> {
        self.openings.remove(&nonce)
    }

    /// A name for a wait.
    pub(super) fn wait(&mut self, waiting: Waiting) -> ReadId {
        self.next_read += 1;
        let id = ReadId(self.next_read);
        self.waiting.insert(id, waiting);
        id
    }

    /// What a wait was for.
    pub(super) fn take_waiting(&mut self, id: ReadId) -> Option<Waiting> {
        self.waiting.remove(&id)
    }
}
