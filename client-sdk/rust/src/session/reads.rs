//! The reads of a session: not numbered, sent once the requests before them are on their way.
//!
//! Invariants: a read names the last request that was *sent* before it, so that the server never
//! waits for one that was given up unsent; reads are sent in the order in which they were made,
//! except those that wait for a pause or a class of their own.
//! A read has no effect, so its failure is always certain.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gesmas_protocol::{
    Bytes, CallError, CancelReason, ClientMessage, ErrorId, OverReason, Position, Read, ReadError,
    Refusal,
};

use super::{core::Output, pacing::Pacing, pipeline::Pipeline};
use crate::{
    clock::Moment,
    failure::{CallFailure, NotSentReason},
};

/// What a read asks for.
#[derive(Clone, Debug)]
pub(crate) struct ReadTarget {
    pub(crate) class: String,
    pub(crate) object: String,
    pub(crate) method: String,
    pub(crate) signature: u64,
    pub(crate) arguments: Bytes,
    pub(crate) stale: bool,
    /// Whether it is made by nobody in particular.
    pub(crate) anonymous: bool,
}

impl ReadTarget {
    /// Bytes of its texts and arguments.
    pub(crate) const fn size(&self) -> usize {
        self.class.len() + self.object.len() + self.method.len() + self.arguments.len()
    }
}

#[derive(Debug)]
struct Entry<T> {
    ticket: T,
    /// Number of the session's last request when the read was made.
    made_after: u64,
    deadline: Option<Moment>,
    message: Read,
    anonymous: bool,
    /// The class that it waits for.
    class_needed: bool,
}

/// The reads. See the file's head.
#[derive(Debug)]
pub(super) struct Reads<T> {
    entries: BTreeMap<u64, Entry<T>>,
    ready: BTreeSet<u64>,
    paused: BTreeSet<(Moment, u64)>,
    deadlines: BTreeSet<(Moment, u64)>,
    pacing: Pacing,
}

impl<T> Reads<T> {
    pub(super) const fn new(pacing: Pacing) -> Self {
        Self {
            entries: BTreeMap::new(),
            ready: BTreeSet::new(),
            paused: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            pacing,
        }
    }

    /// Adds a read; correlations rise.
    pub(super) fn push(
        &mut self,
        correlation: u64,
        made_after: u64,
        target: ReadTarget,
        deadline: Option<Moment>,
        ticket: T,
    ) {
        let ReadTarget { class, object, method, signature, arguments, stale, anonymous } = target;
        let message = Read {
            correlation,
            session: None,
            after: 0,
            seen: Position::default(),
            time_left_ns: None,
            class,
            object,
            method,
            signature,
            arguments,
            stale,
        };
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, correlation));
        }
        let class_needed = false;
        let entry = Entry { ticket, made_after, deadline, message, anonymous, class_needed };
        self.entries.insert(correlation, entry);
        self.ready.insert(correlation);
    }

    /// Whether a read is open.
    pub(super) fn contains(&self, correlation: u64) -> bool {
        self.entries.contains_key(&correlation)
    }

    /// Everything has to be sent again: there is a new connection.
    pub(super) fn rewind(&mut self) {
        self.paused.clear();
        let waiting = self.entries.iter().filter(|(_, entry)| !entry.class_needed);
        self.ready = waiting.map(|(&correlation, _)| correlation).collect();
    }

    /// The end of a read arrived. When it needs a class, its name is the output.
    pub(super) fn reply(
        &mut self,
        now: Moment,
        correlation: u64,
        result: Result<Bytes, ReadError>,
        id: Option<ErrorId>,
    ) -> Option<Output<T>> {
        let entry = self.entries.get_mut(&correlation)?;
        let result = match result {
            Err(ReadError::Refused(Refusal::ClassUnknown { class })) => {
                entry.class_needed = true;
                return Some(Output::ClassNeeded(class, id));
            }
            Err(ReadError::Refused(refusal)) if passes(&refusal) => {
                self.paused.insert((now + self.pacing.pause(), correlation));
                return None;
            }
            Err(ReadError::Refused(refusal)) => Err(CallFailure::Refused(refusal, id)),
            Err(ReadError::Failed(error)) => Err(CallFailure::Failed(error, id)),
            Ok(result) => Ok(result),
        };
        self.pacing.reset();
        self.resolve(correlation, result)
    }

    /// A class is there, or (with an error) will not be.
    pub(super) fn class_settled(
        &mut self,
        class: &str,
        failure: Option<&CallFailure>,
        outputs: &mut VecDeque<Output<T>>,
    ) {
        let concerned = |entry: &Entry<T>| entry.class_needed && entry.message.class == class;
        let concerned: Vec<u64> = (self.entries.iter())
            .filter(|(_, entry)| concerned(entry))
            .map(|(&correlation, _)| correlation)
            .collect();
        for correlation in concerned {
            if let Some(failure) = failure {
                outputs.extend(self.resolve(correlation, Err(failure.clone())));
            } else if let Some(entry) = self.entries.get_mut(&correlation) {
                entry.class_needed = false;
                self.ready.insert(correlation);
            }
        }
    }

    fn resolve(
        &mut self,
        correlation: u64,
        result: Result<Bytes, CallFailure>,
    ) -> Option<Output<T>> {
        let entry = self.entries.remove(&correlation)?;
        self.ready.remove(&correlation);
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, correlation));
        }
        Some(Output::Resolved(entry.ticket, result))
    }

    /// Takes all out: the session is over.
    pub(super) fn drain(&mut self, reason: OverReason, outputs: &mut VecDeque<Output<T>>) {
        let failure = CallFailure::NotSent(NotSentReason::SessionOver(reason));
        for (_, entry) in std::mem::take(&mut self.entries) {
            outputs.push_back(Output::Resolved(entry.ticket, Err(failure.clone())));
        }
        self.ready.clear();
        self.paused.clear();
        self.deadlines.clear();
    }

    pub(super) fn poll_timeout(&self, connected: bool) -> Option<Moment> {
        let pause = self.paused.first().filter(|_| connected);
        pause.into_iter().chain(self.deadlines.first()).map(|&(time, _)| time).min()
    }

    pub(super) fn pass_time(&mut self, now: Moment, outputs: &mut VecDeque<Output<T>>) {
        while let Some(&(time, correlation)) = self.paused.first()
            && time <= now
        {
            self.paused.pop_first();
            if self.entries.contains_key(&correlation) {
                self.ready.insert(correlation);
            }
        }
        while let Some(&(time, correlation)) = self.deadlines.first()
            && time <= now
        {
            let failure = CallFailure::Failed(CallError::Cancelled(CancelReason::Deadline), None);
            self.deadlines.pop_first();
            outputs.extend(self.resolve(correlation, Err(failure)));
        }
    }

    /// Sends what may be sent.
    pub(super) fn transmit(
        &mut self,
        now: Moment,
        session: u64,
        seen: Position,
        pipeline: &Pipeline<T>,
        send: &mut impl FnMut(&ClientMessage),
    ) {
        while let Some(&correlation) = self.ready.first() {
            let entry = self.entries.get_mut(&correlation).expect("a ready read is open");
            let Some(after) = pipeline.read_after(entry.made_after) else { return };
            self.ready.remove(&correlation);
            if !entry.anonymous {
                entry.message.session = Some(session);
                entry.message.after = after;
            }
            entry.message.seen = seen;
            entry.message.time_left_ns = entry
                .deadline
                .map(|deadline| u64::try_from(deadline.since(now).as_nanos()).unwrap_or(u64::MAX));
            send(&ClientMessage::Read(entry.message.clone()));
        }
    }
}

/// Whether a refusal passes by itself, so that the same message may succeed later.
pub(crate) fn passes(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::OutOfOrder { .. }
        | Refusal::ClassPending { .. }
        | Refusal::MigrationPending { .. }
        | Refusal::Busy
        | Refusal::Unavailable => true,
        Refusal::Limit(limit) => {
            matches!(limit.name.as_str(), "requests_per_session" | "replies_per_session")
        }
        Refusal::Forgotten
        | Refusal::ClassUnknown { .. }
        | Refusal::SessionUnknown
        | Refusal::Invalid { .. }
        | Refusal::Denied { .. } => false,
    }
}
