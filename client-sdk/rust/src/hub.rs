//! The hub: all sessions of a client over one connection, without sockets and clocks.
//!
//! Commands of handles, messages of the server and time go in; frames and notices come out.
//! Invariants: a message of the server reaches the session it names or nobody; each session that
//! was touched is served before the hub rests, so that nothing waits for a timer that could be done.
//! Not here: bytes on their way (`connection.rs`) and when to connect where (`driver.rs`).

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use gesmas_protocol::{
    Admin, AdminError, AdminReply, AdminRequest, BODY_MAX, CallError, ClientMessage, ErrorId,
    ErrorMessage, ReadError, ReadReply, Refusal, RequestBody, ServerMessage, SessionOver,
    SessionRefused, Welcome,
};
use tokio::sync::oneshot;

use crate::{
    clock::Moment,
    command::{Command, Grant, SessionPorts, Ticket},
    failure::{AdminFailure, CallFailure, NotSentReason},
    session::{
        core::{Output, SessionCore, SessionState},
        pacing::Pacing,
        reads::passes,
        undo::Undo,
    },
    shipping::Shipping,
};

/// What a frame needs besides arguments or a module: names, numbers, acknowledged ranges.
const FRAME_OVERHEAD: usize = 16 << 10;

/// Whether to stay with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Stay,
    /// Connect to another replica.
    Leave,
}

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) core: SessionCore<Ticket>,
    /// None for the session that ships classes.
    pub(crate) ports: Option<SessionPorts>,
    pub(crate) timer: Option<Moment>,
    /// The handle is gone: so is the slot once its last words are sent.
    pub(crate) forgotten: bool,
}

#[derive(Debug)]
struct Question {
    message: ClientMessage,
    sender: oneshot::Sender<Result<AdminReply, AdminFailure>>,
}

/// The hub. See the file's head.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) slots: HashMap<u64, Slot>,
    pub(crate) keys: HashMap<u64, u64>,
    reads: HashMap<u64, u64>,
    questions: HashMap<u64, Question>,
    pub(crate) closing: HashMap<u64, oneshot::Sender<()>>,
    pub(crate) shipping: Shipping,
    pub(crate) welcome: Option<Welcome>,
    frame_bytes: usize,
    correlation: u64,
    pub(crate) touched: Vec<u64>,
    timers: BTreeSet<(Moment, u64)>,
    /// Sessions whose opening was refused for a while.
    pub(crate) reopenings: BTreeSet<(Moment, u64)>,
    pub(crate) pacing: Pacing,
    pub(crate) unsent: Vec<ClientMessage>,
    verdict: Verdict,
}

impl Hub {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            slots: HashMap::new(),
            keys: HashMap::new(),
            reads: HashMap::new(),
            questions: HashMap::new(),
            closing: HashMap::new(),
            shipping: Shipping::new(seed),
            welcome: None,
            frame_bytes: BODY_MAX as usize,
            correlation: 0,
            touched: Vec::new(),
            timers: BTreeSet::new(),
            reopenings: BTreeSet::new(),
            pacing: Pacing::new(Duration::from_millis(20), Duration::from_secs(1), seed),
            unsent: Vec::new(),
            verdict: Verdict::Stay,
        }
    }

    pub(crate) fn next_correlation(&mut self) -> u64 {
        self.correlation += 1;
        self.correlation
    }

    /// There is a connection.
    pub(crate) fn handle_connected(&mut self, welcome: Welcome) {
        self.frame_bytes = welcome.frame_bytes.min(BODY_MAX) as usize;
        self.welcome = Some(welcome);
        self.verdict = Verdict::Stay;
        let window = self.window();
        for (&key, slot) in &mut self.slots {
            slot.core.handle_connected(window);
            self.touched.push(key);
        }
        self.questions.retain(|_, question| !question.sender.is_closed());
        self.unsent.extend(self.questions.values().map(|question| question.message.clone()));
    }

    pub(crate) fn window(&self) -> usize {
        let limit = self.welcome.as_ref().map_or(1, |welcome| welcome.requests_per_session);
        usize::try_from(limit).unwrap_or(usize::MAX).max(1)
    }

    /// The connection is gone.
    pub(crate) fn handle_disconnected(&mut self) {
        self.welcome = None;
        self.unsent.clear();
        self.closing.clear();
        self.reopenings.clear();
        for (&key, slot) in &mut self.slots {
            slot.core.handle_disconnected();
            self.touched.push(key);
        }
        // The answers to reads that were given up will never come.
        let slots = &self.slots;
        self.reads.retain(|&read, key| slots.get(key).is_some_and(|slot| slot.core.has_read(read)));
    }

    /// A handle wishes something.
    pub(crate) fn handle_command(&mut self, now: Moment, command: Command) {
        match command {
            Command::Open { settings, nonce, ports } => {
                self.open(settings, nonce, Some(ports));
            }
            Command::Call { session, number, body, deadline, ticket, withdrawn, undo } => {
                self.call((session, number), body, deadline, ticket, undo);
                if withdrawn {
                    self.with(session, |core| core.withdraw(number));
                }
            }
            Command::Cancel { session, number } => {
                self.with(session, |core| core.cancel(number));
            }
            Command::Withdraw { session, number } => {
                self.with(session, |core| core.withdraw(number));
            }
            Command::Read { ticket, target, .. } if !self.fits(target.size()) => {
                ticket.resolve(Err(CallFailure::NotSent(NotSentReason::TooLarge)));
            }
            Command::Read { session, made_after, target, deadline, ticket } => {
                let correlation = self.next_correlation();
                self.reads.insert(correlation, session);
                self.with(session, |core| {
                    core.read(correlation, made_after, target, deadline, ticket);
                });
            }
            Command::Probe { session, ticket } => {
                // A session that is gone drops the ticket, and who waits learns it that way.
                self.with(session, |core| core.probe(now, ticket));
            }
            Command::EventsConsumed { session, number } => {
                self.with(session, |core| core.consume_events(now, number));
            }
            Command::Replay { session, after, queue } => self.replay(now, session, after, queue),
            Command::Close { session, leave, done } => self.close(now, session, leave, done),
            Command::AddClass { class, module } => self.shipping.register(class, module),
            Command::Admin { request, stale, sender } => self.ask(request, stale, sender),
            Command::Shutdown { .. } => unreachable!("the driver takes this one itself"),
        }
    }

    fn ask(
        &mut self,
        request: AdminRequest,
        stale: bool,
        sender: oneshot::Sender<Result<AdminReply, AdminFailure>>,
    ) {
        let correlation = self.next_correlation();
        let message = ClientMessage::Admin(Admin { correlation, request, stale });
        if let Err(error) = message.append_to(&mut Vec::new()) {
            let error = AdminError::Invalid { message: error.to_string() };
            return drop(sender.send(Err(AdminFailure::Answered(error))));
        }
        if self.welcome.is_some() {
            self.unsent.push(message.clone());
        }
        self.questions.insert(correlation, Question { message, sender });
    }

    /// Whether texts and bytes of this length fit into a frame that the server takes.
    const fn fits(&self, size: usize) -> bool {
        size.saturating_add(FRAME_OVERHEAD) <= self.frame_bytes
    }

    fn call(
        &mut self,
        (session, number): (u64, u64),
        body: RequestBody,
        deadline: Option<Moment>,
        ticket: Ticket,
        undo: Option<Undo>,
    ) {
        if !self.slots.contains_key(&session) {
            // Another clone of the handle closed the session.
            return ticket.resolve(Err(CallFailure::NotSent(NotSentReason::Closed)));
        }
        let fits = self.fits(size(&body));
        let given = self.with(session, |core| {
            if fits {
                return core.call(body, deadline, ticket, undo);
            }
            ticket.resolve(Err(CallFailure::NotSent(NotSentReason::TooLarge)));
            core.skip()
        });
        assert!(given.is_none_or(|given| given == number), "handle and session count alike");
    }

    /// Does something with a session, if it is still here.
    pub(crate) fn with<R>(
        &mut self,
        key: u64,
        work: impl FnOnce(&mut SessionCore<Ticket>) -> R,
    ) -> Option<R> {
        let slot = self.slots.get_mut(&key)?;
        self.touched.push(key);
        Some(work(&mut slot.core))
    }

    fn with_id(&mut self, session: u64, work: impl FnOnce(&mut SessionCore<Ticket>)) {
        if let Some(&key) = self.keys.get(&session) {
            self.with(key, work);
        }
    }

    /// The server says something.
    pub(crate) fn handle_message(&mut self, now: Moment, message: ServerMessage) -> Verdict {
        match message {
            ServerMessage::Reply(reply) => {
                self.with_id(reply.session, |core| core.handle_reply(now, reply));
            }
            ServerMessage::Refused(refused) => {
                self.with_id(refused.session, |core| core.handle_refused(now, refused));
            }
            ServerMessage::ReadReply(reply) => self.read_reply(now, reply),
            ServerMessage::Event(event) => {
                self.with_id(event.session, |core| core.handle_event(event));
            }
            ServerMessage::EventGap(gap) => {
                self.with_id(gap.session, |core| core.handle_event_gap(&gap));
            }
            ServerMessage::Alive(alive) => {
                self.with_id(alive.session, |core| core.handle_alive(now, &alive));
            }
            ServerMessage::SessionOpened(opened) => self.opened(now, opened),
            ServerMessage::SessionRefused(refused) => self.open_refused(now, refused),
            ServerMessage::SessionAttached(attached) => {
                self.attached(now, attached);
            }
            ServerMessage::SessionOver(SessionOver { session, reason }) => {
                self.closing.remove(&session);
                self.over(session, reason);
            }
            ServerMessage::AdminAnswer(answer) => {
                if let Some(question) = self.questions.remove(&answer.correlation) {
                    let result = answer.result.map_err(AdminFailure::Answered);
                    // Whoever asked may be gone; then nobody needs the answer.
                    drop(question.sender.send(result));
                }
            }
            ServerMessage::Error(error) => self.error(now, error),
            ServerMessage::GoingAway(_) => return Verdict::Leave,
            ServerMessage::Welcome(_) => {
                tracing::warn!("the server greets twice");
                return Verdict::Leave;
            }
        }
        Verdict::Stay
    }

    fn read_reply(&mut self, now: Moment, reply: ReadReply) {
        let Some(&key) = self.reads.get(&reply.correlation) else { return };
        let again = matches!(&reply.result, Err(ReadError::Refused(refusal))
            if passes(refusal) || matches!(refusal, Refusal::ClassUnknown { .. }));
        if !again {
            self.reads.remove(&reply.correlation);
        }
        self.with(key, |core| core.handle_read_reply(now, reply));
    }

    fn error(&mut self, now: Moment, error: ErrorMessage) {
        tracing::warn!(%error, "the server reports an error");
        let Some(correlation) = error.correlation else { return };
        if let Some(question) = self.questions.remove(&correlation) {
            drop(question.sender.send(Err(AdminFailure::Server(error))));
        } else if self.reads.contains_key(&correlation) {
            let failure =
                CallError::Other { code: error.code.code().into(), message: error.message };
            let result = Err(ReadError::Failed(failure));
            let id = Some(ErrorId(error.id));
            self.read_reply(
                now,
                ReadReply { correlation, position: Default::default(), result, id },
            );
        } else if self.slots.get(&correlation).is_some_and(|slot| slot.core.id().is_none()) {
            let refusal = Refusal::Invalid { message: error.to_string() };
            self.open_refused(now, SessionRefused { correlation, refusal });
        }
    }

    /// When [`Hub::handle_timeout`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Moment> {
        let first = [self.timers.first(), self.reopenings.first()];
        first.into_iter().flatten().map(|&(time, _)| time).min()
    }

    /// Time has passed.
    pub(crate) fn handle_timeout(&mut self, now: Moment) {
        while let Some(&(time, key)) = self.timers.first()
            && time <= now
        {
            self.timers.pop_first();
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.timer = None;
                slot.core.handle_timeout(now);
                self.touched.push(key);
            }
        }
        self.reopen(now);
    }

    /// Serves all sessions that were touched and appends what is to be sent.
    pub(crate) fn serve(&mut self, now: Moment, output: &mut Vec<u8>) -> Verdict {
        for message in self.unsent.drain(..) {
            append(&message, output);
        }
        self.serve_touched(now, |core, connected| {
            if connected {
                core.poll_transmit(now, &mut |message| append(message, output));
            }
        })
    }

    /// Serves all sessions that were touched over a connection that takes hardly anything: signs of life
    /// leave, and doubts and ends are told; the rest is sent when it takes more.
    pub(crate) fn serve_sparingly(&mut self, now: Moment, output: &mut Vec<u8>) -> Verdict {
        let touched = self.touched.clone();
        let verdict = self.serve_touched(now, |core, connected| {
            if connected {
                core.greet(now, &mut |message| append(message, output));
            }
        });
        self.touched.extend(touched);
        verdict
    }

    fn serve_touched(
        &mut self,
        now: Moment,
        mut transmit: impl FnMut(&mut SessionCore<Ticket>, bool),
    ) -> Verdict {
        self.touched.sort_unstable();
        self.touched.dedup();
        while let Some(key) = self.touched.pop() {
            let Some(slot) = self.slots.get_mut(&key) else { continue };
            transmit(&mut slot.core, self.welcome.is_some());
            // Before anybody is told: a doubt that ends has ended then.
            if let Some(ports) = &slot.ports {
                ports.safety.set(slot.core.safe_until());
            }
            while let Some(notice) =
                self.slots.get_mut(&key).and_then(|slot| slot.core.poll_output())
            {
                self.notice(now, key, notice);
            }
            self.rest(key);
        }
        std::mem::replace(&mut self.verdict, Verdict::Stay)
    }

    /// Sets a served session's timer, or lets it go.
    fn rest(&mut self, key: u64) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let next = slot.core.poll_timeout();
        if next != slot.timer {
            if let Some(old) = std::mem::replace(&mut slot.timer, next) {
                self.timers.remove(&(old, key));
            }
            self.timers.extend(next.map(|time| (time, key)));
        }
        if slot.core.is_over()
            && let Some(id) = slot.core.id()
        {
            self.keys.remove(&id);
        }
        if slot.forgotten {
            self.slots.remove(&key);
        }
    }

    fn notice(&mut self, now: Moment, key: u64, notice: Output<Ticket>) {
        match notice {
            Output::Resolved(Ticket::Shipped(class), result) => self.shipped(now, &class, result),
            Output::Resolved(ticket, result) => ticket.resolve(result),
            Output::Granted(ticket, result, undo) => {
                if let Some(ports) = self.ports(key) {
                    let line = ports.line.clone();
                    ticket.grant(Grant { result, undo, session: key, line, taken: false });
                }
            }
            Output::Undo(body) => {
                if let Some(ports) = self.ports(key) {
                    ports.line.make(key, body);
                }
            }
            Output::ClassNeeded(class, id) => self.class_needed(now, key, class, id),
            Output::Unresponsive => self.verdict = Verdict::Leave,
            Output::Event(event) => {
                if let Some(ports) = self.ports(key) {
                    ports.events.push(event);
                }
            }
            Output::Doubtful(doubtful) => {
                if let Some(ports) = self.ports(key) {
                    ports.doubtful.send_replace(doubtful);
                }
            }
            Output::State(state) => {
                if let Some(ports) = self.ports(key) {
                    ports.state.send_replace(state);
                    if matches!(state, SessionState::Lost(_)) {
                        ports.events.end();
                    }
                }
            }
        }
    }

    fn ports(&self, key: u64) -> Option<&SessionPorts> {
        self.slots.get(&key)?.ports.as_ref()
    }
}

/// Bytes of the texts, arguments and modules of a request.
fn size(body: &RequestBody) -> usize {
    match body {
        RequestBody::Call { class, object, method, arguments, .. } => {
            class.len() + object.len() + method.len() + arguments.len()
        }
        RequestBody::CreateObject { class, object, arguments, .. } => {
            class.len() + object.len() + arguments.len()
        }
        RequestBody::RemoveObject { class, object }
        | RequestBody::EndFault { class, object, .. } => class.len() + object.len(),
        RequestBody::PutClass { class, module, .. } => class.len() + module.len(),
        RequestBody::RemoveClass { class } => class.len(),
        RequestBody::SetLimit { name, .. } => name.len(),
        RequestBody::Kill { .. } | RequestBody::KillSession { .. } => 0,
    }
}

fn append(message: &ClientMessage, output: &mut Vec<u8>) {
    // Sizes were checked when the request was made; nothing else comes near the limit.
    message.append_to(output).expect("a message that was let in fits into a frame");
}
