//! What clients do, and what must come of it.
//!
//! A workload plans the calls of its clients, hears how each ended, and keeps books: every result is
//! checked when it comes, the whole when the run is over. A call whose session ended before its
//! reply came is unknown: it ran or it did not, once at most.
//! Not here: how calls travel (`clients/`).

mod barrier;
mod cells;
mod counter;
mod elections;
mod holds;
mod jobs;
mod latch;
mod leases;
mod limits;
mod lock;
mod members;
mod ordered;
mod queue;
mod registers;
mod rival;
mod tuples;
mod vessels;
mod yard;

use std::collections::BTreeMap;

use gesmas_abi::value::{Value, from_bytes};
use gesmas_machine::{CallError, CancelReason, Machine, Outcome, SessionEnd, SessionId, Step};

use crate::{
    catalog::{Call, Catalog},
    cluster::LeaderTimes,
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, Violation},
};

/// How a call ended.
pub(crate) enum Ended<'a> {
    /// With a reply; its client may have given it up before.
    Reply { session: SessionId, number: u64, step: Step, outcome: &'a Outcome, given_up: bool },
    /// Its session is over.
    Unknown,
}

/// What workloads may know besides.
pub(crate) struct Facts<'a> {
    /// Virtual time.
    pub(crate) now: u64,
    /// Since when the cluster is in order, as far as what is due by itself is concerned.
    pub(crate) in_order_since: Option<u64>,
    /// Sessions that are over, as any replica said.
    pub(crate) over: &'a BTreeMap<SessionId, SessionEnd>,
    /// When leaders' clocks reached which time.
    pub(crate) leader_times: &'a LeaderTimes,
}

/// A client that asks for work.
pub(crate) struct Worker {
    /// Which of all clients.
    pub(crate) client: usize,
    /// Its session.
    pub(crate) session: SessionId,
    /// Its calls that have not ended.
    pub(crate) open: usize,
    /// Whether only what was begun is to be finished.
    pub(crate) draining: bool,
}

/// See the file's head.
pub(crate) trait Workload {
    /// The class it uses.
    fn class(&self) -> &'static str;

    /// The call that creates its object, if it must be created.
    fn creation(&self) -> Option<Call>;

    /// The call that loads its class, if clients do not all load the same.
    fn first_put(&mut self, _prng: &mut Prng) -> Option<Call> {
        None
    }

    /// Whether calls may have to be given up in the end, since nobody will let them go on.
    fn may_starve(&self, _call: &Call) -> bool;

    /// The next calls of a client.
    fn plan(&mut self, worker: &Worker, prng: &mut Prng, facts: &Facts<'_>) -> Vec<Call>;

    /// The next read of a client.
    fn plan_read(&mut self, _worker: &Worker, _prng: &mut Prng) -> Option<Call> {
        None
    }

    /// A call has ended.
    fn ended(
        &mut self,
        client: usize,
        call: &Call,
        ended: &Ended<'_>,
        facts: &Facts<'_>,
    ) -> Checked;

    /// The run is about to end.
    fn note_end(&mut self, _facts: &Facts<'_>) {}

    /// A read has ended.
    fn read_ended(&mut self, _client: usize, _call: &Call, _outcome: &Outcome) -> Checked {
        Ok(())
    }

    /// An event has come, in its order and once.
    fn event(&mut self, _session: SessionId, _payload: &[u8]) -> Checked {
        Ok(())
    }

    /// The same, where it matters when it came.
    fn timed_event(&mut self, session: SessionId, payload: &[u8], _facts: &Facts<'_>) -> Checked {
        self.event(session, payload)
    }

    /// The cluster has been in order for a while, and calls of these methods wait: may they?
    fn stuck(&self, _pending: &[&'static str]) -> Checked {
        Ok(())
    }

    /// Nothing is pending any more, and this is the state.
    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked;
}

/// How many workloads there are in a run.
pub(crate) const NUMBER: usize = 8;

/// The workloads of every run, and one of those that take turns, that on the wanted class if there is
/// one; client `n` works for number `n % NUMBER`.
pub(crate) fn all(
    prng: &mut Prng,
    catalog: &Catalog,
    wanted: Option<&str>,
) -> [Box<dyn Workload>; NUMBER] {
    let drawn = IN_TURN[prng.index(IN_TURN.len())];
    let in_turn = in_turn(wanted.unwrap_or(drawn), prng);
    [
        Box::new(counter::Counters::new()),
        Box::new(queue::Queues::new(prng)),
        Box::new(lock::Locks::new()),
        Box::new(barrier::Barriers::new()),
        Box::new(yard::Yards::new()),
        Box::new(rival::Rivals::new(catalog)),
        Box::new(vessels::Vessels::new()),
        in_turn,
    ]
}

/// The classes of which each run has but one.
pub const IN_TURN: [&str; 12] = [
    "Semaphore",
    "RwLock",
    "PriorityQueue",
    "DelayQueue",
    "WorkQueue",
    "Latch",
    "Lease",
    "Membership",
    "TupleSpace",
    "Register",
    "Election",
    "RateLimiter",
];

/// A workload on one of them.
fn in_turn(class: &str, prng: &mut Prng) -> Box<dyn Workload> {
    match class {
        "Semaphore" => Box::new(holds::Holds::new(holds::Kind::Semaphore)),
        "RwLock" => Box::new(holds::Holds::new(holds::Kind::RwLock)),
        "PriorityQueue" => Box::new(ordered::Ordered::new(ordered::Kind::Priority)),
        "DelayQueue" => Box::new(ordered::Ordered::new(ordered::Kind::Delay)),
        "WorkQueue" => Box::new(jobs::Jobs::new()),
        "Latch" => Box::new(latch::Latches::new(prng)),
        "Lease" => Box::new(leases::Leases::new()),
        "Membership" => Box::new(members::Members::new()),
        "TupleSpace" => Box::new(tuples::Tuples::new()),
        "Register" => Box::new(registers::Registers::new()),
        "Election" => Box::new(elections::Elections::new()),
        "RateLimiter" => Box::new(limits::Limits::new(prng)),
        other => panic!("no workload takes turns on {other}"),
    }
}

/// The decoded result of a call.
fn decode<T: Value>(checker: &'static str, bytes: &[u8]) -> Checked<T> {
    from_bytes(bytes)
        .map_err(|error| Violation::new(checker, format!("a result does not decode: {error:?}")))
}

/// A call that its caller gave up.
fn is_given_up(error: &CallError) -> bool {
    matches!(error, CallError::Cancelled(CancelReason::Caller))
}

/// An end that no call may have here.
fn unexpected(checker: &'static str, call: &Call, error: &CallError) -> Violation {
    Violation::new(checker, format!("{}/{} ended with: {error}", call.object, call.method))
}

/// Runs a read on a final state.
fn read<T: Value>(
    checker: &'static str,
    machine: &mut Machine<SimulatedEngine>,
    catalog: &Catalog,
    call: &Call,
) -> Checked<Option<T>> {
    let read = gesmas_machine::Read {
        after: None,
        principal: "simulator".into(),
        object: call.object.clone(),
        method: gesmas_machine::MethodName::new(call.method).expect("a name"),
        signature: catalog.signature(call),
        arguments: call.arguments.clone(),
    };
    match machine.read(read) {
        Ok(Ok(bytes)) => decode(checker, &bytes).map(Some),
        Ok(Err(CallError::ObjectUnknown)) | Err(_) => Ok(None),
        Ok(Err(error)) => Err(unexpected(checker, call, &error)),
    }
}
