//! The numbered requests of a session: what is open, what is on its way, what is sent next.
//!
//! Requests lie in the order of their numbers. Those before `resume_at` are *in flight*: sent on
//! this connection and not refused since. The rest waits, and is sent in order: going back is
//! moving `resume_at` back, so that no request can be sent before one that precedes it.
//! Invariants: a request keeps its number, predecessor and acknowledgements from its first sending
//! on, and is sent again only while it is not known to be admitted: what is admitted is answered
//! sooner or later, on any connection to which the session is attached. One that was sent leaves
//! only with a reply, or with the session; one that is given up is sent
//! as a cancel in its place, so that those behind it still find their predecessor. What it is granted
//! all the same is undone (`undo.rs`).
//! Not here: connections and sessions (`core.rs`), the verdict on refusals (`refusal.rs`).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use gesmas_protocol::{
    Acknowledged, CallError, Cancel, CancelReason, ClientMessage, ErrorId, Outcome, OverReason,
    Request, RequestBody,
};

use super::{acknowledgements::Acknowledgements, core::Output, pacing::Pacing, undo::Undo};
use crate::{
    clock::Moment,
    failure::{CallFailure, NotSentReason, UnknownReason},
};

/// One open request. `T` is whatever the caller is told through.
#[derive(Debug)]
pub(super) struct Entry<T> {
    /// Gone once the caller was told.
    pub(super) ticket: Option<T>,
    /// Always a [`ClientMessage::Request`]; kept as the message so that sending copies nothing.
    message: ClientMessage,
    deadline: Option<Moment>,
    /// Its place in the table of alarms: the deadline, or the end of the grace after it.
    alarm: Option<Moment>,
    sent: bool,
    /// Given up: whenever it is sent again, it is sent as a cancel.
    pub(super) given_up: bool,
    /// Why it is not admitted, unless a copy of it that is on its way is, before its cancel.
    pub(super) refused: Option<CallFailure>,
    /// What takes back what it is granted, if its caller no longer wants it.
    undo: Option<Undo>,
}

impl<T> Entry<T> {
    fn request_mut(&mut self) -> &mut Request {
        let ClientMessage::Request(request) = &mut self.message else {
            unreachable!("an entry holds a request")
        };
        request
    }

    fn request(&self) -> &Request {
        let ClientMessage::Request(request) = &self.message else {
            unreachable!("an entry holds a request")
        };
        request
    }
}

/// Why nothing more is sent at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    /// A pause.
    Until(Moment),
    /// The first waiting request needs this class.
    Class(String),
}

/// The requests. See the file's head.
#[derive(Debug)]
pub(super) struct Pipeline<T> {
    pub(super) entries: BTreeMap<u64, Entry<T>>,
    last_number: u64,
    last_sent: u64,
    resume_at: u64,
    in_flight: usize,
    window: usize,
    pub(super) stall: Option<Stall>,
    pub(super) pacing: Pacing,
    /// Requests in flight that were given up since.
    cancels: Vec<u64>,
    /// When the caller of an open request is told that its deadline passed.
    alarms: BTreeSet<(Moment, u64)>,
    /// How long after its deadline a connected request still waits for the server's word.
    grace: Duration,
}

impl<T> Pipeline<T> {
    pub(super) const fn new(window: usize, grace: Duration, pacing: Pacing) -> Self {
        Self {
            entries: BTreeMap::new(),
            last_number: 0,
            last_sent: 0,
            resume_at: 0,
            in_flight: 0,
            window,
            stall: None,
            pacing,
            cancels: Vec::new(),
            alarms: BTreeSet::new(),
            grace,
        }
    }

    /// The first request gets this number.
    pub(super) const fn begin_at(&mut self, number: u64) {
        self.last_number = number - 1;
    }

    /// How many requests may be in flight: what the server advertised, or less.
    pub(super) const fn set_window(&mut self, window: usize) {
        self.window = window;
    }

    /// Appends a request and gives its number.
    pub(super) fn push(
        &mut self,
        body: RequestBody,
        deadline: Option<Moment>,
        ticket: T,
        undo: Option<Undo>,
    ) -> u64 {
        self.last_number += 1;
        let number = self.last_number;
        let message = ClientMessage::Request(Request {
            session: 0,
            number,
            previous: 0,
            time_left_ns: None,
            acknowledged: Acknowledged::default(),
            body,
        });
        if let Some(deadline) = deadline {
            self.alarms.insert((deadline, number));
        }
        let entry = Entry {
            ticket: Some(ticket),
            message,
            deadline,
            alarm: deadline,
            sent: false,
            given_up: false,
            refused: None,
            undo,
        };
        self.entries.insert(number, entry);
        number
    }

    /// Uses up a number for a request that is never going to be sent.
    pub(super) const fn skip(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The predecessor that a read names which was made after request `number`: the last request up
    /// to there that was sent; none while one that is to be sent has not been.
    pub(super) fn read_after(&self, number: u64) -> Option<u64> {
        if number <= self.last_sent {
            return Some(number);
        }
        let waiting = self.entries.range(self.last_sent + 1..=number).next().is_some();
        (!waiting).then_some(self.last_sent)
    }

    /// The caller gives a request up. One that was never sent is simply gone; one that was keeps its
    /// undo until its end is known.
    pub(super) fn cancel(&mut self, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.ticket = None;
        if let Some(time) = entry.alarm.take() {
            self.alarms.remove(&(time, number));
        }
        if entry.sent {
            self.withdraw(number);
        } else {
            self.remove(number);
        }
    }

    /// A request is cancelled, and its caller waits on to hear what became of it. One that was never
    /// sent from here is sent as a cancel, since somebody else may have sent it.
    pub(super) fn withdraw(&mut self, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        if std::mem::replace(&mut entry.given_up, true) {
            return;
        }
        if number < self.resume_at {
            self.cancels.push(number);
        } else if matches!(self.stall, Some(Stall::Class(_))) {
            // If this is the one that needs the class, nobody does any more; if another one does, the
            // server says so again.
            self.stall = None;
        }
    }

    /// A request can never be admitted, and is cancelled in its place. Its caller is told why once the
    /// cancel is answered: a copy that is still on its way may be admitted before it.
    pub(super) fn refuse(&mut self, number: u64, failure: CallFailure) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.refused = Some(failure);
            self.withdraw(number);
        }
    }

    /// Whether a request is in flight, so that a refusal of it is news.
    pub(super) fn is_in_flight(&self, number: u64) -> bool {
        number < self.resume_at && self.entries.contains_key(&number)
    }

    /// The first request that is not in flight, if it needs this class.
    pub(super) fn first_waiting_for(&self, wanted: &str) -> Option<u64> {
        let (&number, entry) = self.entries.range(self.resume_at..).next()?;
        let needed = match &entry.request().body {
            RequestBody::Call { class, .. }
            | RequestBody::CreateObject { class, .. }
            | RequestBody::RemoveObject { class, .. }
            | RequestBody::PutClass { class, .. }
            | RequestBody::RemoveClass { class } => class == wanted,
            RequestBody::Kill { .. }
            | RequestBody::KillSession { .. }
            | RequestBody::SetLimit { .. }
            | RequestBody::EndFault { .. } => false,
        };
        needed.then_some(number)
    }

    /// Whether one of the requests from `first` to `last` is in flight.
    pub(super) fn any_in_flight(&self, first: u64, last: u64) -> bool {
        let end = (last + 1).min(self.resume_at);
        first < end && self.entries.range(first..end).next().is_some()
    }

    /// The highest number that was ever sent.
    pub(super) const fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// Everything from `number` on has to be sent again.
    pub(super) fn rewind(&mut self, number: u64) {
        if number < self.resume_at {
            self.resume_at = number;
            self.in_flight = self.entries.range(..number).count();
        }
    }

    /// The session is attached, and `admitted` is the last request that was admitted. The replies of
    /// those up to there come by themselves; all others go again, and so does what was given up.
    pub(super) fn attached(&mut self, admitted: u64) {
        self.resume_at = admitted + 1;
        self.in_flight = self.entries.range(..self.resume_at).count();
        self.repeat_cancels(admitted);
    }

    /// The request up to which all that were sent have been answered.
    pub(super) fn answered(&self) -> u64 {
        let open = self.entries.values().find(|entry| entry.sent);
        open.map_or(self.last_sent, |entry| entry.request().previous)
    }

    /// Cancels requests that were given up once more, up to a number: a cancel may have been lost.
    pub(super) fn repeat_cancels(&mut self, last: u64) {
        let end = self.resume_at.min(last + 1);
        let given_up = self.entries.range(..end).filter(|(_, entry)| entry.given_up);
        self.cancels = given_up.map(|(&number, _)| number).collect();
    }

    /// Nothing more is sent before a pause is over; gives its end.
    pub(super) fn pause(&mut self, now: Moment) {
        self.stall = Some(Stall::Until(now + self.pacing.pause()));
    }

    /// The end of a request arrived. None for one that is not open: a repetition.
    pub(super) fn resolve(
        &mut self,
        number: u64,
        id: Option<ErrorId>,
        outcome: Outcome,
    ) -> Option<Output<T>> {
        let entry = self.remove(number)?;
        self.pacing.reset();
        let cancelled = Err(CallError::Cancelled(CancelReason::Caller));
        if let (Some(failure), true) = (entry.refused, outcome == cancelled) {
            return entry.ticket.map(|ticket| Output::Resolved(ticket, Err(failure)));
        }
        match (entry.ticket, entry.undo, outcome) {
            (Some(ticket), Some(undo), Ok(result)) => Some(Output::Granted(ticket, result, undo)),
            (Some(ticket), _, outcome) => {
                let outcome = outcome.map_err(|error| CallFailure::Failed(error, id));
                Some(Output::Resolved(ticket, outcome))
            }
            (None, Some(undo), Ok(result)) => undo.of(&result).map(Output::Undo),
            (None, _, _) => None,
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, number: u64) -> Option<Entry<T>> {
        let entry = self.entries.remove(&number)?;
        if number < self.resume_at {
            self.in_flight -= 1;
        }
        if let Some(time) = entry.alarm {
            self.alarms.remove(&(time, number));
        }
        Some(entry)
    }

    /// Takes all out: the session is over.
    pub(super) fn drain(&mut self, reason: OverReason, outputs: &mut VecDeque<Output<T>>) {
        for (_, entry) in std::mem::take(&mut self.entries) {
            let Some(ticket) = entry.ticket else { continue };
            let failure = if entry.sent {
                CallFailure::Unknown(UnknownReason::SessionOver(reason))
            } else {
                CallFailure::NotSent(NotSentReason::SessionOver(reason))
            };
            outputs.push_back(Output::Resolved(ticket, Err(failure)));
        }
        self.alarms.clear();
        self.cancels.clear();
        self.in_flight = 0;
        self.stall = None;
    }

    /// When something is to be done although nothing arrives.
    pub(super) fn poll_timeout(&self, connected: bool) -> Option<Moment> {
        let pause = match self.stall {
            Some(Stall::Until(end)) if connected => Some(end),
            _ => None,
        };
        let alarm = self.alarms.first().map(|&(time, _)| time);
        pause.into_iter().chain(alarm).min()
    }

    /// Tells callers whose deadline passed. A connected request gets a grace, since the server's
    /// word on it is most likely on its way and says more than this side can know.
    pub(super) fn pass_deadlines(
        &mut self,
        now: Moment,
        connected: bool,
        outputs: &mut VecDeque<Output<T>>,
    ) {
        while let Some(&(time, number)) = self.alarms.first()
            && time <= now
        {
            self.alarms.pop_first();
            let entry = self.entries.get_mut(&number).expect("an alarm belongs to an open request");
            entry.alarm = None;
            let deadline = entry.deadline.expect("an alarm belongs to a deadline");
            if !entry.sent {
                let entry = self.remove(number).expect("it was there");
                let failure = CallFailure::NotSent(NotSentReason::Deadline);
                outputs.extend(entry.ticket.map(|ticket| Output::Resolved(ticket, Err(failure))));
            } else if connected && time < deadline + self.grace {
                entry.alarm = Some(deadline + self.grace);
                self.alarms.insert((deadline + self.grace, number));
            } else {
                let ticket = entry.ticket.take();
                self.cancel(number);
                let failure = CallFailure::Unknown(UnknownReason::Deadline);
                outputs.extend(ticket.map(|ticket| Output::Resolved(ticket, Err(failure))));
            }
        }
    }

    /// Sends what may be sent.
    pub(super) fn transmit(
        &mut self,
        now: Moment,
        session: u64,
        acknowledgements: &mut Acknowledgements,
        send: &mut impl FnMut(&ClientMessage),
    ) {
        for number in std::mem::take(&mut self.cancels) {
            if let Some(entry) = self.entries.get(&number)
                && number < self.resume_at
            {
                send(&cancel_of(entry.request()));
            }
        }
        match self.stall {
            Some(Stall::Until(end)) if end <= now => self.stall = None,
            Some(_) => return,
            None => {}
        }
        while self.in_flight < self.window {
            let Some((&number, entry)) = self.entries.range_mut(self.resume_at..).next() else {
                break;
            };
            let (first, deadline) = (!entry.sent, entry.deadline);
            let request = entry.request_mut();
            request.session = session;
            if first {
                request.previous = self.last_sent;
                request.acknowledged = acknowledgements.take();
                self.last_sent = number;
            }
            request.acknowledged.events = acknowledgements.events();
            request.time_left_ns = deadline.map(|deadline| nanoseconds(deadline, now));
            // Past its deadline a request must not start any more, which only a cancel ensures.
            if entry.given_up || (!first && deadline.is_some_and(|deadline| deadline <= now)) {
                send(&cancel_of(entry.request()));
            } else {
                send(&entry.message);
            }
            entry.sent = true;
            self.in_flight += 1;
            self.resume_at = number + 1;
        }
    }
}

fn nanoseconds(deadline: Moment, now: Moment) -> u64 {
    u64::try_from(deadline.since(now).as_nanos()).unwrap_or(u64::MAX)
}

fn cancel_of(request: &Request) -> ClientMessage {
    ClientMessage::Cancel(Cancel {
        session: request.session,
        number: request.number,
        previous: request.previous,
        acknowledged: request.acknowledged.clone(),
    })
}
