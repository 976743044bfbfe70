//! Which client of this replica gets what.
//!
//! Every replica has every effect; the router sends those of sessions that are attached here. A
//! session is where its client attached it last.
//! What is sent in a turn is written at its end, in one piece for each connection.
//! Invariants: nothing waits without bound: a client whose outbox is full is cut off, and what it
//! missed is stored in its session; a connection that has no session and asks for nothing ends after a
//! while.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_machine::SessionId;
use gesmas_protocol::{self as protocol, ServerMessage};

use super::{clients, input::ConnectionId, outbox::Outbox};

struct Connection {
    principal: String,
    outbox: Outbox,
    /// Whether something is to be written.
    dirty: bool,
    sessions: BTreeSet<SessionId>,
    /// When its client said something last, monotonic nanoseconds.
    heard: u64,
    /// Questions of it that have no answer yet.
    asked: u64,
}

/// A connection whose questions are not answered may be silent for so many times as long as another.
const PATIENCE_FOR_ANSWERS: u64 = 10;
/// Time between two looks for idle connections, nanoseconds.
const LOOK: u64 = 100_000_000;

/// Connections and the sessions attached to them.
#[derive(Default)]
pub(super) struct Router {
    connections: BTreeMap<ConnectionId, Connection>,
    sessions: BTreeMap<SessionId, ConnectionId>,
    /// Sessions that are being opened, by nonce: who asked, and as what.
    opening: BTreeMap<u128, Vec<(ConnectionId, u64)>>,
    /// Connections to which something is to be written.
    dirty: Vec<ConnectionId>,
    sent: u64,
    cut_off: u64,
    ended_idle: u64,
    /// When idle connections were looked for last.
    looked: u64,
}

impl Router {
    pub(super) fn connect(
        &mut self,
        id: ConnectionId,
        principal: String,
        outbox: Outbox,
        now: u64,
    ) {
        let (dirty, sessions) = (false, BTreeSet::new());
        let connection = Connection { principal, outbox, dirty, sessions, heard: now, asked: 0 };
        self.connections.insert(id, connection);
    }

    /// A client said something: whether it waits for an answer that is no session's.
    pub(super) fn heard(&mut self, id: ConnectionId, now: u64, asks: bool) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.heard = now;
            connection.asked += u64::from(asks);
        }
    }

    /// Ends the connections that have been idle for so long. Those of sessions stay: a session whose
    /// client is gone expires.
    pub(super) fn end_idle(&mut self, now: u64, idle: u64) {
        if now.saturating_sub(self.looked) < LOOK.min(idle) {
            return;
        }
        self.looked = now;
        let is_idle = |connection: &Connection| {
            let times = if connection.asked > 0 { PATIENCE_FOR_ANSWERS } else { 1 };
            let silent = now.saturating_sub(connection.heard);
            connection.sessions.is_empty() && silent >= idle.saturating_mul(times)
        };
        let found = self.connections.iter().filter(|(_, connection)| is_idle(connection));
        let found: Vec<_> = found.map(|(id, _)| *id).collect();
        for id in found {
            self.ended_idle += 1;
            self.send_away(id, "the connection was idle");
        }
    }

    pub(super) fn disconnect(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        for session in connection.sessions {
            self.sessions.remove(&session);
        }
        for asked in self.opening.values_mut() {
            asked.retain(|(connection, _)| *connection != id);
        }
        self.opening.retain(|_, asked| !asked.is_empty());
    }

    /// Who is at the other end of a connection.
    pub(super) fn principal(&self, id: ConnectionId) -> Option<&str> {
        self.connections.get(&id).map(|connection| connection.principal.as_str())
    }

    /// Notes that a session's client is at this connection.
    pub(super) fn attach(&mut self, id: ConnectionId, session: SessionId) {
        if self.sessions.get(&session) == Some(&id) {
            return;
        }
        self.detach(session);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.sessions.insert(session);
            self.sessions.insert(session, id);
        }
    }

    /// Forgets where a session's client is.
    pub(super) fn detach(&mut self, session: SessionId) {
        let at = self.sessions.remove(&session);
        if let Some(connection) = at.and_then(|id| self.connections.get_mut(&id)) {
            connection.sessions.remove(&session);
        }
    }

    /// Notes who waits for a session to open.
    pub(super) fn open(&mut self, id: ConnectionId, nonce: u128, correlation: u64) {
        let asked = self.opening.entry(nonce).or_default();
        asked.retain(|(connection, _)| *connection != id);
        asked.push((id, correlation));
    }

    /// Who waits for a session to open.
    pub(super) fn take_opening(&mut self, nonce: u128) -> Vec<(ConnectionId, u64)> {
        self.opening.remove(&nonce).unwrap_or_default()
    }

    /// Sends to the client of a session, if it is here.
    pub(super) fn send_to_session(&mut self, session: SessionId, message: ServerMessage) {
        if let Some(id) = self.sessions.get(&session).copied() {
            self.send(id, message);
        }
    }

    /// Whether a session's client is here.
    pub(super) fn has_session(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Sends to a connection; one that is full is cut off.
    pub(super) fn send(&mut self, id: ConnectionId, message: ServerMessage) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if matches!(message, ServerMessage::ReadReply(_) | ServerMessage::AdminAnswer(_)) {
            connection.asked = connection.asked.saturating_sub(1);
        }
        if connection.outbox.add(|bytes| clients::append(&message, bytes)).is_ok() {
            self.sent += 1;
            if !std::mem::replace(&mut connection.dirty, true) {
                self.dirty.push(id);
            }
        } else {
            self.cut_off += 1;
            self.disconnect(id);
        }
    }

    /// Writes what was sent since the last time.
    pub(super) fn flush(&mut self) {
        for id in self.dirty.drain(..) {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.outbox.flush();
                connection.dirty = false;
            }
        }
    }

    /// Sends everybody away, to come back or to go elsewhere.
    pub(super) fn say_goodbye(&mut self, reason: &str) {
        let ids: Vec<_> = self.connections.keys().copied().collect();
        for id in ids {
            self.send_away(id, reason);
        }
    }

    /// Sends one away.
    pub(super) fn send_away(&mut self, id: ConnectionId, reason: &str) {
        let reason = reason.into();
        self.send(id, ServerMessage::GoingAway(protocol::GoingAway { reason }));
        self.disconnect(id);
    }

    /// Counts for operators.
    pub(super) fn counts(&self) -> [(&'static str, u64); 5] {
        [
            ("connections", self.connections.len() as u64),
            ("sessions_attached", self.sessions.len() as u64),
            ("messages_sent", self.sent),
            ("clients_cut_off", self.cut_off),
            ("clients_ended_idle", self.ended_idle),
        ]
    }
}
