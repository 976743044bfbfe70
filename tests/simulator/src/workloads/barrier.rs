//! Barriers: three parties wait for each other, again and again, and some give up or die.
//!
//! At most as many pass in one generation as there are parties; nobody passes a generation before
//! enough have come for it and all before; a session passes generations in order.

use std::collections::BTreeMap;

use gesmas_abi::value::to_bytes;
use gesmas_machine::{Machine, SessionId};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, demand},
};

const CHECKER: &str = "barrier";
const PARTIES: u64 = 3;

pub(super) struct Barriers {
    begun: u64,
    given_up: u64,
    passed: BTreeMap<u64, u64>,
    last: BTreeMap<SessionId, (u64, u64)>,
}

impl Barriers {
    pub(super) fn new() -> Self {
        Self { begun: 0, given_up: 0, passed: BTreeMap::new(), last: BTreeMap::new() }
    }

    fn pass(&mut self, session: SessionId, number: u64, generation: u64) -> Checked {
        let passed = self.passed.entry(generation).or_default();
        *passed += 1;
        let passed = *passed;
        demand(passed <= PARTIES, CHECKER, || {
            format!("{passed} parties passed in generation {generation}")
        })?;
        let came = self.begun - self.given_up;
        demand(came >= PARTIES * (generation + 1), CHECKER, || {
            format!("generation {generation} passed, but only {came} parties came")
        })?;
        let before = self.last.insert(session, (number, generation));
        // One call at a time: numbers and generations of a session rise together.
        let rises = before.is_none_or(|(last, passed)| last < number && passed < generation);
        demand(rises, CHECKER, || {
            format!("session {session} passed generation {generation} after {before:?}")
        })
    }
}

impl Workload for Barriers {
    fn class(&self) -> &'static str {
        "Barrier"
    }

    fn creation(&self) -> Option<Call> {
        let arguments = to_bytes(&u32::try_from(PARTIES).expect("it is small"));
        Some(Call {
            object: object("Barrier", "epoch"),
            method: "init",
            arguments,
            key: 0,
            time_left: None,
        })
    }

    fn may_starve(&self, _call: &Call) -> bool {
        true
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, _facts: &Facts<'_>) -> Vec<Call> {
        if worker.draining || worker.open > 0 || prng.permille(300) {
            return Vec::new();
        }
        self.begun += 1;
        let object = object("Barrier", "epoch");
        vec![Call {
            object,
            method: "wait",
            arguments: Vec::new(),
            key: self.begun,
            time_left: None,
        }]
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        match ended {
            Ended::Unknown => Ok(()),
            Ended::Reply { session, number, outcome: Ok(bytes), .. } => {
                let generation = decode(CHECKER, bytes)?;
                self.pass(*session, *number, generation)
            }
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => {
                self.given_up += 1;
                Ok(())
            }
            Ended::Reply { outcome: Err(error), .. } => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn stuck(&self, pending: &[&'static str]) -> Checked {
        let waiting = pending.iter().filter(|method| **method == "wait").count() as u64;
        demand(waiting < PARTIES, CHECKER, || format!("{waiting} parties wait and none goes on"))
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        let object = object("Barrier", "epoch");
        let call =
            Call { object, method: "waiting", arguments: Vec::new(), key: 0, time_left: None };
        let waiting: u32 = super::read(CHECKER, machine, catalog, &call)?.unwrap_or(0);
        demand(waiting == 0, CHECKER, || format!("{waiting} parties are counted, and nobody waits"))
    }
}
