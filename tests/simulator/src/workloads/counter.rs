//! Counters: many increment one number, and read it.
//!
//! Increments return the new count, so each one tells its place in the order: no two have the same,
//! none has one that was passed before it began, none has more than were begun. A read lies between
//! what had been acknowledged when it was asked and what had been begun when it was answered.
//! In the end the count is what succeeded and at most what is unknown besides: exactly once.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_abi::value::to_bytes;
use gesmas_machine::{CallError, Machine, Outcome};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, read, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, Violation, demand},
};

const CHECKER: &str = "counter";
/// Increments of one client that are open at most.
const PIPELINE: usize = 6;

pub(super) struct Counters {
    begun: u64,
    succeeded: u64,
    unknown: u64,
    /// Greatest count that a client has seen.
    floor: u64,
    seen: BTreeSet<u64>,
    /// The floor when a call or read began.
    floors: BTreeMap<u64, u64>,
    next_key: u64,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self {
            begun: 0,
            succeeded: 0,
            unknown: 0,
            floor: 0,
            seen: BTreeSet::new(),
            floors: BTreeMap::new(),
            next_key: 0,
        }
    }

    fn call(&mut self, method: &'static str) -> Call {
        self.next_key += 1;
        self.floors.insert(self.next_key, self.floor);
        let object = object("Counter", "visits");
        Call { object, method, arguments: Vec::new(), key: self.next_key, time_left: None }
    }

    fn check(&mut self, call: &Call, bytes: &[u8], least_above: u64) -> Checked<u64> {
        let count: i64 = decode(CHECKER, bytes)?;
        let floor = self.floors.remove(&call.key).expect("every call has its floor") + least_above;
        let begun = self.begun;
        let count = u64::try_from(count)
            .map_err(|_| Violation::new(CHECKER, format!("the count is {count}")))?;
        demand((floor..=begun).contains(&count), CHECKER, || {
            format!(
                "{} returned {count}, but it was at least {floor} before the call began and only \
                 {begun} increments were begun",
                call.method
            )
        })?;
        self.floor = self.floor.max(count);
        Ok(count)
    }
}

impl Workload for Counters {
    fn class(&self) -> &'static str {
        "Counter"
    }

    fn creation(&self) -> Option<Call> {
        None
    }

    fn may_starve(&self, _call: &Call) -> bool {
        false
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, _facts: &Facts<'_>) -> Vec<Call> {
        // Some clients only read: a read follows its session's own updates, and would never be served
        // where those do not get through.
        let only_reads = (worker.client / super::NUMBER) % 2 == 1;
        if worker.draining || only_reads || worker.open >= PIPELINE {
            return Vec::new();
        }
        let number = prng.index(PIPELINE + 1 - worker.open);
        self.begun += number as u64;
        (0..number).map(|_| self.call("increment")).collect()
    }

    fn plan_read(&mut self, worker: &Worker, prng: &mut Prng) -> Option<Call> {
        (!worker.draining && prng.permille(800)).then(|| self.call("get"))
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        match ended {
            Ended::Unknown => {
                self.unknown += 1;
                self.floors.remove(&call.key);
                Ok(())
            }
            Ended::Reply { outcome: Ok(bytes), .. } => {
                let count = self.check(call, bytes, 1)?;
                self.succeeded += 1;
                demand(self.seen.insert(count), CHECKER, || {
                    format!("two increments returned {count}")
                })
            }
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => {
                self.floors.remove(&call.key);
                Ok(())
            }
            Ended::Reply { outcome: Err(error), .. } => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn read_ended(&mut self, _client: usize, call: &Call, outcome: &Outcome) -> Checked {
        match outcome {
            Ok(bytes) => self.check(call, bytes, 0).map(|_| ()),
            // Reads create nothing, and a counter at 0 is not there.
            Err(CallError::ObjectUnknown) => {
                let zero = to_bytes(&0_i64);
                self.check(call, &zero, 0).map(|_| ())
            }
            Err(error) => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        let call = self.call("get");
        let count: i64 = read(CHECKER, machine, catalog, &call)?.unwrap_or(0);
        let (least, most) = (self.succeeded, self.succeeded + self.unknown);
        let within = u64::try_from(count).is_ok_and(|count| (least..=most).contains(&count));
        demand(within, CHECKER, || {
            format!("the count is {count}, but {least} increments succeeded and {most} may have")
        })
    }
}
