//! What differs between two states: the name of the first record that does, or all differences in
//! words.
//!
//! Records come in one order: objects, sessions, classes, and what belongs to none of them. Two
//! replicas find the first that differs by telling each other sums, page by page; whoever has both
//! states sees what is different in them.
//! Invariant: nothing here trusts the sums that a state holds of itself when both states are at
//! hand, since a damaged record may still have its old sum.
//! Not here: how replicas talk to each other (the server).

use std::{
    fmt,
    iter::Peekable,
    ops::Bound::{Excluded, Unbounded},
};

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::{
    encoding,
    image::Snapshot,
    names::{AlarmId, ClassName, InvocationId, ObjectName, SessionId},
    state::{Alarm, Blocked, Class, Invocation, Object, Session, State, Status},
    sum::{Kind, Sum},
};

/// A part of the state that has a sum of its own. In the order in which states are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RecordName {
    /// An object, with its semaphores, waiters, timers and journals.
    Object(ObjectName),
    /// A session, with its replies and events.
    Session(SessionId),
    /// A class.
    Class(ClassName),
    /// What belongs to none of them: the next numbers, the time, the votes.
    Rest,
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(name) => write!(f, "object {name}"),
            Self::Session(id) => write!(f, "session {id}"),
            Self::Class(name) => write!(f, "class {name}"),
            Self::Rest => f.write_str("what belongs to no object, session or class"),
        }
    }
}

/// Records in order, with their sums.
pub type Sums = Vec<(RecordName, Sum)>;

/// One difference between two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub record: RecordName,
    /// Which part of it.
    pub part: String,
    /// What the first state has there, for people; none if it has nothing.
    pub left: Option<String>,
    /// What the second state has there.
    pub right: Option<String>,
}

impl Snapshot {
    /// Sums of the records that come after one of them, or of the first ones; at most so many, and
    /// none when there are no more.
    #[must_use]
    pub fn sums(&self, after: Option<&RecordName>, most: usize) -> Sums {
        records(&self.state, after).take(most).collect()
    }

    /// The first record after one of them that is not as somebody else's [`Snapshot::sums`] say.
    #[must_use]
    pub fn first_difference(
        &self,
        after: Option<&RecordName>,
        theirs: &[(RecordName, Sum)],
    ) -> Option<RecordName> {
        let mut own = records(&self.state, after);
        for (name, sum) in theirs {
            match own.next() {
                Some((found, own_sum)) if found == *name && own_sum == *sum => {}
                Some((found, _)) => return Some(found.min(name.clone())),
                None => return Some(name.clone()),
            }
        }
        let next = own.next().map(|(found, _)| found);
        next.filter(|_| theirs.is_empty())
    }

    /// What is different in another state, at most so many differences.
    #[must_use]
    pub fn differences(&self, other: &Self, most: usize) -> Vec<Difference> {
        let mut found = Found { differences: Vec::new(), most };
        let (left, right) = (&self.state, &other.state);
        for (name, one, another) in pairs(&left.objects, &right.objects) {
            found.object((left, right), &name, one.map(AsRef::as_ref), another.map(AsRef::as_ref));
        }
        for (id, one, another) in pairs(&left.sessions, &right.sessions) {
            found.session(id, one.map(AsRef::as_ref), another.map(AsRef::as_ref));
        }
        for (name, one, another) in pairs(&left.classes, &right.classes) {
            let record = RecordName::Class(name);
            let part = |class: &Class| {
                let older: Vec<_> = class.older.iter().map(|version| version.code).collect();
                let next = class.next.as_ref().map(|next| next.version.code);
                format!("code {}, {:?}, before {older:?}, next {next:?}", class.code, class.status)
            };
            found.compare(&record, "class", one.map(part), another.map(part));
        }
        found.rest(left, right);
        found.differences
    }
}

/// All records with their sums, from behind one of them on.
fn records<'a>(
    state: &'a State,
    after: Option<&RecordName>,
) -> Box<dyn Iterator<Item = (RecordName, Sum)> + 'a> {
    let objects = match after {
        None => Some(Unbounded),
        Some(RecordName::Object(name)) => Some(Excluded(name.clone())),
        Some(_) => None,
    };
    let sessions = match after {
        None | Some(RecordName::Object(_)) => Some(Unbounded),
        Some(RecordName::Session(id)) => Some(Excluded(*id)),
        Some(_) => None,
    };
    let classes = match after {
        None | Some(RecordName::Object(_) | RecordName::Session(_)) => Some(Unbounded),
        Some(RecordName::Class(name)) => Some(Excluded(name.clone())),
        Some(RecordName::Rest) => None,
    };
    let rest = after != Some(&RecordName::Rest);
    let objects = objects.into_iter().flat_map(|from| state.objects.range((from, Unbounded)));
    let objects = objects.map(|(name, object)| (RecordName::Object(name.clone()), object.sum));
    let sessions = sessions.into_iter().flat_map(|from| state.sessions.range((from, Unbounded)));
    let sessions = sessions.map(|(id, session)| (RecordName::Session(*id), session.sum));
    let classes = classes.into_iter().flat_map(|from| state.classes.range((from, Unbounded)));
    let classes = classes.map(|(name, class)| {
        let sum = Sum::of(Kind::State, &(name, class.digest()));
        (RecordName::Class(name.clone()), sum)
    });
    let rest = rest.then(|| (RecordName::Rest, rest_sum(state)));
    Box::new(objects.chain(sessions).chain(classes).chain(rest))
}

fn rest_sum(state: &State) -> Sum {
    Sum::of(
        Kind::State,
        &(
            (state.epoch, state.step, state.now, state.ballot, &state.genesis),
            (state.next, state.state_bytes, state.total, &state.checkpoints, state.dispute),
        ),
    )
}

/// How a part of a state is shown.
type Words = fn(&State) -> String;

/// Differences that were found so far.
struct Found {
    differences: Vec<Difference>,
    most: usize,
}

impl Found {
    fn compare(
        &mut self,
        record: &RecordName,
        part: impl Into<String>,
        left: Option<String>,
        right: Option<String>,
    ) {
        if left != right && self.differences.len() < self.most {
            self.differences.push(Difference {
                record: record.clone(),
                part: part.into(),
                left,
                right,
            });
        }
    }

    /// Compares what two maps hold, by their encodings; words are made only of what differs.
    fn maps<K: Ord + Clone, V: Clone + Serialize>(
        &mut self,
        record: &RecordName,
        (left, right): (&OrdMap<K, V>, &OrdMap<K, V>),
        part: impl Fn(&K) -> String,
        words: impl Fn(&V) -> String,
    ) {
        for (key, one, another) in pairs(left, right) {
            let bytes = |value: Option<&V>| value.map(encoding::encode);
            if bytes(one) != bytes(another) {
                self.compare(record, part(&key), one.map(&words), another.map(&words));
            }
        }
    }

    fn object(
        &mut self,
        (left, right): (&State, &State),
        name: &ObjectName,
        one: Option<&Object>,
        another: Option<&Object>,
    ) {
        let record = &RecordName::Object(name.clone());
        let (Some(one), Some(another)) = (one, another) else {
            let there =
                |object: Option<&Object>| object.map(|object| format!("there, {}", head(object)));
            return self.compare(record, "object", there(one), there(another));
        };
        self.compare(record, "object", Some(head(one)), Some(head(another)));
        self.maps(
            record,
            (&one.entries, &another.entries),
            |key| format!("entry {}", show(key)),
            |entry| show(&entry.value),
        );
        self.maps(
            record,
            (&one.semaphores, &another.semaphores),
            |key| format!("semaphore {}", show(key)),
            |semaphore| {
                let (count, ticket) = (semaphore.count, semaphore.next_ticket);
                let waiters: Vec<_> = semaphore.waiters.values().map(|id| id.0).collect();
                let owners: Vec<_> = semaphore.owners.iter().map(|id| id.0).collect();
                format!(
                    "count {count}, next ticket {ticket}, waiters {waiters:?}, permits {owners:?}"
                )
            },
        );
        self.maps(
            record,
            (&one.initial_counts, &another.initial_counts),
            |key| format!("first count of semaphore {}", show(key)),
            ToString::to_string,
        );
        let waiters = |object: &Object, state: &State| -> OrdMap<InvocationId, Invocation> {
            let all = object.semaphores.values().flat_map(|semaphore| semaphore.waiters.values());
            let found = all.filter_map(|id| state.invocations.get(id).map(|found| (*id, found)));
            found.map(|(id, found)| (id, found.as_ref().clone())).collect()
        };
        let waiters = (waiters(one, left), waiters(another, right));
        for (id, one, another) in pairs(&waiters.0, &waiters.1) {
            self.invocation(record, id, one, another);
        }
        let alarms = |object: &Object, state: &State| -> OrdMap<_, _> {
            let all = object.alarms.iter();
            all.filter_map(|id| Some((*id, state.alarms.get(id)?.as_ref().clone()))).collect()
        };
        let alarms = (alarms(one, left), alarms(another, right));
        self.maps(
            record,
            (&alarms.0, &alarms.1),
            |id: &AlarmId| format!("alarm {id}"),
            |alarm: &Alarm| format!("{alarm:?}"),
        );
        let faults = |object: &Object| Some(format!("{:?}", object.faults));
        self.compare(record, "faults", faults(one), faults(another));
        let sum = |object: &Object| Some(object.sum.to_string());
        self.compare(record, "sum of its records", sum(one), sum(another));
    }

    fn invocation(
        &mut self,
        record: &RecordName,
        id: InvocationId,
        one: Option<&Invocation>,
        another: Option<&Invocation>,
    ) {
        let part = format!("invocation {id}");
        let words = |invocation: &Invocation| {
            let frame = &invocation.frame;
            format!(
                "{}({}) of {:?} by {}, {}, deadline {:?}, permits {:?}, cancelled {:?}",
                frame.method,
                show(&frame.arguments),
                invocation.origin,
                invocation.principal,
                status(&invocation.status),
                invocation.deadline,
                invocation.permits,
                invocation.cancelled,
            )
        };
        self.compare(record, part.clone(), one.map(words), another.map(words));
        let (Some(one), Some(another)) = (one, another) else { return };
        let (mut left, mut right) = (one.frame.journal.reader(), another.frame.journal.reader());
        for call in 1.. {
            let (one, another) = (left.next(), right.next());
            if one != another {
                let words = |call: (u64, crate::host_call::Answer)| {
                    format!("call {:016x}, answered {:?}", call.0, call.1)
                };
                let part = format!("{part}, call {call} of its journal");
                return self.compare(record, part, one.map(words), another.map(words));
            }
            if one.is_none() {
                return;
            }
        }
    }

    fn session(&mut self, id: SessionId, one: Option<&Session>, another: Option<&Session>) {
        let record = &RecordName::Session(id);
        let head = |session: &Session| {
            format!(
                "principal {}, timeout {} ns, last request {}, next event {}, acknowledged {}",
                session.principal,
                session.timeout,
                session.last_admitted,
                session.next_event,
                session.events_acknowledged
            )
        };
        self.compare(record, "session", one.map(head), another.map(head));
        let (Some(one), Some(another)) = (one, another) else { return };
        self.maps(
            record,
            (&one.open, &another.open),
            |n| format!("request {n}"),
            |open| format!("open: {open:?}"),
        );
        self.maps(
            record,
            (&one.replies, &another.replies),
            |n| format!("reply {n}"),
            |reply| format!("of step {}: {:?}", reply.step, reply.outcome),
        );
        let events = |session: &Session| Some(format!("{:?}", session.events));
        self.compare(record, "events", events(one), events(another));
        let owned =
            |session: &Session| Some(format!("{:?}, {:?}", session.permits, session.watches));
        self.compare(record, "permits and watches", owned(one), owned(another));
        let sum = |session: &Session| Some(session.sum.to_string());
        self.compare(record, "sum of its records", sum(one), sum(another));
    }

    fn rest(&mut self, left: &State, right: &State) {
        let record = &RecordName::Rest;
        let parts: [(&str, Words); 9] = [
            ("group", |state| format!("{:?}", state.genesis)),
            ("epoch", |state| state.epoch.to_string()),
            ("step", |state| state.step.to_string()),
            ("time", |state| state.now.to_string()),
            ("ballot", |state| format!("{:?}", state.ballot)),
            ("next numbers", |state| format!("{:?}", state.next)),
            ("bytes of all objects", |state| state.state_bytes.to_string()),
            ("votes", |state| format!("{:?}, {:?}", state.checkpoints, state.dispute)),
            ("sum of all records", |state| state.total.to_string()),
        ];
        for (part, words) in parts {
            self.compare(record, part, Some(words(left)), Some(words(right)));
        }
    }
}

fn head(object: &Object) -> String {
    let Object { incarnation, code, created_with, bytes, .. } = object;
    format!("life {incarnation}, code {code}, created with {created_with}, {bytes} bytes")
}

fn status(status: &Status) -> String {
    let Status::Blocked(blocked) = status else { return format!("{status:?}") };
    let Blocked { semaphore, ticket, owner, timeout, since, checksum } = blocked;
    format!(
        "waits at semaphore {} with ticket {ticket} since {since}, timeout {timeout:?}, permit for \
         {owner:?}, call {checksum:016x}",
        show(semaphore)
    )
}

/// Bytes as text, shortened.
fn show(bytes: &[u8]) -> String {
    const MOST: usize = 64;
    let (shown, rest) = bytes.split_at(bytes.len().min(MOST));
    let shown = shown.escape_ascii();
    if rest.is_empty() { format!("{shown}") } else { format!("{shown}… ({} bytes)", bytes.len()) }
}

/// What two maps have under each key that one of them has, in the order of keys.
fn pairs<'a, K: Ord + Clone, V: Clone>(
    left: &'a OrdMap<K, V>,
    right: &'a OrdMap<K, V>,
) -> impl Iterator<Item = (K, Option<&'a V>, Option<&'a V>)> {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    std::iter::from_fn(move || {
        let key = smaller(&mut left, &mut right)?;
        let one = left.next_if(|(found, _)| **found == key).map(|(_, value)| value);
        let another = right.next_if(|(found, _)| **found == key).map(|(_, value)| value);
        Some((key, one, another))
    })
}

fn smaller<'a, K: Ord + Clone + 'a, V: 'a>(
    left: &mut Peekable<impl Iterator<Item = (&'a K, &'a V)>>,
    right: &mut Peekable<impl Iterator<Item = (&'a K, &'a V)>>,
) -> Option<K> {
    match (left.peek(), right.peek()) {
        (Some((one, _)), Some((another, _))) => Some((*one).min(*another).clone()),
        (one, another) => one.or(another).map(|(key, _)| (*key).clone()),
    }
}
