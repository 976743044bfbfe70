//! What clients ask for: requests, cancels, reads, questions of operators.
//!
//! Everything is checked against names and limits here, before it is ordered; the machine checks it
//! again. A module is compiled before it is ordered, so that one that cannot be compiled never is.

use std::sync::Arc;

use gesmas_machine::{
    CodeHash, Command, Engine as _, Place, Position, RequestBody, STATE_MACHINE_VERSION, SessionId,
};
use gesmas_protocol::{self as protocol, ServerMessage};

use super::{
    admin,
    compiler::Job,
    convert,
    driver::{Driver, Waiting},
    errors,
    input::{CompileDone, CompileReason, ConnectionId},
    questions,
};
use crate::replica::Question;

impl Driver {
    pub(super) fn request(&mut self, connection: ConnectionId, request: protocol::Request) {
        let (session, number) = (request.session, request.number);
        self.router.attach(connection, SessionId(session));
        let mut begun = false;
        let refusal = match convert::request(request) {
            Err(error) => protocol::Refusal::Invalid { message: error.to_string() },
            Ok(request) => {
                if let Some(spans) = &mut self.spans {
                    begun = spans.begin(&request);
                }
                match request.check(&self.replica.machine().limits()) {
                    Err(limit) => convert::refusal(gesmas_machine::Refusal::Limit(limit)),
                    Ok(()) => match self.order(connection, Command::Request(request)) {
                        Ok(()) => return,
                        Err(refusal) => refusal,
                    },
                }
            }
        };
        // A request that comes again is turned away alone: what it asked for before goes on.
        if let Some(spans) = self.spans.as_mut().filter(|_| begun) {
            spans.refuse_call(session, number, &refusal);
        }
        self.refuse(connection, session, number, refusal);
    }

    /// Puts a request on its way; a module is compiled before.
    fn order(
        &mut self,
        connection: ConnectionId,
        command: Command,
    ) -> Result<(), protocol::Refusal> {
        if let Command::Request(request) = &command
            && let RequestBody::PutClass { class, module, .. } = &request.body
        {
            let code = CodeHash::of(module);
            let machine = self.replica.machine();
            let limits = machine.limits();
            let engine = machine.engine();
            // What the rules refuse is ordered as it is: the machine refuses it with a typed error.
            let sound = engine
                .inspect(class.as_str(), module, STATE_MACHINE_VERSION, &limits.module)
                .is_ok();
            if sound && !engine.is_compiled(code) {
                let module = module.as_slice().into();
                let reason =
                    CompileReason::BeforeOrdering { connection, command: Box::new(command) };
                self.compiler.add(Job { code, module, reason });
                return Ok(());
            }
        }
        self.replica.handle_command(command).map_err(convert::not_taken)
    }

    pub(super) fn cancel(&mut self, connection: ConnectionId, cancel: protocol::Cancel) {
        let session = SessionId(cancel.session);
        self.router.attach(connection, session);
        let place = Place { session, number: cancel.number, previous: cancel.previous };
        let acknowledged = convert::acknowledged(cancel.acknowledged);
        if self.replica.handle_command(Command::Cancel { place, acknowledged }).is_err() {
            let refusal = protocol::Refusal::Busy;
            self.refuse(connection, cancel.session, cancel.number, refusal);
        }
    }

    pub(super) fn read(&mut self, connection: ConnectionId, read: protocol::Read) {
        let Some(principal) = self.router.principal(connection) else {
            return;
        };
        let (correlation, stale) = (read.correlation, read.stale);
        let seen = convert::seen(read.seen);
        let read = convert::read(read, principal);
        let read_id = self.next_read();
        let refusal = match read {
            Err(error) => protocol::Refusal::Invalid { message: error.to_string() },
            Ok(read) => {
                let id = read_id;
                if let Some(spans) = &mut self.spans {
                    spans.begin_read(id, &read, stale);
                }
                let question = Question { read: Some(read), seen, stale, alive: None };
                if self.replica.handle_read(id, question).is_ok() {
                    self.waiting.insert(id, Waiting::Read { connection, correlation });
                    return;
                }
                protocol::Refusal::Busy
            }
        };
        self.refuse_read(read_id, connection, correlation, refusal);
    }

    /// Why a read is refused whose client has seen what is not in this history.
    pub(super) fn not_seen(&self) -> protocol::Refusal {
        let protocol::Position { epoch, step } = self.position();
        let message = format!(
            "the position that was seen is of another history: the cluster stands at step {step} of \
             epoch {epoch}; it was restored from a backup, or the position was made up"
        );
        protocol::Refusal::Invalid { message }
    }

    pub(super) fn admin(&mut self, connection: ConnectionId, admin: protocol::Admin) {
        let correlation = admin.correlation;
        if let protocol::AdminRequest::SnapshotPiece { index, offset } = admin.request {
            let id = self.next_read();
            self.waiting.insert(id, Waiting::Piece { connection, correlation });
            return self.replica.read_piece(id, index, offset);
        }
        if admin.stale || !admin.request.asks_for_state() {
            return self.answer_question(connection, correlation, admin.request);
        }
        let id = self.next_read();
        let wait = Question { read: None, seen: Position::default(), stale: false, alive: None };
        let has_room = self.questions.has_room(&admin.request);
        if has_room && self.replica.handle_read(id, wait).is_ok() {
            let request = admin.request;
            let question = questions::Question { connection, correlation, request };
            self.questions.add(id, question, self.clock.now().monotonic);
        } else {
            let message = self.turned_away().unwrap_or("the replica has too much to do").into();
            self.answer(
                connection,
                correlation,
                Err(protocol::AdminError::Unavailable { message }),
            );
        }
    }

    /// Answers from the state as it is here now.
    pub(super) fn answer_question(
        &mut self,
        connection: ConnectionId,
        correlation: u64,
        request: protocol::AdminRequest,
    ) {
        if let protocol::AdminRequest::TryClass { class, module, replace } = request {
            let begun = self.begin_trial(connection, correlation, &class, &module, replace);
            return match begun {
                Ok(()) => {}
                Err(result) => self.answer(connection, correlation, *result),
            };
        }
        let counts = self.counts();
        let connected = self.connected_peers();
        let result = admin::answer(&mut self.replica, request, connected, &counts);
        self.answer(connection, correlation, result);
    }

    pub(super) fn answer(
        &mut self,
        connection: ConnectionId,
        correlation: u64,
        result: Result<protocol::AdminReply, protocol::AdminError>,
    ) {
        let answer = protocol::AdminAnswer { correlation, result };
        self.router.send(connection, ServerMessage::AdminAnswer(answer));
    }

    /// Has code compiled that was ordered. What is native is there already.
    pub(super) fn compile(&mut self, code: CodeHash, module: Arc<[u8]>) {
        if self.replica.machine().engine().native.is_compiled(code) {
            self.replica.handle_compiled(code, None);
        } else {
            self.compiler.add(Job { code, module, reason: CompileReason::Ordered });
        }
    }

    pub(super) fn compiled(&mut self, done: CompileDone) {
        let failure = match done.result {
            Ok(compiled) => {
                self.replica.machine_mut().engine_mut().wasm.install(done.code, compiled);
                None
            }
            Err(failure) => Some(failure),
        };
        match done.reason {
            CompileReason::Ordered => {
                if let Some(reason) = &failure {
                    tracing::error!(code = %done.code, reason, "a class cannot be compiled here");
                    self.failed.insert(done.code, self.clock.now().monotonic);
                }
                self.replica.handle_compiled(done.code, failure);
            }
            CompileReason::BeforeOrdering { connection, command } => {
                self.order_compiled(connection, *command, failure);
            }
            CompileReason::Trial(trial) => self.trial_compiled(trial, failure),
        }
    }

    fn order_compiled(
        &mut self,
        connection: ConnectionId,
        command: Command,
        failure: Option<String>,
    ) {
        let Command::Request(request) = &command else {
            panic!("only a request waits for its module");
        };
        let (session, number) = (request.place.session.0, request.place.number);
        let refusal = match failure {
            None => match self.replica.handle_command(command) {
                Ok(()) => return,
                Err(error) => convert::not_taken(error),
            },
            Some(failure) => {
                let message = format!("the module could not be compiled: {failure}");
                protocol::Refusal::Invalid { message }
            }
        };
        self.refuse(connection, session, number, refusal);
    }

    /// Turns a request away, and logs what is not in the ordinary run of things.
    fn refuse(
        &mut self,
        connection: ConnectionId,
        session: u64,
        number: u64,
        refusal: protocol::Refusal,
    ) {
        let id = errors::log_refusal(&refusal, session, number);
        let refused = protocol::Refused { session, number, refusal, id };
        self.router.send(connection, ServerMessage::Refused(refused));
    }
}
