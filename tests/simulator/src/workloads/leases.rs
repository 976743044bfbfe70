//! Leases: clients take one lease, renew it, give it back, or forget it, and it runs out.
//!
//! Tokens rise in the order of the steps that gave them out. Whoever renews a lease or gives it back at a
//! step holds it then: its token is the last that was given out before, and it had not been given back.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use gesmas_abi::value::{Bytes, Time, to_bytes};
use gesmas_lease::Granted;
use gesmas_machine::{CallError, Machine, Step};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    schedule::MILLISECOND,
    verdict::{Checked, demand},
};

const CHECKER: &str = "lease";

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Asking,
    Holding { token: u64, key: u64, until: u64 },
    Telling { token: u64, key: u64 },
}

pub(super) struct Leases {
    stages: BTreeMap<usize, Stage>,
    /// Tokens by the steps that gave them out.
    granted: BTreeSet<(Step, u64)>,
    /// Tokens by the steps at which they were good for something.
    good: BTreeSet<(Step, u64)>,
    /// When tokens were given back.
    given_back: BTreeMap<u64, Step>,
    next_key: u64,
}

impl Leases {
    pub(super) fn new() -> Self {
        Self {
            stages: BTreeMap::new(),
            granted: BTreeSet::new(),
            good: BTreeSet::new(),
            given_back: BTreeMap::new(),
            next_key: 0,
        }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Vec<Call> {
        self.next_key += 1;
        let object = object("Lease", "nightly");
        vec![Call { object, method, arguments, key: self.next_key, time_left: None }]
    }

    /// What is known of all tokens fits together. Replies come in any order.
    fn check(&self, (step, token): (Step, u64)) -> Checked {
        let before = self.granted.range(..(step, 0)).next_back();
        let after = self.granted.range((Step(step.0 + 1), 0)..).next();
        let rises = before.is_none_or(|(_, other)| *other <= token)
            && after.is_none_or(|(_, other)| *other > token);
        demand(rises, CHECKER, || {
            format!("token {token} at {step} is between {before:?} and {after:?}")
        })?;
        // Another that was good for something later was given out later, or is this one.
        let next = self.good.range((Step(step.0 + 1), 0)..).next();
        demand(next.is_none_or(|(_, other)| *other >= token), CHECKER, || {
            format!("token {token} was there at {step}, and then {next:?} was good")
        })?;
        let gone = self.given_back.get(&token).is_some_and(|gone| *gone < step);
        demand(!gone, CHECKER, || format!("token {token} at {step} had been given back"))
    }

    fn took(
        &mut self,
        client: usize,
        Granted { token, key, .. }: Granted,
        step: Step,
        facts: &Facts<'_>,
    ) -> Checked {
        let is_new = self.granted.iter().all(|(_, other)| *other != token);
        self.granted.insert((step, token));
        demand(is_new, CHECKER, || format!("token {token} was given out twice"))?;
        self.check((step, token))?;
        let until = facts.now + (token * 37 % 600) * MILLISECOND;
        self.stages.insert(client, Stage::Holding { token, key, until });
        Ok(())
    }

    fn was_good(&mut self, token: u64, step: Step, gives_back: bool) -> Checked {
        self.good.insert((step, token));
        self.check((step, token))?;
        if gives_back {
            let before = self.given_back.insert(token, step);
            demand(before.is_none(), CHECKER, || format!("token {token} was given back twice"))?;
            let later = self.good.range((Step(step.0 + 1), 0)..).find(|(_, other)| *other == token);
            demand(later.is_none(), CHECKER, || {
                format!("token {token} was given back at {step}, and good at {later:?}")
            })?;
        }
        Ok(())
    }
}

impl Workload for Leases {
    fn class(&self) -> &'static str {
        "Lease"
    }

    fn creation(&self) -> Option<Call> {
        None
    }

    fn may_starve(&self, _call: &Call) -> bool {
        false
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, facts: &Facts<'_>) -> Vec<Call> {
        let stage = *self.stages.entry(worker.client).or_insert(Stage::Idle);
        let duration = Duration::from_millis(prng.between(50, 1_200));
        match stage {
            Stage::Holding { token, key, until } if until <= facts.now => {
                let choice = prng.below(5);
                if choice == 0 {
                    // It is forgotten, and runs out.
                    self.stages.insert(worker.client, Stage::Idle);
                    return Vec::new();
                }
                self.stages.insert(worker.client, Stage::Telling { token, key });
                if choice < 3 && !worker.draining {
                    return self.call("renew", to_bytes(&(key, duration)));
                }
                self.call("release", to_bytes(&key))
            }
            Stage::Idle if worker.open == 0 && !worker.draining && prng.permille(500) => {
                self.stages.insert(worker.client, Stage::Asking);
                self.call("acquire", to_bytes(&(Bytes::from("client"), duration)))
            }
            _ => Vec::new(),
        }
    }

    fn ended(
        &mut self,
        client: usize,
        call: &Call,
        ended: &Ended<'_>,
        facts: &Facts<'_>,
    ) -> Checked {
        let stage = self.stages.insert(client, Stage::Idle);
        match (ended, stage) {
            (Ended::Unknown, _) => Ok(()),
            (
                Ended::Reply { step, outcome: Ok(bytes), .. },
                Some(Stage::Telling { token, key }),
            ) => {
                self.was_good(token, *step, call.method == "release")?;
                if call.method == "renew" {
                    let _: Time = decode(CHECKER, bytes)?;
                    let until = facts.now + (step.0 % 600) * MILLISECOND;
                    self.stages.insert(client, Stage::Holding { token, key, until });
                }
                Ok(())
            }
            (Ended::Reply { step, outcome: Ok(bytes), .. }, _) => {
                self.took(client, decode(CHECKER, bytes)?, *step, facts)
            }
            // The class's own error for a call that was given up while it waited.
            (Ended::Reply { outcome: Err(CallError::Failed(_)), given_up: true, .. }, _) => Ok(()),
            // Too late: it has run out.
            (
                Ended::Reply { outcome: Err(CallError::Failed(_)), .. },
                Some(Stage::Telling { .. }),
            ) => Ok(()),
            (Ended::Reply { outcome: Err(error), .. }, _) if is_given_up(error) => Ok(()),
            (Ended::Reply { outcome: Err(error), .. }, _) => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, _catalog: &Catalog) -> Checked {
        let view = machine.object(&object("Lease", "nightly"), 1);
        let timers = view.iter().map(|view| view.timers.len()).sum::<usize>();
        demand(timers <= 1, CHECKER, || format!("the lease has {timers} timers in the end"))
    }
}
