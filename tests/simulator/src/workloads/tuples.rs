//! Tuples: clients put tuples of two kinds, and copy and take those of one.
//!
//! Tuples are unique. None is taken twice or without having been put, none is copied at a step after which
//! it was taken, and what was given up never shows. In the end every tuple that was put was taken, is
//! there, or went with a taker of whom nothing is known.

use std::collections::BTreeMap;

use gesmas_abi::value::{Bytes, to_bytes};
use gesmas_machine::{CallError, Machine, Step};
use gesmas_tuple_space::{Field, Place, Tuple, Tuples as Page};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, read, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, Violation, demand},
};

const CHECKER: &str = "tuple space";
/// Calls of one client that are open at most.
const PIPELINE: usize = 3;
/// The kinds of tuples.
const NAMES: [&str; 2] = ["a", "b"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Put,
    GivenUp,
    Unknown,
}

#[derive(Debug)]
struct Known {
    fate: Fate,
    taken: Option<Step>,
    /// The last step at which it was copied.
    copied: Option<Step>,
}

pub(super) struct Tuples {
    tuples: BTreeMap<u64, Known>,
    unknown_takers: u64,
    next_key: u64,
}

impl Tuples {
    pub(super) fn new() -> Self {
        Self { tuples: BTreeMap::new(), unknown_takers: 0, next_key: 0 }
    }

    fn plan_one(&mut self, worker: &Worker, prng: &mut Prng) -> Call {
        self.next_key += 1;
        let (key, object) = (self.next_key, object("TupleSpace", "jobs"));
        let name = Field::text(NAMES[prng.index(NAMES.len())]);
        let puts = if (worker.client / super::NUMBER).is_multiple_of(2) { 650 } else { 200 };
        if !prng.permille(puts) {
            let method = if prng.permille(700) { "in" } else { "rd" };
            let arguments = to_bytes(&vec![Place::Exactly(name), Place::Any]);
            return Call { object, method, arguments, key, time_left: None };
        }
        self.tuples.insert(key, Known { fate: Fate::Open, taken: None, copied: None });
        let number = i64::try_from(key).expect("there are few");
        let tuple = vec![name, Field::Number(number)];
        let arguments = to_bytes(&(tuple, None::<std::time::Duration>));
        Call { object, method: "out", arguments, key, time_left: None }
    }

    /// The tuple that a call got.
    fn got(&mut self, bytes: &[u8]) -> Checked<(u64, &mut Known)> {
        let tuple: Tuple = decode(CHECKER, bytes)?;
        let key = match tuple[..] {
            [Field::Text(_), Field::Number(number)] => u64::try_from(number).ok(),
            _ => None,
        };
        let known = key.and_then(|key| Some((key, self.tuples.get_mut(&key)?)));
        known.ok_or_else(|| Violation::new(CHECKER, format!("{tuple:?} was never put")))
    }

    fn found(&mut self, takes: bool, bytes: &[u8], step: Step) -> Checked {
        let (key, known) = self.got(bytes)?;
        demand(known.fate != Fate::GivenUp, CHECKER, || {
            format!("tuple {key} shows although it was given up")
        })?;
        if takes {
            demand(known.taken.is_none(), CHECKER, || format!("tuple {key} was taken twice"))?;
            known.taken = Some(step);
        } else {
            known.copied = known.copied.max(Some(step));
        }
        let right = known.taken.is_none() || known.copied <= known.taken;
        demand(right, CHECKER, || format!("tuple {key} was copied after it was taken: {known:?}"))
    }
}

impl Workload for Tuples {
    fn class(&self) -> &'static str {
        "TupleSpace"
    }

    fn creation(&self) -> Option<Call> {
        None
    }

    fn may_starve(&self, _call: &Call) -> bool {
        true
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, _facts: &Facts<'_>) -> Vec<Call> {
        if worker.draining || worker.open >= PIPELINE {
            return Vec::new();
        }
        let number = prng.index(PIPELINE + 1 - worker.open);
        (0..number).map(|_| self.plan_one(worker, prng)).collect()
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        let (puts, takes) = (call.method == "out", call.method == "in");
        let fate = match ended {
            Ended::Unknown => Fate::Unknown,
            Ended::Reply { step, outcome: Ok(bytes), .. } if !puts => {
                return self.found(takes, bytes, *step);
            }
            Ended::Reply { outcome: Ok(_), .. } => Fate::Put,
            // The class's own error for a call that was given up while it waited.
            Ended::Reply { outcome: Err(CallError::Failed(_)), .. } if !puts => Fate::GivenUp,
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => Fate::GivenUp,
            Ended::Reply { outcome: Err(error), .. } => {
                return Err(unexpected(CHECKER, call, error));
            }
        };
        if !puts {
            self.unknown_takers += u64::from(takes && fate == Fate::Unknown);
            return Ok(());
        }
        let known = self.tuples.get_mut(&call.key).expect("it was planned");
        let shown = known.taken.is_some() || known.copied.is_some();
        known.fate = fate;
        demand(fate != Fate::GivenUp || !shown, CHECKER, || {
            format!("tuple {} shows although it was given up", call.key)
        })
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        let (mut there, mut next) = (Vec::new(), Some(Bytes::default()));
        while let Some(after) = next {
            let arguments = to_bytes(&(vec![Place::Any; 2], after, 10_u32));
            let object = object("TupleSpace", "jobs");
            let call = Call { object, method: "rd_all", arguments, key: 0, time_left: None };
            let page: Option<Page> = read(CHECKER, machine, catalog, &call)?;
            let page = page.unwrap_or(Page { tuples: Vec::new(), next: None });
            there.extend(page.tuples);
            next = page.next;
        }
        let mut lost = 0;
        for (key, known) in &self.tuples {
            let number = Field::Number(i64::try_from(*key).expect("there are few"));
            let there = there.iter().filter(|tuple| tuple[1] == number).count();
            let gone = known.taken.is_some() || known.fate == Fate::GivenUp;
            demand(there <= usize::from(!gone), CHECKER, || {
                format!("tuple {key} is there {there} times: {known:?}")
            })?;
            lost += u64::from(known.fate == Fate::Put && !gone && there == 0);
        }
        let unknown = self.unknown_takers;
        demand(lost <= unknown, CHECKER, || {
            format!("{lost} tuples are lost, and only {unknown} takers have an unknown fate")
        })
    }
}
