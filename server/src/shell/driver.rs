//! The driver: the one thread that owns the core of a replica.
//!
//! A turn: take inputs, hand them to the core, finish the turn (one fsync), let the kernel work a
//! slice, send what came out. It sleeps only when there is no input and the kernel is idle.
//! Invariants: whatever stops the core stops the process; a client gets nothing that is not
//! durable, since effects come of decided entries only.

use std::collections::BTreeMap;

use bytes::Bytes;
use gesmas_coroutine::WasmEngine;
use gesmas_machine::{
    CodeHash, Command, Effect, Engine as _, Place, Progress, RequestBody, STATE_MACHINE_VERSION,
    SessionId, Step,
};
use gesmas_protocol::{self as protocol, ClientMessage, ErrorCode, ServerMessage};
use tokio::sync::{mpsc, watch};

use super::{
    admin, clients,
    compiler::{CompilerQueue, Job},
    convert,
    input::{CompileDone, CompileReason, ConnectionId, HostClock, Input, Inputs},
    router::Router,
};
use crate::replica::{Output, Question, ReadId, Replica, ReplicaError};

/// Inputs taken in one turn: enough to fill a batch, few enough to keep heartbeats coming.
const TURN_INPUTS: usize = 1_024;

/// A peer's link.
#[derive(Default)]
struct Link {
    /// Frames to it, while a connection stands.
    frames: Option<mpsc::Sender<Bytes>>,
    /// Its newest connection to this replica.
    connection: u64,
}

/// Why a client waits for the core to catch up.
enum Waiting {
    /// A read, under the client's correlation.
    Read { connection: ConnectionId, correlation: u64 },
    /// Whether a session exists that this replica does not know.
    Session { connection: ConnectionId, session: SessionId },
    /// That the leader has heard of a session, whose client asked under this correlation.
    Alive { connection: ConnectionId, session: SessionId, correlation: u64 },
}

/// See the file's head.
pub(super) struct Driver {
    replica: Replica<WasmEngine>,
    clock: HostClock,
    router: Router,
    compiler: CompilerQueue,
    links: BTreeMap<u64, Link>,
    waiting: BTreeMap<ReadId, Waiting>,
    next_read: u64,
    slice: u32,
    /// What others may know of the replica while it runs.
    leading: watch::Sender<bool>,
}

impl Driver {
    pub(super) fn new(
        replica: Replica<WasmEngine>,
        clock: HostClock,
        compiler: CompilerQueue,
        slice: u32,
        leading: watch::Sender<bool>,
    ) -> Self {
        Self {
            replica,
            clock,
            router: Router::default(),
            compiler,
            links: BTreeMap::new(),
            waiting: BTreeMap::new(),
            next_read: 1,
            slice,
            leading,
        }
    }

    /// Works until it is told to stop.
    pub(super) fn run(mut self, mut inputs: Inputs) -> Result<(), ReplicaError> {
        let mut progress = Progress::Idle;
        loop {
            let first = if progress == Progress::More {
                inputs.try_recv().ok()
            } else {
                match inputs.blocking_recv() {
                    Some(input) => Some(input),
                    None => return Ok(()),
                }
            };
            self.replica.handle_time(self.clock.now());
            let mut taken = 0;
            let mut next = first;
            while let Some(input) = next {
                if matches!(input, Input::Stop) {
                    self.router.say_goodbye();
                    return Ok(());
                }
                self.handle(input)?;
                taken += 1;
                next = if taken < TURN_INPUTS { inputs.try_recv().ok() } else { None };
            }
            self.finish_turn()?;
            progress = self.replica.apply(self.slice)?;
            self.route_outputs();
            // What the kernel did may let the core order or send more.
            self.finish_turn()?;
        }
    }

    fn finish_turn(&mut self) -> Result<(), ReplicaError> {
        let links = &mut self.links;
        self.replica.finish_turn(&mut |peer, frame| {
            let link = links.entry(peer).or_default();
            // A frame that does not fit ends the connection: no gap goes unnoticed.
            let sent = link.frames.as_ref().is_none_or(|frames| frames.try_send(frame).is_ok());
            if !sent {
                link.frames = None;
            }
        })?;
        let leads = self.replica.is_leading();
        self.leading.send_if_modified(|leading| std::mem::replace(leading, leads) != leads);
        Ok(())
    }

    fn handle(&mut self, input: Input) -> Result<(), ReplicaError> {
        match input {
            Input::Tick => self.replica.handle_tick()?,
            Input::ClientConnected { connection, principal, messages } => {
                self.router.connect(connection, principal, messages);
            }
            Input::ClientGone(connection) => self.client_gone(connection),
            Input::Client(connection, message) => self.client_message(connection, message),
            Input::PeerUp { peer, frames } => {
                self.links.entry(peer).or_default().frames = Some(frames);
                self.replica.handle_reconnected(peer)?;
            }
            Input::PeerConnected { peer, connection } => {
                self.links.entry(peer).or_default().connection = connection;
                self.replica.handle_reconnected(peer)?;
            }
            Input::Peer { peer, connection, body } => self.peer_frame(peer, connection, body)?,
            Input::Compiled(done) => self.compiled(done),
            Input::Stop => panic!("the loop handles the stop"),
        }
        Ok(())
    }

    fn peer_frame(&mut self, peer: u64, connection: u64, body: Bytes) -> Result<(), ReplicaError> {
        let current = self.links.get(&peer).is_some_and(|link| link.connection == connection);
        if !current {
            return Ok(());
        }
        if let Err(error) = self.replica.handle_frame(peer, body)? {
            tracing::error!(peer, %error, "a frame of a peer is refused");
        }
        Ok(())
    }

    fn client_gone(&mut self, connection: ConnectionId) {
        self.router.disconnect(connection);
        let gone: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| match waiting {
                Waiting::Read { connection: at, .. }
                | Waiting::Session { connection: at, .. }
                | Waiting::Alive { connection: at, .. } => *at == connection,
            })
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.waiting.remove(&id);
            self.replica.forget_read(id);
        }
    }

    fn client_message(&mut self, connection: ConnectionId, message: ClientMessage) {
        match message {
            ClientMessage::Hello(_) => panic!("the connection handles the greeting"),
            ClientMessage::OpenSession(open) => self.open_session(connection, &open),
            ClientMessage::AttachSession(attach) => self.attach_session(connection, attach),
            ClientMessage::CloseSession(close) => {
                let session = SessionId(close.session);
                self.router.attach(connection, session);
                // Should there be no room, the client says it again or the session expires.
                let _full = self.replica.handle_command(Command::CloseSession { session });
            }
            ClientMessage::KeepAlive(keep) => self.keep_alive(connection, &keep),
            ClientMessage::Request(request) => self.request(connection, request),
            ClientMessage::Cancel(cancel) => self.cancel(connection, cancel),
            ClientMessage::Acknowledge(acknowledge) => {
                let session = SessionId(acknowledge.session);
                let acknowledged = convert::acknowledged(acknowledge.acknowledged);
                // Should there be no room, a later message carries it.
                let _full = self
                    .replica
                    .handle_command(Command::Acknowledge { session, acknowledged });
            }
            ClientMessage::Read(read) => self.read(connection, read),
            ClientMessage::Admin(admin) => self.admin(connection, admin),
        }
    }

    fn open_session(&mut self, connection: ConnectionId, open: &protocol::OpenSession) {
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

    fn attach_session(&mut self, connection: ConnectionId, attach: protocol::AttachSession) {
        let session = SessionId(attach.session);
        self.router.attach(connection, session);
        self.replica.handle_alive(session);
        let acknowledged = convert::acknowledged(attach.acknowledged);
        if acknowledged != gesmas_machine::Acknowledged::default() {
            let _full =
                self.replica.handle_command(Command::Acknowledge { session, acknowledged });
        }
        self.answer_attach(connection, session);
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
        let question = Question { read: None, seen: Step(0), stale: false };
        let id = self.next_read();
        if self.replica.handle_read(id, question).is_ok() {
            self.waiting.insert(id, waiting);
        }
    }

    fn next_read(&mut self) -> ReadId {
        self.next_read += 1;
        ReadId(self.next_read)
    }

    /// Answered when the leader has heard of it: the client counts its lease from when it asked.
    fn keep_alive(&mut self, connection: ConnectionId, keep: &protocol::KeepAlive) {
        let session = SessionId(keep.session);
        self.replica.handle_alive(session);
        self.wait_for(Waiting::Alive { connection, session, correlation: keep.correlation });
    }

    fn alive(&mut self, connection: ConnectionId, session: SessionId, correlation: u64) {
        match self.replica.machine().last_admitted(session) {
            Some(last_admitted) => {
                let alive = protocol::Alive { session: session.0, correlation, last_admitted };
                self.router.send(connection, ServerMessage::Alive(alive));
            }
            None => self.session_known(connection, session),
        }
    }

    fn request(&mut self, connection: ConnectionId, request: protocol::Request) {
        let (session, number) = (request.session, request.number);
        self.router.attach(connection, SessionId(session));
        let refusal = match convert::request(request) {
            Err(error) => protocol::Refusal::Invalid { message: error.to_string() },
            Ok(request) => match request.check(&self.replica.machine().limits()) {
                Err(limit) => convert::refusal(gesmas_machine::Refusal::Limit(limit)),
                Ok(()) => match self.order(connection, Command::Request(request)) {
                    Ok(()) => return,
                    Err(refusal) => refusal,
                },
            },
        };
        let refused = protocol::Refused { session, number, refusal };
        self.router.send(connection, ServerMessage::Refused(refused));
    }

    /// Puts a request on its way; a module is compiled before.
    fn order(
        &mut self,
        connection: ConnectionId,
        command: Command,
    ) -> Result<(), protocol::Refusal> {
        if let Command::Request(request) = &command
            && let RequestBody::PutClass { class, module } = &request.body
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
        self.replica.handle_command(command).map_err(|_| protocol::Refusal::Busy)
    }

    fn cancel(&mut self, connection: ConnectionId, cancel: protocol::Cancel) {
        let session = SessionId(cancel.session);
        self.router.attach(connection, session);
        let place = Place { session, number: cancel.number, previous: cancel.previous };
        let acknowledged = convert::acknowledged(cancel.acknowledged);
        if self.replica.handle_command(Command::Cancel { place, acknowledged }).is_err() {
            let refused = protocol::Refused {
                session: cancel.session,
                number: cancel.number,
                refusal: protocol::Refusal::Busy,
            };
            self.router.send(connection, ServerMessage::Refused(refused));
        }
    }

    fn read(&mut self, connection: ConnectionId, read: protocol::Read) {
        let Some(principal) = self.router.principal(connection) else {
            return;
        };
        let (correlation, stale, seen) = (read.correlation, read.stale, Step(read.seen.step));
        let refusal = match convert::read(read, principal) {
            Err(error) => protocol::Refusal::Invalid { message: error.to_string() },
            Ok(read) => {
                let question = Question { read: Some(read), seen, stale };
                let id = self.next_read();
                if self.replica.handle_read(id, question).is_ok() {
                    self.waiting.insert(id, Waiting::Read { connection, correlation });
                    return;
                }
                protocol::Refusal::Busy
            }
        };
        let position = self.position();
        let result = Err(protocol::ReadError::Refused(refusal));
        let reply = protocol::ReadReply { correlation, position, result };
        self.router.send(connection, ServerMessage::ReadReply(reply));
    }

    fn admin(&mut self, connection: ConnectionId, admin: protocol::Admin) {
        let correlation = admin.correlation;
        let links = self.links.iter();
        let connected =
            links.filter(|(_, link)| link.frames.is_some()).map(|(peer, _)| *peer).collect();
        let result =
            admin::answer(&self.replica, admin.request, connected, &self.router.counts());
        let answer = protocol::AdminAnswer { correlation, result };
        self.router.send(connection, ServerMessage::AdminAnswer(answer));
    }

    fn position(&self) -> protocol::Position {
        protocol::Position { epoch: 0, step: self.replica.machine().step().0 }
    }

    fn compiled(&mut self, done: CompileDone) {
        let failure = match done.result {
            Ok(compiled) => {
                self.replica.machine_mut().engine_mut().install(done.code, compiled);
                None
            }
            Err(failure) => Some(failure),
        };
        match done.reason {
            CompileReason::Ordered => {
                // Reports are few, and there is room for them unless the replica is cut off.
                if self.replica.handle_compiled(done.code, failure).is_err() {
                    tracing::error!(code = %done.code, "the report of compiled code found no room");
                }
            }
            CompileReason::BeforeOrdering { connection, command } => {
                self.order_compiled(connection, *command, failure);
            }
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
                Err(_) => protocol::Refusal::Busy,
            },
            Some(failure) => {
                let message = format!("the module could not be compiled: {failure}");
                let error = clients::error_message(None, ErrorCode::Unexpected, message);
                protocol::Refusal::Invalid { message: error.to_string() }
            }
        };
        let refused = protocol::Refused { session, number, refusal };
        self.router.send(connection, ServerMessage::Refused(refused));
    }

    fn route_outputs(&mut self) {
        while let Some(output) = self.replica.poll_output() {
            match output {
                Output::Effect(effect) => self.route_effect(effect),
                Output::Read { id, result } => {
                    let Some(Waiting::Read { connection, correlation }) = self.waiting.remove(&id)
                    else {
                        continue;
                    };
                    let position = self.position();
                    let result = match result {
                        Ok(Ok(value)) => Ok(value.into()),
                        Ok(Err(error)) => {
                            Err(protocol::ReadError::Failed(convert::call_error(error)))
                        }
                        Err(refusal) => {
                            Err(protocol::ReadError::Refused(convert::refusal(refusal)))
                        }
                    };
                    let reply = protocol::ReadReply { correlation, position, result };
                    self.router.send(connection, ServerMessage::ReadReply(reply));
                }
                Output::CaughtUp { id } => match self.waiting.remove(&id) {
                    Some(Waiting::Session { connection, session }) => {
                        self.session_known(connection, session);
                    }
                    Some(Waiting::Alive { connection, session, correlation }) => {
                        self.alive(connection, session, correlation);
                    }
                    Some(Waiting::Read { .. }) | None => {}
                },
            }
        }
    }

    /// This replica has caught up since a client came with an unknown session.
    fn session_known(&mut self, connection: ConnectionId, session: SessionId) {
        if let Some(last) = self.replica.machine().last_admitted(session) {
            return self.session_attached(connection, session, last);
        }
        let reason = protocol::OverReason::Unknown;
        let over = protocol::SessionOver { session: session.0, reason };
        self.router.send(connection, ServerMessage::SessionOver(over));
        self.router.detach(session);
    }

    fn route_effect(&mut self, effect: Effect) {
        match effect {
            Effect::SessionOpened { nonce, session } => self.session_opened(nonce, session),
            Effect::SessionOver { session, reason } => {
                let reason = convert::session_end(reason);
                let over = protocol::SessionOver { session: session.0, reason };
                self.router.send_to_session(session, ServerMessage::SessionOver(over));
                self.router.detach(session);
            }
            Effect::Reply { session, number, position, outcome } => {
                if self.router.has_session(session) {
                    let reply = protocol::Reply {
                        session: session.0,
                        number,
                        position: convert::position(position),
                        outcome: convert::outcome(outcome),
                    };
                    self.router.send_to_session(session, ServerMessage::Reply(reply));
                }
            }
            Effect::Refused { session, number, refusal } => {
                let refusal = convert::refusal(refusal);
                let refused = protocol::Refused { session: session.0, number, refusal };
                self.router.send_to_session(session, ServerMessage::Refused(refused));
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
            Effect::Compile { class, code } => {
                if let Some(module) = self.replica.machine().module(&class) {
                    self.compiler.add(Job { code, module, reason: CompileReason::Ordered });
                }
            }
            Effect::BatchVoid => {}
            Effect::Log { object, invocation, level, text } => {
                log_line(&object.to_string(), invocation.0, level, &text);
            }
            Effect::HandlerFailed { object, text } => {
                tracing::warn!(%object, fault = text, "a handler failed");
            }
        }
    }

    fn session_opened(
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

/// A line that a method wrote.
fn log_line(object: &str, invocation: u64, level: u8, text: &str) {
    match level {
        1 => tracing::error!(target: "guest", object, invocation, "{text}"),
        2 => tracing::warn!(target: "guest", object, invocation, "{text}"),
        3 => tracing::info!(target: "guest", object, invocation, "{text}"),
        _ => tracing::debug!(target: "guest", object, invocation, "{text}"),
    }
}
