//! Spans of what clients ask for: each begins with a request and ends with its reply.
//!
//! The driver has one of these if its replica exports traces, and none otherwise: then nothing here
//! runs. Calls and creations have spans, and reads; what operators do has none.
//! Invariants: only what is sampled is remembered, at most [`OPEN_MAX`] at a time; whatever is
//! remembered ends: with its reply, with its session, or with this replica. A read whose client is gone
//! is forgotten.
//! Not here: what becomes of a span that has ended (`crate::trace`).

use std::{borrow::Cow, collections::BTreeMap, time::SystemTime};

use gesmas_coroutine::BothEngines;
use gesmas_machine::{InvocationId, Machine, Read, Request, RequestBody, SessionId};
use gesmas_protocol::{self as protocol, CallError, ErrorId, ReadError, Refusal};
use opentelemetry::trace::SpanContext;

use crate::{
    replica::ReadId,
    trace::{Blocked, CallEnd, CallSpan, Coin, ReadSpan, Span, Subject, Tracer},
};

/// Most calls and reads that are remembered, of each: some 300 bytes for each that is blocked.
const OPEN_MAX: usize = 65_536;

/// A call that has not ended.
struct OpenCall {
    subject: Subject,
    parent: Option<SpanContext>,
    start: SystemTime,
    blocked: Option<Blocked>,
}

/// A read that has not ended.
struct OpenRead {
    subject: Subject,
    session: Option<u64>,
    stale: bool,
    start: SystemTime,
}

/// See the file's head.
pub(super) struct Spans {
    tracer: Tracer,
    coin: Coin,
    calls: BTreeMap<(u64, u64), OpenCall>,
    reads: BTreeMap<ReadId, OpenRead>,
    /// The newest blocked invocation that was looked at.
    looked_at: InvocationId,
}

impl Spans {
    pub(super) fn new(tracer: Tracer, machine: &Machine<BothEngines>) -> Self {
        let coin = tracer.coin();
        let (calls, reads) = (BTreeMap::new(), BTreeMap::new());
        let looked_at = newest_blocked(machine);
        Self { tracer, coin, calls, reads, looked_at }
    }

    /// A request came; says whether it has a span from now on. One that comes again goes on in the span
    /// that it has.
    pub(super) fn begin(&mut self, request: &Request) -> bool {
        let (object, method) = match &request.body {
            RequestBody::Call { object, method, .. } => (object, Some(method)),
            RequestBody::CreateObject { object, .. } => (object, None),
            _ => return false,
        };
        let key = (request.place.session.0, request.place.number);
        let parent = self.tracer.parents().of(key);
        if (parent.is_none() && !self.coin.toss()) || self.calls.contains_key(&key) {
            return false;
        }
        if self.calls.len() >= OPEN_MAX {
            self.tracer.lost();
            return false;
        }
        let subject = Subject { object: object.clone(), method: method.cloned() };
        let start = SystemTime::now();
        self.calls.insert(key, OpenCall { subject, parent, start, blocked: None });
        true
    }

    /// Takes down which calls have blocked since the last time. An invocation is in the state from
    /// when it first blocks, under a number that rises, so that only the new ones are looked at.
    pub(super) fn note_blocked(&mut self, machine: &Machine<BothEngines>) {
        for (invocation, request, semaphore) in machine.blocked_since(self.looked_at) {
            self.looked_at = invocation;
            let Some((session, number)) = request else { continue };
            if let Some(call) = self.calls.get_mut(&(session.0, number)) {
                let (at, semaphore) = (SystemTime::now(), semaphore.to_vec());
                call.blocked = Some(Blocked { at, invocation, semaphore });
            }
        }
    }

    /// A reply is known. `replied` says whether its client is connected here.
    pub(super) fn end_call(
        &mut self,
        session: SessionId,
        number: u64,
        position: protocol::Position,
        error: Option<&CallError>,
        replied: bool,
    ) {
        let key = (session.0, number);
        let Some(call) = self.calls.remove(&key) else { return };
        let mut end = error.map_or_else(ok, |error| failed(error, ErrorId::of_step(position)));
        end.step = Some(position.step);
        self.send(key, call, end, replied);
    }

    /// A request was not admitted.
    pub(super) fn refuse_call(&mut self, session: u64, number: u64, refusal: &Refusal) {
        let key = (session, number);
        if let Some(call) = self.calls.remove(&key) {
            self.send(key, call, refused(refusal), true);
        }
    }

    /// A session is over: its calls that were not admitted never are, and the others have ended.
    pub(super) fn end_session(&mut self, session: SessionId) {
        let session = session.0;
        while let Some((key, _)) = self.calls.range((session, 0)..=(session, u64::MAX)).next() {
            let key = *key;
            let call = self.calls.remove(&key).expect("it was just found");
            self.send(key, call, ended_as("session-over"), true);
        }
    }

    /// What becomes of calls is not heard here: the replica stops, or has jumped ahead.
    pub(super) fn end_all(&mut self, machine: &Machine<BothEngines>) {
        for (key, call) in std::mem::take(&mut self.calls) {
            self.send(key, call, ended_as("unknown"), false);
        }
        self.looked_at = newest_blocked(machine);
    }

    fn send(&self, key: (u64, u64), call: OpenCall, outcome: CallEnd, replied: bool) {
        let OpenCall { subject, parent, start, blocked } = call;
        // When it began its parent may not have been there, or not without waiting.
        let parent = parent.or_else(|| self.tracer.parents().of(key));
        let ((session, number), end) = (key, SystemTime::now());
        self.tracer.end(Span::Call(CallSpan {
            subject,
            session,
            number,
            parent,
            start,
            end,
            blocked,
            replied,
            outcome,
        }));
    }

    /// A read came.
    pub(super) fn begin_read(&mut self, id: ReadId, read: &Read, stale: bool) {
        if !self.coin.toss() {
            return;
        }
        if self.reads.len() >= OPEN_MAX {
            return self.tracer.lost();
        }
        let Read { object, method, after, .. } = read;
        let subject = Subject { object: object.clone(), method: Some(method.clone()) };
        let session = after.map(|(session, _)| session.0);
        let start = SystemTime::now();
        self.reads.insert(id, OpenRead { subject, session, stale, start });
    }

    /// A read has ended at a step; `log_id` finds its error in the log.
    pub(super) fn end_read(
        &mut self,
        id: ReadId,
        step: u64,
        error: Option<&ReadError>,
        log_id: Option<ErrorId>,
    ) {
        let Some(read) = self.reads.remove(&id) else { return };
        let OpenRead { subject, session, stale, start } = read;
        let mut outcome = match error {
            None => ok(),
            Some(ReadError::Failed(error)) => failed(error, ErrorId(0)),
            Some(ReadError::Refused(refusal)) => refused(refusal),
        };
        outcome.step = Some(step);
        outcome.id = log_id.map(|id| id.0);
        let end = SystemTime::now();
        self.tracer.end(Span::Read(ReadSpan { subject, session, stale, start, end, outcome }));
    }

    /// Nobody waits for a read any more.
    pub(super) fn forget_read(&mut self, id: ReadId) {
        self.reads.remove(&id);
    }

    /// Counts for operators: spans that were exported, and spans that were lost.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.tracer.counts()
    }
}

fn newest_blocked(machine: &Machine<BothEngines>) -> InvocationId {
    let newest = machine.blocked_since(InvocationId(0)).next_back();
    newest.map_or(InvocationId(0), |(invocation, ..)| invocation)
}

const fn ok() -> CallEnd {
    ended_as("ok")
}

const fn ended_as(code: &'static str) -> CallEnd {
    CallEnd { code: Cow::Borrowed(code), failed: false, step: None, id: None }
}

/// The same rule as for lines of the log: what a class or caller meant is no failure.
fn failed(error: &CallError, id: ErrorId) -> CallEnd {
    let failed = !error.is_meant();
    let id = failed.then_some(id.0);
    CallEnd { code: Cow::Owned(error.code().into()), failed, step: None, id }
}

const fn refused(refusal: &Refusal) -> CallEnd {
    let failed =
        matches!(refusal, Refusal::Limit(_) | Refusal::Invalid { .. } | Refusal::Denied { .. });
    CallEnd { code: Cow::Borrowed(refusal.code()), failed, step: None, id: None }
}
