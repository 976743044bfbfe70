//! Sessions, as the driver serves them: opening, attaching, keeping alive.
//!
//! Invariant: nobody is told that a session is over because this replica lags: it catches up with
//! everything acknowledged before it says so.

use gesmas_machine::{Command, Position, SessionId};
use gesmas_protocol::{self as protocol, ServerMessage};

use super::{
    convert,
    driver::{Driver, Waiting},
    input::ConnectionId,
};
use crate::replica::Question;

impl Driver {
    pub(super) fn open_session(&mut self, connection: ConnectionId, open: &protocol::OpenSession) {
        let Some(principal) = self.router.principal(connection) else {
            return;
        };
        let command = Command::OpenSession {
            nonce: open.nonce,
            principal: principal.into(),
            timeout: open.timeout_ns,
        };
        self.router.open(connection, open.nonce, open.correlation);
        if self.replica.handle_command(command).is_err() {
            self.router.take_opening(open.nonce);
            let refusal = protocol::Refusal::Busy;
            let message = protocol::SessionRefused { correlation: open.correlation, refusal };
            self.router.send(connection, ServerMessage::SessionRefused(message));
        }
    }

    pub(super) fn attach_session(
        &mut self,
        connection: ConnectionId,
        attach: protocol::AttachSession,
    ) {
        let session = SessionId(attach.session);
        if self.is_of_another_history(&attach) {
            let reason = protocol::OverReason::Restored;
            let over = protocol::SessionOver { session: session.0, reason };
            return self.router.send(connection, ServerMessage::SessionOver(over));
        }
        self.router.attach(connection, session);
        self.replica.handle_alive(session);
        let acknowledged = convert::acknowledged(attach.acknowledged);
        if acknowledged != gesmas_machine::Acknowledged::default() {
            let _full = self.replica.handle_command(Command::Acknowledge { session, acknowledged });
        }
        self.answer_attach(connection, session);
    }

    /// Whether a client comes from before a restore, with answers to requests that this history does not
    /// have: what it asks for next would follow them, and could never be admitted. In the history of now
    /// it was told nothing yet, so that it makes no difference how far this replica is.
    fn is_of_another_history(&self, attach: &protocol::AttachSession) -> bool {
        let machine = self.replica.machine();
        let admitted = machine.last_admitted(SessionId(attach.session));
        convert::seen(attach.seen).epoch < machine.position().epoch
            && admitted.is_some_and(|admitted| admitted < attach.answered)
    }

    /// Answers for a session that is known here, or waits until it would be.
    fn answer_attach(&mut self, connection: ConnectionId, session: SessionId) {
        match self.replica.machine().last_admitted(session) {
            Some(last_admitted) => self.session_attached(connection, session, last_admitted),
            None => self.wait_for(Waiting::Session { connection, session }),
        }
    }

    fn session_attached(&mut self, connection: ConnectionId, session: SessionId, last: u64) {
        let attached = protocol::SessionAttached { session: session.0, last_admitted: last };
        self.router.send(connection, ServerMessage::SessionAttached(attached));
        // What was admitted is not asked for again: its reply comes now, or when there is one.
        let stored = self.replica.machine().stored_replies(session);
        let replies: Vec<_> = stored
            .map(|(number, position, outcome)| protocol::Reply {
                session: session.0,
                number,
                position: convert::position(position),
                outcome: convert::outcome(outcome.clone()),
            })
            .collect();
        for reply in replies {
            self.router.send(connection, ServerMessage::Reply(reply));
        }
        let pending = self.replica.machine().pending_events(session, 0);
        if let Some((from, to)) = pending.gap {
            let gap = protocol::EventGap { session: session.0, from, to };
            self.router.send(connection, ServerMessage::EventGap(gap));
        }
        for (number, position, payload) in pending.events {
            let event = protocol::Event {
                session: session.0,
                number,
                position: convert::position(position),
                payload: payload.into(),
            };
            self.router.send(connection, ServerMessage::Event(event));
        }
    }

    /// A session may be unknown here only because this replica lags: it catches up first.
    fn wait_for(&mut self, waiting: Waiting) {
        let alive = match waiting {
            Waiting::Session { session, .. } | Waiting::Alive { session, .. } => Some(session),
            Waiting::Read { .. } | Waiting::Piece { .. } => None,
        };
        let question = Question { read: None, seen: Position::default(), stale: false, alive };
        let id = self.next_read();
        if self.replica.handle_read(id, question).is_ok() {
            self.waiting.insert(id, waiting);
        } else if let Waiting::Session { session, .. } = waiting {
            // Nobody will say whether it exists; its client comes again.
            self.router.detach(session);
        }
    }

    /// A client closes a session, and waits to hear that it is over: of one that is unknown here, once
    /// this replica has caught up. A number alone keeps no place in the router.
    pub(super) fn attach_to_close(&mut self, connection: ConnectionId, session: SessionId) {
        self.router.attach(connection, session);
        if self.replica.machine().last_admitted(session).is_none() {
            self.wait_for(Waiting::Session { connection, session });
        }
    }

    /// Answered when the leader has heard of it: the client counts its lease from when it asked.
    pub(super) fn keep_alive(&mut self, connection: ConnectionId, keep: &protocol::KeepAlive) {
        let session = SessionId(keep.session);
        self.wait_for(Waiting::Alive { connection, session, correlation: keep.correlation });
    }

    pub(super) fn alive(&mut self, connection: ConnectionId, session: SessionId, correlation: u64) {
        match self.replica.machine().last_admitted(session) {
            Some(last_admitted) => {
                let alive = protocol::Alive { session: session.0, correlation, last_admitted };
                self.router.send(connection, ServerMessage::Alive(alive));
            }
            None => self.session_known(connection, session),
        }
    }

    /// This replica has caught up since a client came with an unknown session.
    pub(super) fn session_known(&mut self, connection: ConnectionId, session: SessionId) {
        if let Some(last) = self.replica.machine().last_admitted(session) {
            return self.session_attached(connection, session, last);
        }
        let reason = protocol::OverReason::Unknown;
        let over = protocol::SessionOver { session: session.0, reason };
        self.router.send(connection, ServerMessage::SessionOver(over));
        self.router.detach(session);
    }

    /// Tells whoever waits for this opening. A nonce is one client's, so the session is its own even
    /// when a replica that catches up comes upon it late: if it is over by now, the client learns
    /// that next, when the effect of its end is routed, and opens another under a new nonce. To
    /// ignore it would leave the client waiting: the opening that it sent again is in no queue any
    /// more once the older one was seen in the log.
    pub(super) fn session_opened(
        &mut self,
        nonce: u128,
        session: Result<SessionId, gesmas_machine::Refusal>,
    ) {
        for (connection, correlation) in self.router.take_opening(nonce) {
            let message = match &session {
                Ok(id) => {
                    self.router.attach(connection, *id);
                    let views = self.replica.machine().session_timeout(*id);
                    ServerMessage::SessionOpened(protocol::SessionOpened {
                        correlation,
                        session: id.0,
                        timeout_ns: views.unwrap_or(0),
                    })
                }
                Err(refusal) => ServerMessage::SessionRefused(protocol::SessionRefused {
                    correlation,
                    refusal: convert::refusal(refusal.clone()),
                }),
            };
            self.router.send(connection, message);
        }
    }
}
