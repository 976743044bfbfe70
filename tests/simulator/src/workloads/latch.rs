//! Latches: clients count one down, and wait for it to open.
//!
//! What counting down returns falls by one from step to step, or stays at 0. Nobody who waits goes on
//! before it was counted down often enough, and everybody does then.

use std::collections::BTreeMap;

use gesmas_abi::value::to_bytes;
use gesmas_machine::{Machine, Step};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, read, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, demand},
};

const CHECKER: &str = "latch";
/// Calls of one client that are open at most.
const PIPELINE: usize = 3;

pub(super) struct Latches {
    count: u32,
    /// Calls that may have counted down.
    begun: u64,
    succeeded: u64,
    given_up: u64,
    remaining: BTreeMap<Step, u32>,
    /// The first step at which somebody went on.
    passed: Option<Step>,
    next_key: u64,
}

impl Latches {
    pub(super) fn new(prng: &mut Prng) -> Self {
        Self {
            count: u32::try_from(prng.between(3, 40)).expect("it is small"),
            begun: 0,
            succeeded: 0,
            given_up: 0,
            remaining: BTreeMap::new(),
            passed: None,
            next_key: 0,
        }
    }

    fn counted(&mut self, step: Step, remaining: u32) -> Checked {
        self.succeeded += 1;
        self.remaining.insert(step, remaining);
        let falls = |earlier: u32, later: u32| later < earlier || (earlier, later) == (0, 0);
        let before = self.remaining.range(..step).next_back();
        let after = self.remaining.range(Step(step.0 + 1)..).next();
        let right = before.is_none_or(|(_, earlier)| falls(*earlier, remaining))
            && after.is_none_or(|(_, later)| falls(remaining, *later));
        demand(right, CHECKER, || {
            format!("{remaining} remained at {step}, between {before:?} and {after:?}")
        })?;
        let least = u64::from(self.count).saturating_sub(self.begun - self.given_up);
        demand(u64::from(remaining) >= least, CHECKER, || {
            format!("{remaining} remain, and it cannot be less than {least}")
        })?;
        self.check_passed()
    }

    /// Nobody went on while something remained.
    fn check_passed(&self) -> Checked {
        let Some(passed) = self.passed else { return Ok(()) };
        let later = self.remaining.range(passed..).find(|(_, remaining)| **remaining > 0);
        demand(later.is_none(), CHECKER, || {
            format!("somebody went on at {passed}, and something remained: {later:?}")
        })
    }

    fn went_on(&mut self, step: Step) -> Checked {
        let came = self.begun - self.given_up;
        demand(came >= u64::from(self.count), CHECKER, || {
            format!("somebody went on, and it was counted down {came} times at most")
        })?;
        self.passed = Some(self.passed.map_or(step, |passed| passed.min(step)));
        self.check_passed()
    }
}

impl Workload for Latches {
    fn class(&self) -> &'static str {
        "Latch"
    }

    fn creation(&self) -> Option<Call> {
        let (object, arguments) = (object("Latch", "ready"), to_bytes(&self.count));
        Some(Call { object, method: "init", arguments, key: 0, time_left: None })
    }

    fn may_starve(&self, _call: &Call) -> bool {
        true
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, _facts: &Facts<'_>) -> Vec<Call> {
        if worker.draining || worker.open >= PIPELINE || prng.permille(600) {
            return Vec::new();
        }
        self.next_key += 1;
        let counts = prng.permille(300);
        self.begun += u64::from(counts);
        let method = if counts { "count_down" } else { "wait" };
        let object = object("Latch", "ready");
        vec![Call { object, method, arguments: Vec::new(), key: self.next_key, time_left: None }]
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        let counts = call.method == "count_down";
        match ended {
            Ended::Unknown => Ok(()),
            Ended::Reply { step, outcome: Ok(bytes), .. } if counts => {
                self.counted(*step, decode(CHECKER, bytes)?)
            }
            Ended::Reply { step, outcome: Ok(_), .. } => self.went_on(*step),
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => {
                self.given_up += u64::from(counts);
                Ok(())
            }
            Ended::Reply { outcome: Err(error), .. } => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn stuck(&self, pending: &[&'static str]) -> Checked {
        let open = self.remaining.values().any(|remaining| *remaining == 0);
        let waits = pending.contains(&"wait");
        demand(!(open && waits), CHECKER, || "somebody waits, and nothing remains".into())
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        let object = object("Latch", "ready");
        let call = Call { object, method: "count", arguments: Vec::new(), key: 0, time_left: None };
        let Some(remaining) = read::<u32>(CHECKER, machine, catalog, &call)? else { return Ok(()) };
        let count = u64::from(self.count);
        let most = count.saturating_sub(self.succeeded);
        let least = count.saturating_sub(self.begun - self.given_up);
        demand((least..=most).contains(&u64::from(remaining)), CHECKER, || {
            format!("{remaining} remain in the end, and it must be {least} to {most}")
        })
    }
}
