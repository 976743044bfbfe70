//! One session without sockets and clocks: messages and time go in, messages and outputs come out.
//!
//! ```text
//!            connected            opened, attached           disconnected
//!   Down ---------------> Joining ---------------> Up ------------------------> Down
//!     any of them: the server says that the session is over --> Over (final)
//! ```
//!
//! Invariants: the nonce makes repeated openings one session; what was sent on an earlier connection
//! is sent again, in order, with the same numbers, before anything new; once the session is over,
//! every open request has been told, as unknown if it was ever sent.
//! Not here: shipping of classes (the hub does it for all sessions, through one of its own) and any
//! choice of connection.

use std::{collections::VecDeque, time::Duration};

use gesmas_protocol::{
    Acknowledge, Alive, AttachSession, Bytes, ClientMessage, CloseSession, ErrorId, Event,
    EventGap, KeepAlive, OpenSession, OverReason, Position, ReadReply, Refusal, Refused, Reply,
    RequestBody,
};

use super::{
    acknowledgements::Acknowledgements,
    keep_alives::KeepAlives,
    pacing::Pacing,
    pipeline::Pipeline,
    reads::{ReadTarget, Reads},
    settings::{Role, SessionSettings},
    undo::Undo,
};
use crate::{
    clock::Moment,
    failure::{CallFailure, NotSentReason},
};

/// Keep-alives leave no more often, so that they leave room for anything else.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Requests in flight until the server has said how many it takes.
const WINDOW_FIRST: usize = 1_024;

/// Whether a session can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// It is attached to a replica.
    Connected,
    /// There is no connection, or it is being attached. It lives on; calls wait.
    Suspended,
    /// It is over.
    Lost(OverReason),
}

/// An event of a session, or word that some are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// An event.
    Event {
        /// Its number.
        number: u64,
        /// The step that sent it.
        position: Position,
        /// What was sent.
        payload: Bytes,
    },
    /// Events that made way for newer ones before this client had them.
    Gap {
        /// Number of the first that is gone.
        from: u64,
        /// Number of the last that is gone.
        to: u64,
    },
}

/// What a session tells the rest of the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output<T> {
    /// A request or read has ended.
    Resolved(T, Result<Bytes, CallFailure>),
    /// A request has ended, and what it was granted is its caller's. If the caller is gone the request
    /// is to be made that the undo names.
    Granted(T, Bytes, Undo),
    /// A request that was given up was granted something all the same: this request takes it back, and
    /// is to be made.
    Undo(RequestBody),
    /// A request needs this class; say [`SessionCore::class_settled`] when its fate is known.
    ClassNeeded(String, Option<ErrorId>),
    /// An event.
    Event(SessionEvent),
    /// The state changed.
    State(SessionState),
    /// Whether the session's timeout may have passed without the cluster having heard of it.
    Doubtful(bool),
    /// The connection seems dead: a keep-alive was not answered.
    Unresponsive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down,
    Joining,
    Up,
    Over(OverReason),
}

/// The session. See the file's head.
#[derive(Debug)]
pub(crate) struct SessionCore<T> {
    settings: SessionSettings,
    correlation: u64,
    nonce: u128,
    id: Option<u64>,
    link: Link,
    pub(super) pipeline: Pipeline<T>,
    pub(super) reads: Reads<T>,
    pub(super) acknowledgements: Acknowledgements,
    keep_alives: KeepAlives,
    seen: Position,
    event_seen: u64,
    greetings: VecDeque<ClientMessage>,
    /// Who waits for a sign that the session lives, from after they asked.
    probes: Vec<T>,
    pub(super) outputs: VecDeque<Output<T>>,
}

impl<T> SessionCore<T> {
    /// A session that opens itself when there is a connection; `correlation` names the answer.
    pub(crate) fn new(settings: SessionSettings, correlation: u64, nonce: u128) -> Self {
        let (high, low) = ((nonce >> 64) as u64, nonce as u64);
        let pacing = |seed| Pacing::new(settings.pause_first, settings.pause_longest, seed);
        let mut pipeline = Pipeline::new(WINDOW_FIRST, settings.grace, pacing(high));
        let mut known = None;
        match settings.role {
            Role::Owner | Role::Opener => {}
            Role::Guest { session } => known = Some(session),
            Role::Single { number } => pipeline.begin_at(number),
        }
        Self {
            pipeline,
            reads: Reads::new(pacing(low)),
            acknowledgements: Acknowledgements::new(settings.acknowledge_after),
            keep_alives: KeepAlives::new(settings.fresh),
            settings,
            correlation,
            nonce,
            id: known,
            link: Link::Down,
            seen: Position::default(),
            event_seen: 0,
            greetings: VecDeque::new(),
            probes: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Whether nothing can be asked for any more.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.link, Link::Over(_))
    }

    /// What it is to the session in the cluster.
    pub(crate) const fn role(&self) -> Role {
        self.settings.role
    }

    /// Its timeout.
    pub(crate) const fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// Lets go of the session, which lives on.
    pub(crate) fn leave(&mut self) {
        self.end(OverReason::Closed);
    }

    /// Takes up the events after a number, which count as consumed with all before.
    pub(crate) fn replay(&mut self, now: Moment, after: u64) {
        self.event_seen = after;
        self.acknowledgements.add_event(now, after);
        if let (Link::Up, Some(session)) = (self.link, self.id) {
            self.greetings.push_back(ClientMessage::AttachSession(AttachSession {
                session,
                seen: self.seen,
                acknowledged: self.acknowledgements.announce(),
                answered: self.pipeline.answered(),
            }));
        }
    }

    /// Its number in the cluster, once it is open.
    pub(crate) const fn id(&self) -> Option<u64> {
        self.id
    }

    /// Makes a request and gives its number.
    pub(crate) fn call(
        &mut self,
        body: RequestBody,
        deadline: Option<Moment>,
        ticket: T,
        undo: Option<Undo>,
    ) -> u64 {
        // Elsewhere the end of a request belongs to others too.
        let undo = undo.filter(|_| self.settings.role == Role::Owner);
        let number = self.pipeline.push(body, deadline, ticket, undo);
        if let Link::Over(reason) = self.link {
            self.pipeline.drain(reason, &mut self.outputs);
        }
        number
    }

    /// Uses up a number for a request that is never going to be sent.
    pub(crate) const fn skip(&mut self) -> u64 {
        self.pipeline.skip()
    }

    /// Makes a read that sees all requests up to number `made_after`.
    pub(crate) fn read(
        &mut self,
        correlation: u64,
        made_after: u64,
        target: ReadTarget,
        deadline: Option<Moment>,
        ticket: T,
    ) {
        if let Link::Over(reason) = self.link {
            let failure = CallFailure::NotSent(NotSentReason::SessionOver(reason));
            self.outputs.push_back(Output::Resolved(ticket, Err(failure)));
        } else {
            self.reads.push(correlation, made_after, target, deadline, ticket);
        }
    }

    /// Whether a read is open.
    pub(crate) fn has_read(&self, correlation: u64) -> bool {
        self.reads.contains(correlation)
    }

    /// The caller gives a request up.
    pub(crate) fn cancel(&mut self, number: u64) {
        self.pipeline.cancel(number);
    }

    /// Cancels a request whose caller waits on.
    pub(crate) fn withdraw(&mut self, number: u64) {
        self.pipeline.withdraw(number);
    }

    /// Asks the cluster whether the session lives; resolved with nothing once the leader has heard of
    /// it.
    pub(crate) fn probe(&mut self, now: Moment, ticket: T) {
        match self.link {
            Link::Over(reason) => {
                let failure = CallFailure::NotSent(NotSentReason::SessionOver(reason));
                self.outputs.push_back(Output::Resolved(ticket, Err(failure)));
            }
            Link::Up => {
                self.probes.push(ticket);
                self.keep_alives.hurry(now);
            }
            // Joining begins with a keep-alive.
            Link::Down | Link::Joining => self.probes.push(ticket),
        }
    }

    /// All events up to this one were consumed.
    pub(crate) fn consume_events(&mut self, now: Moment, number: u64) {
        self.acknowledgements.add_event(now, number);
    }

    /// Ends the session, as far as a connection allows.
    pub(crate) fn close(&mut self) {
        if let (Link::Up | Link::Joining, Some(session)) = (self.link, self.id) {
            self.greetings.push_back(ClientMessage::CloseSession(CloseSession { session }));
        }
        self.end(OverReason::Closed);
    }

    /// There is a connection, on which the server takes `window` open requests.
    pub(crate) fn handle_connected(&mut self, window: usize) {
        if matches!(self.link, Link::Over(_)) {
            return;
        }
        self.pipeline.set_window(window);
        self.greetings.clear();
        self.greetings.push_back(match self.id {
            None => ClientMessage::OpenSession(OpenSession {
                correlation: self.correlation,
                nonce: self.nonce,
                timeout_ns: u64::try_from(self.settings.timeout.as_nanos()).unwrap_or(u64::MAX),
            }),
            Some(session) => ClientMessage::AttachSession(AttachSession {
                session,
                seen: self.seen,
                acknowledged: self.acknowledgements.announce(),
                answered: self.pipeline.answered(),
            }),
        });
        self.link = Link::Joining;
    }

    /// The connection is gone.
    pub(crate) fn handle_disconnected(&mut self) {
        if !matches!(self.link, Link::Over(_)) {
            let was_up = self.link == Link::Up;
            self.link = Link::Down;
            self.greetings.clear();
            self.keep_alives.stop();
            if was_up {
                self.outputs.push_back(Output::State(SessionState::Suspended));
            }
        }
    }

    /// The session is open.
    pub(crate) fn handle_opened(&mut self, now: Moment, session: u64, timeout: Duration) {
        self.id = Some(session);
        self.settings.timeout = timeout;
        self.keep_alives.opened();
        self.weigh(now);
        self.join(now, 0);
    }

    /// The session is attached.
    pub(crate) fn handle_attached(&mut self, now: Moment, last_admitted: u64) {
        self.join(now, last_admitted);
    }

    fn join(&mut self, now: Moment, last_admitted: u64) {
        if self.link != Link::Joining {
            return;
        }
        self.link = Link::Up;
        if let Role::Single { number } = self.settings.role
            && last_admitted != 0
            && last_admitted != number
        {
            self.refuse_single(number, Refusal::OutOfOrder { last: last_admitted });
        }
        self.pipeline.attached(last_admitted);
        self.pipeline.stall = None;
        self.reads.rewind();
        self.keep_alives.start(now);
        self.outputs.push_back(Output::State(SessionState::Connected));
    }

    /// The server says that the session is over.
    pub(crate) fn handle_over(&mut self, reason: OverReason) {
        self.end(reason);
    }

    pub(super) fn end(&mut self, reason: OverReason) {
        if matches!(self.link, Link::Over(_)) {
            return;
        }
        self.link = Link::Over(reason);
        self.pipeline.drain(reason, &mut self.outputs);
        self.reads.drain(reason, &mut self.outputs);
        for probe in std::mem::take(&mut self.probes) {
            let failure = CallFailure::NotSent(NotSentReason::SessionOver(reason));
            self.outputs.push_back(Output::Resolved(probe, Err(failure)));
        }
        self.keep_alives.stop();
        self.outputs.push_back(Output::State(SessionState::Lost(reason)));
    }

    /// A keep-alive was answered.
    pub(crate) fn handle_alive(&mut self, now: Moment, alive: &Alive) {
        let Some(suspects) = self.keep_alives.answer(alive).filter(|_| self.link == Link::Up)
        else {
            return;
        };
        self.weigh(now);
        for probe in std::mem::take(&mut self.probes) {
            self.outputs.push_back(Output::Resolved(probe, Ok(Bytes::new())));
        }
        // What had been sent before the last keep-alive but one and is not admitted was lost.
        let first = alive.last_admitted.saturating_add(1);
        if self.pipeline.any_in_flight(first, suspects) {
            self.pipeline.rewind(first);
        }
        // A cancel may be lost too, and no number tells that: it goes again at doubling intervals.
        if self.keep_alives.is_time_to_repeat() {
            self.pipeline.repeat_cancels(suspects);
        }
    }

    /// A request has ended.
    pub(crate) fn handle_reply(&mut self, now: Moment, reply: Reply) {
        self.seen = self.seen.max(reply.position);
        if reply.number <= self.pipeline.last_sent() {
            if self.settings.role == Role::Owner {
                self.acknowledgements.add_reply(now, reply.number);
            }
            self.outputs.extend(self.pipeline.resolve(
                reply.number,
                reply.error_id(),
                reply.outcome,
            ));
        }
    }

    /// A request was refused.
    pub(crate) fn handle_refused(&mut self, now: Moment, refused: Refused) {
        if self.link == Link::Up && self.pipeline.is_in_flight(refused.number) {
            self.refuse(now, refused.number, refused.refusal, refused.id);
        }
    }

    /// A read has ended.
    pub(crate) fn handle_read_reply(&mut self, now: Moment, reply: ReadReply) {
        self.seen = self.seen.max(reply.position);
        self.outputs.extend(self.reads.reply(now, reply.correlation, reply.result, reply.id));
    }

    /// An event arrived. One that came before is a repetition after a reconnect.
    pub(crate) fn handle_event(&mut self, event: Event) {
        self.seen = self.seen.max(event.position);
        if event.number > self.event_seen {
            self.event_seen = event.number;
            let Event { number, position, payload, .. } = event;
            self.outputs.push_back(Output::Event(SessionEvent::Event {
                number,
                position,
                payload,
            }));
        }
    }

    /// Word of lost events arrived; those that came before are not lost.
    pub(crate) fn handle_event_gap(&mut self, gap: &EventGap) {
        let from = gap.from.max(self.event_seen.saturating_add(1));
        if from <= gap.to && self.event_seen < gap.to {
            self.event_seen = gap.to;
            self.outputs.push_back(Output::Event(SessionEvent::Gap { from, to: gap.to }));
        }
    }

    /// When [`SessionCore::handle_timeout`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Moment> {
        let up = self.link == Link::Up;
        let doubt = (self.keep_alives.doubt_at(self.settings.timeout))
            .filter(|_| !matches!(self.link, Link::Over(_)));
        let times = [
            self.pipeline.poll_timeout(up),
            self.reads.poll_timeout(up),
            self.keep_alives.next().filter(|_| up),
            self.acknowledgements.due().filter(|_| up),
            doubt,
        ];
        times.into_iter().flatten().min()
    }

    /// Time has passed. Afterwards there may be something to transmit.
    pub(crate) fn handle_timeout(&mut self, now: Moment) {
        self.pipeline.pass_deadlines(now, self.link == Link::Up, &mut self.outputs);
        self.reads.pass_time(now, &mut self.outputs);
        self.weigh(now);
        if self.link == Link::Up && self.keep_alives.is_unanswered(now) {
            self.outputs.push_back(Output::Unresponsive);
        }
    }

    fn weigh(&mut self, now: Moment) {
        let change = self.keep_alives.weigh(now, self.settings.timeout);
        self.outputs.extend(change.map(Output::Doubtful));
    }

    /// Sends what there is to send.
    pub(crate) fn poll_transmit(&mut self, now: Moment, send: &mut impl FnMut(&ClientMessage)) {
        self.greet(now, send);
        let (Link::Up, Some(session)) = (self.link, self.id) else { return };
        self.pipeline.transmit(now, session, &mut self.acknowledgements, send);
        self.reads.transmit(now, session, self.seen, &self.pipeline, send);
        if self.acknowledgements.due().is_some_and(|due| due <= now) {
            let acknowledged = self.acknowledgements.announce();
            send(&ClientMessage::Acknowledge(Acknowledge { session, acknowledged }));
        }
    }

    /// Sends the greetings and signs of life that there are to send. They are few and small: they leave
    /// also when the connection takes nothing else.
    pub(crate) fn greet(&mut self, now: Moment, send: &mut impl FnMut(&ClientMessage)) {
        while let Some(message) = self.greetings.pop_front() {
            if matches!(message, ClientMessage::OpenSession(_)) {
                self.keep_alives.opening(now);
            }
            send(&message);
        }
        let (Link::Up, Some(session)) = (self.link, self.id) else { return };
        if self.keep_alives.next().is_some_and(|next| next <= now) {
            let interval = (self.settings.timeout / 3).max(INTERVAL_MIN);
            let correlation = self.keep_alives.send(now, interval, self.pipeline.last_sent());
            send(&ClientMessage::KeepAlive(KeepAlive { session, correlation }));
        }
    }

    /// Until when the session is known to live, if nothing more is heard: the first moment for one of
    /// which nothing is known yet, none for one that is over or not the client's own.
    pub(crate) fn safe_until(&self) -> Option<Moment> {
        let own = self.settings.role == Role::Owner && !self.is_over() && self.id.is_some();
        own.then(|| self.keep_alives.safe_until(self.settings.timeout))
    }

    /// The next output.
    pub(crate) fn poll_output(&mut self) -> Option<Output<T>> {
        self.outputs.pop_front()
    }
}
