//! Simulated clients.
//!
//! A client has one session at a time, pipelines numbered requests in it, sends them again until
//! they are answered, acknowledges what it has, gives some up, reads, keeps its session alive, moves
//! between replicas, falls silent, and dies: whoever comes after it knows nothing.
//! Invariant: a client does what the client library promises to do, so that every surprise is one of
//! the replicas'; a planted fault is the exception.
//! Not here: what is asked for (`workloads/`), and how messages travel (`cluster/`).

mod acknowledged;
mod session;

use gesmas_machine::{Outcome, SessionId, Step};

use self::session::{Pending, Session};
use crate::{
    catalog::Catalog,
    messages::{Ask, Tell},
    options::Plant,
    prng::Prng,
    schedule::{MILLISECOND, SECOND},
    verdict::{Checked, Counts, Violation},
    workloads::{Ended, Facts, Worker, Workload},
};

/// Silence after which a client tries another replica.
const MOVE_AFTER: u64 = 900 * MILLISECOND;
/// A session is opened again after this long without an answer.
const OPEN_AGAIN: u64 = 400 * MILLISECOND;
/// A request is sent again after this long, and then ever more rarely.
const FIRST_RETRY: u64 = 250 * MILLISECOND;
/// The longest time between two sendings.
const LAST_RETRY: u64 = 2 * SECOND;
/// Time between two keep-alives.
const KEEP_ALIVE: u64 = 350 * MILLISECOND;

/// What a client needs of its surroundings for a moment.
pub(crate) struct Surroundings<'a> {
    pub(crate) prng: &'a mut Prng,
    pub(crate) catalog: &'a Catalog,
    pub(crate) workload: &'a mut dyn Workload,
    pub(crate) facts: Facts<'a>,
    pub(crate) counts: &'a mut Counts,
    /// Replicas that clients may try, by index.
    pub(crate) replicas: &'a [usize],
    pub(crate) draining: bool,
    /// Whether calls that may starve are to be given up.
    pub(crate) giving_up: bool,
    pub(crate) plant: Option<Plant>,
    /// Whether the cluster has been in order for long enough to demand everything of it.
    pub(crate) in_order: bool,
    /// Whether nothing is asked for, but that sessions live.
    pub(crate) hushed: bool,
    /// Whether clients alone judge.
    pub(crate) outside: bool,
}

/// Where a client is with its session.
enum Phase {
    Opening { nonce: u128, sent: Option<u64> },
    Open(Box<Session>),
}

/// A client.
pub(crate) struct Client {
    index: usize,
    phase: Phase,
    timeout: u64,
    /// Replica it talks to.
    pub(crate) replica: usize,
    /// Its connection: messages of older ones are dropped.
    pub(crate) connection: u64,
    heard: u64,
    kept_alive: u64,
    silent_until: u64,
    seen: Step,
    next_read: u64,
}

impl Client {
    /// A client that has no session yet.
    pub(crate) fn new(index: usize, replica: usize, prng: &mut Prng) -> Self {
        Self {
            index,
            phase: Phase::Opening { nonce: nonce(prng), sent: None },
            timeout: prng.between(2_000, 5_000) * MILLISECOND,
            replica,
            connection: 1,
            heard: 0,
            kept_alive: 0,
            silent_until: 0,
            seen: Step(0),
            next_read: 0,
        }
    }

    /// Its session, if it has one.
    pub(crate) fn session(&self) -> Option<SessionId> {
        match &self.phase {
            Phase::Opening { .. } => None,
            Phase::Open(session) => Some(session.id),
        }
    }

    /// Its calls that wait and were not given up, with their methods.
    pub(crate) fn waiting(&self) -> Vec<((SessionId, u64), &'static str)> {
        match &self.phase {
            Phase::Opening { .. } => Vec::new(),
            Phase::Open(session) => session.waiting().collect(),
        }
    }

    /// Whether nothing of it waits for an answer.
    pub(crate) fn is_at_rest(&self) -> bool {
        match &self.phase {
            Phase::Opening { .. } => false,
            Phase::Open(session) => {
                session.pending.is_empty() && session.reads.is_empty() && !session.closing
            }
        }
    }

    /// What waits, in words.
    pub(crate) fn waits_for(&self) -> String {
        match &self.phase {
            Phase::Opening { .. } => format!("client {} has no session", self.index),
            Phase::Open(session) => {
                let waits: Vec<_> = session
                    .pending
                    .iter()
                    .map(|(number, pending)| format!("{number} {}", pending.name()))
                    .collect();
                let (id, reads) = (session.id, session.reads.len());
                format!("client {}, session {id}: {waits:?}, {reads} reads", self.index)
            }
        }
    }

    /// Says nothing for a while, and keeps its session.
    pub(crate) fn fall_silent(&mut self, until: u64) {
        self.silent_until = until;
    }

    /// Dies; what comes after it knows nothing. Its session is left to itself.
    pub(crate) fn die(&mut self, until: u64, around: &mut Surroundings<'_>) -> Checked {
        self.silent_until = until;
        self.lose_session(around)
    }

    /// Goes to another replica.
    pub(crate) fn move_on(&mut self, around: &mut Surroundings<'_>) {
        self.replica = around.replicas[around.prng.index(around.replicas.len())];
        self.connection += 1;
        self.heard = around.facts.now;
        around.counts.client_moves += 1;
        match &mut self.phase {
            Phase::Opening { sent, .. } => *sent = None,
            Phase::Open(session) => session.send_all_again(),
        }
    }

    /// Calls of a session that is over have an unknown fate.
    fn lose_session(&mut self, around: &mut Surroundings<'_>) -> Checked {
        let opening = Phase::Opening { nonce: nonce(around.prng), sent: None };
        let Phase::Open(session) = std::mem::replace(&mut self.phase, opening) else {
            return Ok(());
        };
        for pending in session.pending.into_values() {
            if let Some(call) = &pending.call {
                around.workload.ended(self.index, call, &Ended::Unknown, &around.facts)?;
            }
        }
        Ok(())
    }

    /// Lets the client act, as it does every now and then.
    pub(crate) fn wake(&mut self, around: &mut Surroundings<'_>) -> Vec<Ask> {
        let now = around.facts.now;
        if now < self.silent_until {
            return Vec::new();
        }
        let restless = around.prng.permille(10);
        let elsewhere = !around.replicas.contains(&self.replica);
        if elsewhere || restless || now.saturating_sub(self.heard) > MOVE_AFTER {
            self.move_on(around);
        }
        let mut asks = Vec::new();
        match &mut self.phase {
            Phase::Opening { nonce, sent } => {
                if sent.is_none_or(|sent| now - sent > OPEN_AGAIN) {
                    *sent = Some(now);
                    asks.push(Ask::Open { nonce: *nonce, timeout: self.timeout });
                }
            }
            Phase::Open(_) => self.work(around, &mut asks),
        }
        asks
    }

    fn work(&mut self, around: &mut Surroundings<'_>, asks: &mut Vec<Ask>) {
        let now = around.facts.now;
        let Phase::Open(session) = &mut self.phase else { return };
        session.closing |= !around.draining && !around.hushed && around.prng.permille(2);
        if session.closing {
            let events = session.last_event();
            asks.push(Ask::Close { session: session.id });
            // Should the answer be lost, this one tells that the session is over.
            asks.push(Ask::KeepAlive { session: session.id, asked: now, events });
            return;
        }
        if around.hushed {
            self.keep_alive(now, asks);
            return;
        }
        if session.is_ready() {
            let open = session.pending.len();
            let (client, session_id) = (self.index, session.id);
            let worker = Worker { client, session: session_id, open, draining: around.draining };
            for call in around.workload.plan(&worker, around.prng, &around.facts) {
                let body = around.catalog.request(&call);
                session.add(body, Some(call));
            }
            if session.reads.len() < 2
                && let Some(call) = around.workload.plan_read(&worker, around.prng)
            {
                self.next_read += 1;
                session.add_read(self.next_read, call);
            }
        }
        if around.giving_up {
            let workload = &*around.workload;
            around.counts.cancels += session.give_up(|call| workload.may_starve(call));
        } else if !around.draining && around.prng.permille(40) {
            around.counts.cancels += session.give_up_one(around.prng);
        }
        if around.plant == Some(Plant::Renumbering) && around.prng.permille(20) {
            session.renumber();
        }
        if around.plant == Some(Plant::EarlyAcknowledgement) && around.prng.permille(100) {
            session.acknowledge_early();
        }
        around.counts.retries += session.send_due(now, asks);
        session.ask_due(now, self.index, self.seen, around.catalog, asks);
        if let Some(acknowledged) = session.take_acknowledgement(around.prng) {
            asks.push(Ask::Acknowledge { session: session.id, acknowledged });
        }
        self.keep_alive(now, asks);
    }

    fn keep_alive(&mut self, now: u64, asks: &mut Vec<Ask>) {
        let Phase::Open(session) = &self.phase else { return };
        if now.saturating_sub(self.kept_alive) > KEEP_ALIVE {
            self.kept_alive = now;
            let events = session.last_event();
            asks.push(Ask::KeepAlive { session: session.id, asked: now, events });
        }
    }

    /// Hears a message of its replica.
    pub(crate) fn hear(&mut self, tell: Tell, around: &mut Surroundings<'_>) -> Checked {
        let now = around.facts.now;
        if now < self.silent_until {
            return Ok(());
        }
        self.heard = now;
        match tell {
            Tell::Opened { nonce, session } => self.opened(nonce, session, around),
            Tell::Busy => Ok(()),
            Tell::Away => {
                self.move_on(around);
                Ok(())
            }
            Tell::Alive { session, asked } => {
                if let Phase::Open(own) = &mut self.phase
                    && own.id == session
                {
                    own.lease = own.lease.max(asked + self.timeout);
                    own.lives_in_order |= around.in_order;
                }
                Ok(())
            }
            Tell::Event { session, number, payload } => {
                let Phase::Open(own) = &mut self.phase else { return Ok(()) };
                if own.id == session && own.take_event(number) {
                    return around.workload.timed_event(session, &payload, &around.facts);
                }
                Ok(())
            }
            Tell::Over { session, .. } if Some(session) == self.session() => self.over(around),
            Tell::Over { .. } => Ok(()),
            Tell::Reply { session, number, step, outcome } => {
                self.replied(session, number, (step, &outcome), around)
            }
            Tell::Refused { session, number, refusal } => {
                let Phase::Open(own) = &mut self.phase else { return Ok(()) };
                if own.id != session {
                    return Ok(());
                }
                if matches!(refusal, gesmas_machine::Refusal::OutOfOrder { .. }) {
                    around.counts.out_of_order += 1;
                }
                own.refused(number, &refusal)
            }
            Tell::ReadReply { correlation, step, result } => {
                self.read_replied(correlation, step, &result, around)
            }
        }
    }

    /// Its session is over. From when it last asked and was told that the session lives, the
    /// service owes it a whole timeout.
    fn over(&mut self, around: &mut Surroundings<'_>) -> Checked {
        let now = around.facts.now;
        if let Phase::Open(own) = &self.phase
            && now < own.lease
            && !own.closing
        {
            let (id, early) = (own.id, (own.lease - now) / MILLISECOND);
            let message = format!("session {id} is over {early} ms before its lease");
            return Err(Violation::new("sessions", message));
        }
        let owed = matches!(&self.phase, Phase::Open(own) if own.lives_in_order && !own.closing);
        if around.in_order && around.outside && owed {
            let message = format!("{:?} of a living client is over", self.session());
            return Err(Violation::new("sessions", message));
        }
        self.lose_session(around)
    }

    fn opened(
        &mut self,
        nonce: u128,
        session: Result<SessionId, gesmas_machine::Refusal>,
        around: &mut Surroundings<'_>,
    ) -> Checked {
        match &self.phase {
            Phase::Opening { nonce: own, .. } if *own == nonce => {}
            Phase::Open(own) if own.nonce == nonce => {
                return match session {
                    // One that is over is opened anew, and a replica that catches up tells of it.
                    Ok(id) if id == own.id || around.facts.over.contains_key(&id) => Ok(()),
                    // The second opening came after the end of the session, of which the client has
                    // yet to hear.
                    Ok(_) if around.facts.over.contains_key(&own.id) => Ok(()),
                    other => Err(Violation::new(
                        "sessions",
                        format!("a second opening of session {} gave {other:?}", own.id),
                    )),
                };
            }
            _ => return Ok(()),
        }
        let Ok(id) = session else {
            return Err(Violation::new("sessions", format!("an opening was refused: {session:?}")));
        };
        let mut session = Session::new(id, nonce);
        session.lives_in_order = around.in_order;
        match around.workload.first_put(around.prng) {
            Some(put) => session.add(around.catalog.request(&put), Some(put)),
            None => session.add(around.catalog.put(around.workload.class()), None),
        }
        if let Some(call) = around.workload.creation() {
            session.add(around.catalog.request(&call), None);
        }
        self.phase = Phase::Open(Box::new(session));
        Ok(())
    }

    fn replied(
        &mut self,
        session: SessionId,
        number: u64,
        (step, outcome): (Step, &Outcome),
        around: &mut Surroundings<'_>,
    ) -> Checked {
        self.seen = self.seen.max(step);
        let Phase::Open(own) = &mut self.phase else { return Ok(()) };
        if own.id != session {
            return Ok(());
        }
        let Some(Pending { call, given_up, .. }) = own.take_answered(number) else { return Ok(()) };
        around.counts.replies += 1;
        match &call {
            Some(call) => {
                let ended = Ended::Reply { session, number, step, outcome, given_up };
                around.workload.ended(self.index, call, &ended, &around.facts)
            }
            None if outcome.is_ok() => Ok(()),
            None => Err(Violation::new("classes", format!("the set-up ended with {outcome:?}"))),
        }
    }

    fn read_replied(
        &mut self,
        correlation: u64,
        step: Step,
        result: &Result<Outcome, gesmas_machine::Refusal>,
        around: &mut Surroundings<'_>,
    ) -> Checked {
        let Phase::Open(own) = &mut self.phase else { return Ok(()) };
        match result {
            Ok(outcome) => {
                let Some(asked) = own.reads.remove(&correlation) else { return Ok(()) };
                around.counts.reads += 1;
                if step < asked.seen {
                    let message =
                        format!("a read of step {step} was answered after {}", asked.seen);
                    return Err(Violation::new("reads", message));
                }
                self.seen = self.seen.max(step);
                around.workload.read_ended(self.index, &asked.call, outcome)
            }
            // The session may be over; that is said in its own message.
            Err(_) => Ok(()),
        }
    }
}

fn nonce(prng: &mut Prng) -> u128 {
    u128::from(prng.next()) << 64 | u128::from(prng.next())
}
