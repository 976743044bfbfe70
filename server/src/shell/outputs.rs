//! What comes out of the core: effects for the clients that are here, ends of reads, code to compile.

use gesmas_machine::{Command, Effect, Outcome, Position, Refusal, SessionId};
use gesmas_protocol::{self as protocol, AdminError, AdminReply, ServerMessage};

use super::{
    convert,
    driver::{Driver, Waiting},
    errors,
    input::ConnectionId,
    questions::Question,
};
use crate::replica::{Output, ReadId};

impl Driver {
    pub(super) fn route_outputs(&mut self) {
        while let Some(output) = self.replica.poll_output() {
            match output {
                Output::Effect(effect) => self.route_effect(effect),
                Output::Read { id, result } => self.read_done(id, result),
                Output::NotSeen { id } => self.read_refused(id, self.not_seen()),
                Output::Piece { id, result } => self.piece_read(id, result),
                // Replies and events of the time between were never put out here: whoever comes back
                // gets what its session holds.
                Output::Replaced => {
                    self.router.say_goodbye("the replica caught up by a snapshot");
                    self.end_spans();
                }
                Output::CaughtUp { id } => match self.waiting.remove(&id) {
                    Some(Waiting::Session { connection, session }) => {
                        self.session_known(connection, session);
                    }
                    Some(Waiting::Alive { connection, session, correlation }) => {
                        self.alive(connection, session, correlation);
                    }
                    Some(Waiting::Read { .. } | Waiting::Piece { .. }) => {}
                    None => {
                        if let Some(question) = self.questions.take(id) {
                            let Question { connection, correlation, request } = question;
                            self.answer_question(connection, correlation, request);
                        }
                    }
                },
            }
        }
    }

    fn read_done(&mut self, id: ReadId, result: Result<Outcome, Refusal>) {
        let Some(Waiting::Read { connection, correlation }) = self.waiting.remove(&id) else {
            return;
        };
        let read = id;
        let position = self.position();
        let (id, result) = match result {
            Ok(Ok(value)) => (None, Ok(value.into())),
            Ok(Err(error)) => {
                let error = convert::call_error(error);
                let id = errors::log_read(&error, correlation);
                (id, Err(protocol::ReadError::Failed(error)))
            }
            Err(refusal) => {
                if let Refusal::MigrationPending { object } = &refusal {
                    // The read comes again, and asks for this again if there is no room for it now.
                    let object = object.clone();
                    let _busy = self.replica.handle_command(Command::Migrate { object });
                }
                let refusal = self.refusal(refusal);
                return self.refuse_read(read, connection, correlation, refusal);
            }
        };
        if let Some(spans) = &mut self.spans {
            spans.end_read(read, position.step, result.as_ref().err(), id);
        }
        let reply = protocol::ReadReply { correlation, position, result, id };
        self.router.send(connection, ServerMessage::ReadReply(reply));
    }

    fn read_refused(&mut self, id: ReadId, refusal: protocol::Refusal) {
        if let Some(Waiting::Read { connection, correlation }) = self.waiting.remove(&id) {
            self.refuse_read(id, connection, correlation, refusal);
        }
    }

    /// Turns a read away.
    pub(super) fn refuse_read(
        &mut self,
        read: ReadId,
        connection: ConnectionId,
        correlation: u64,
        refusal: protocol::Refusal,
    ) {
        let position = self.position();
        let id = errors::log_refusal(&refusal, 0, correlation);
        let refused = protocol::ReadError::Refused(refusal);
        if let Some(spans) = &mut self.spans {
            spans.end_read(read, position.step, Some(&refused), id);
        }
        let result = Err(refused);
        let reply = protocol::ReadReply { correlation, position, result, id };
        self.router.send(connection, ServerMessage::ReadReply(reply));
    }

    fn piece_read(&mut self, id: ReadId, result: Result<(bytes::Bytes, u64), String>) {
        let Some(Waiting::Piece { connection, correlation }) = self.waiting.remove(&id) else {
            return;
        };
        let result = match result {
            Ok((bytes, total)) => Ok(AdminReply::SnapshotPiece { total, bytes }),
            Err(message) => Err(AdminError::Unavailable { message }),
        };
        let answer = protocol::AdminAnswer { correlation, result };
        self.router.send(connection, ServerMessage::AdminAnswer(answer));
    }

    fn route_effect(&mut self, effect: Effect) {
        match effect {
            Effect::SessionOpened { nonce, session } => self.session_opened(nonce, session),
            Effect::SessionOver { session, reason } => {
                let reason = convert::session_end(reason);
                let over = protocol::SessionOver { session: session.0, reason };
                self.router.send_to_session(session, ServerMessage::SessionOver(over));
                self.router.detach(session);
                if let Some(spans) = &mut self.spans {
                    spans.end_session(session);
                }
            }
            Effect::Reply { session, number, position, outcome } => {
                self.route_reply(session, number, position, outcome);
            }
            Effect::Refused { session, number, refusal } => {
                let known = self.router.has_session(session);
                let refusal = if known { self.refusal(refusal) } else { convert::refusal(refusal) };
                if let Some(spans) = &mut self.spans {
                    spans.refuse_call(session.0, number, &refusal);
                }
                let id = known.then(|| errors::log_refusal(&refusal, session.0, number)).flatten();
                let gone = refusal == protocol::Refusal::SessionUnknown;
                let refused = protocol::Refused { session: session.0, number, refusal, id };
                self.router.send_to_session(session, ServerMessage::Refused(refused));
                if gone {
                    // Whoever made up the number has no place here for it.
                    self.router.detach(session);
                }
            }
            Effect::Event { session, number, position, payload } => {
                let event = protocol::Event {
                    session: session.0,
                    number,
                    position: convert::position(position),
                    payload: payload.into(),
                };
                self.router.send_to_session(session, ServerMessage::Event(event));
            }
            Effect::Compile { code, .. } => {
                if let Some(module) = self.replica.machine().module_of(code) {
                    self.compile(code, module);
                }
            }
            // The core's own affair.
            Effect::BatchVoid
            | Effect::Checkpoint { .. }
            | Effect::Agreed { .. }
            | Effect::VotedOtherwise { .. }
            | Effect::NoAgreement { .. } => {}
            Effect::Log { object, invocation, level, text } => {
                if let Some(left_out) = self.guest_lines.next(self.clock.now().monotonic) {
                    note_left_out("lines of methods", left_out);
                    log_line(&object.to_string(), invocation.0, level, &text);
                }
            }
            Effect::HandlerFailed { object, text } => {
                if let Some(left_out) = self.fault_lines.next(self.clock.now().monotonic) {
                    note_left_out("failures of handlers", left_out);
                    tracing::warn!(%object, fault = text, "a handler failed");
                }
            }
        }
    }

    fn route_reply(
        &mut self,
        session: SessionId,
        number: u64,
        position: Position,
        outcome: Outcome,
    ) {
        let here = self.router.has_session(session);
        if !here && self.spans.is_none() {
            return;
        }
        let position = convert::position(position);
        let outcome = convert::outcome(outcome);
        if let Some(spans) = &mut self.spans {
            spans.end_call(session, number, position, outcome.as_ref().err(), here);
        }
        if here {
            if let Err(error) = &outcome {
                errors::log_call(error, position, session.0, number);
            }
            let reply = protocol::Reply { session: session.0, number, position, outcome };
            self.router.send_to_session(session, ServerMessage::Reply(reply));
        }
    }
}

/// A line that a method wrote.
fn log_line(object: &str, invocation: u64, level: u8, text: &str) {
    match level {
        1 => tracing::error!(target: "guest", object, invocation, "{text}"),
        2 => tracing::warn!(target: "guest", object, invocation, "{text}"),
        3 => tracing::info!(target: "guest", object, invocation, "{text}"),
        _ => tracing::debug!(target: "guest", object, invocation, "{text}"),
    }
}

/// Says how many lines were left out, if some were.
fn note_left_out(what: &str, lines: u64) {
    if lines > 0 {
        tracing::warn!(lines, "there were too many {what} to log each");
    }
}
