//! Limits: clients take permits of a rate limiter, more than there are.
//!
//! Clients know the time of the cluster from stamps that they ask for in between (the class `Yard` gives
//! them, once one of its own clients has loaded it), and steps tell what was granted between two of them: never more than the bucket holds and
//! what came in since. Of one session, who asks first is served first. Whoever waits is served before
//! the run ends, as nobody has to be given up.
//! Not here: that what is refused was not there; others may have had it of whom nothing is known.

use std::{collections::BTreeMap, time::Duration};

use gesmas_abi::value::{Time, to_bytes};
use gesmas_machine::{CallError, Machine, SessionId, Step};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, read, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    schedule::MILLISECOND,
    verdict::{Checked, demand},
};

const CHECKER: &str = "rate limiter";
/// Calls of one client that are open at most.
const PIPELINE: usize = 4;
/// What a bucket holds.
const BURST: u32 = 5;
/// Permits that come in during the period.
const PERMITS: u32 = 10;

pub(super) struct Limits {
    /// From one permit to the next.
    interval: u64,
    /// Permits of the calls that are open, and of those that were.
    asked: BTreeMap<u64, u32>,
    /// Permits by the step at which they were taken.
    granted: BTreeMap<Step, u32>,
    /// When calls were served, by their sessions and numbers.
    served: BTreeMap<(SessionId, u64), Step>,
    stamps: BTreeMap<Step, u64>,
    next_key: u64,
}

impl Limits {
    pub(super) fn new(prng: &mut Prng) -> Self {
        Self {
            interval: prng.between(10, 60) * MILLISECOND,
            asked: BTreeMap::new(),
            granted: BTreeMap::new(),
            served: BTreeMap::new(),
            stamps: BTreeMap::new(),
            next_key: 0,
        }
    }

    fn plan_one(&mut self, prng: &mut Prng) -> Call {
        self.next_key += 1;
        let key = self.next_key;
        if prng.permille(250) {
            let object = object("Yard", "yard");
            return Call { object, method: "stamp", arguments: Vec::new(), key, time_left: None };
        }
        let permits = u32::try_from(prng.between(1, u64::from(BURST))).expect("it is small");
        self.asked.insert(key, permits);
        let patience = Duration::from_millis(prng.between(1, 400));
        let (method, arguments) = match prng.below(10) {
            0..2 => ("try_acquire", to_bytes(&permits)),
            2..4 => ("acquire_for", to_bytes(&(permits, patience))),
            _ => ("acquire", to_bytes(&permits)),
        };
        let object = object("RateLimiter", "mail");
        Call { object, method, arguments, key, time_left: None }
    }

    /// Permits were taken.
    fn took(&mut self, permits: u32, (session, number): (SessionId, u64), step: Step) -> Checked {
        *self.granted.entry(step).or_default() += permits;
        let before = self.served.range((session, 0)..(session, number)).next_back();
        let after = self.served.range((session, number + 1)..(session, u64::MAX)).next();
        let in_order = before.is_none_or(|(_, other)| *other <= step)
            && after.is_none_or(|(_, other)| step <= *other);
        demand(in_order, CHECKER, || {
            format!(
                "call {number} of session {session} was served at {step}, between {before:?} \
                 and {after:?}"
            )
        })?;
        self.served.insert((session, number), step);
        Ok(())
    }

    /// Between any two stamps no more was taken than the bucket holds and what came in: each permit
    /// that was taken is worth an interval, and what is taken runs ahead of time by a full bucket at
    /// most.
    fn check(&self) -> Checked {
        let interval = i128::from(self.interval);
        let (mut taken, mut least) = (0, None::<i128>);
        let mut granted = self.granted.iter().peekable();
        for (step, time) in &self.stamps {
            while let Some((_, permits)) = granted.next_if(|(at, _)| *at < step) {
                taken += i128::from(*permits);
            }
            let ahead = taken * interval - i128::from(*time);
            let from = *least.get_or_insert(ahead);
            let most = from + i128::from(BURST) * interval;
            demand(ahead <= most, CHECKER, || {
                let over = (ahead - most) / interval + 1;
                format!("at {step} up to {over} permits were taken that were not there")
            })?;
            least = Some(from.min(ahead));
        }
        Ok(())
    }
}

impl Workload for Limits {
    fn class(&self) -> &'static str {
        "RateLimiter"
    }

    fn creation(&self) -> Option<Call> {
        let period = Duration::from_nanos(self.interval * u64::from(PERMITS));
        let (object, arguments) =
            (object("RateLimiter", "mail"), to_bytes(&(PERMITS, period, BURST)));
        Some(Call { object, method: "init", arguments, key: 0, time_left: None })
    }

    fn may_starve(&self, _call: &Call) -> bool {
        false
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, _facts: &Facts<'_>) -> Vec<Call> {
        if worker.draining || worker.open >= PIPELINE {
            return Vec::new();
        }
        let number = prng.index(PIPELINE + 1 - worker.open);
        (0..number).map(|_| self.plan_one(prng)).collect()
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        let Ended::Reply { session, number, step, outcome, given_up } = *ended else {
            return Ok(());
        };
        match (call.method, outcome) {
            ("stamp", Ok(bytes)) => {
                let (Time(time), _): (Time, u64) = decode(CHECKER, bytes)?;
                self.stamps.insert(step, time);
                self.check()
            }
            ("acquire", Ok(_)) => self.took(self.asked[&call.key], (session, number), step),
            (_, Ok(bytes)) => {
                let took: bool = decode(CHECKER, bytes)?;
                let permits = self.asked[&call.key];
                if took { self.took(permits, (session, number), step) } else { Ok(()) }
            }
            // The class's own error for a call that was given up while it waited.
            ("acquire" | "acquire_for", Err(CallError::Failed(_))) if given_up => Ok(()),
            (_, Err(error)) if is_given_up(error) => Ok(()),
            (_, Err(error)) => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        self.check()?;
        let object = object("RateLimiter", "mail");
        let call =
            Call { object, method: "waiting", arguments: Vec::new(), key: 0, time_left: None };
        let waiting: u64 = read(CHECKER, machine, catalog, &call)?.unwrap_or(0);
        demand(waiting == 0, CHECKER, || format!("{waiting} calls wait, and nobody asked"))
    }
}
