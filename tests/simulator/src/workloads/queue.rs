//! Queues: producers and consumers on a small bounded queue, most of them blocked.
//!
//! Items are unique. None is consumed twice or without having been produced; those of a session
//! are consumed in its order, by whomever; calls of one session that wait are served in its order;
//! what was given up never shows. In the end every item that was produced was consumed, is in the
//! queue, or went with a consumer of whom nothing is known.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_abi::value::{Bytes, to_bytes};
use gesmas_machine::{Machine, SessionId, Step};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, Violation, demand},
};

const CHECKER: &str = "queue";
/// Calls of one client that are open at most.
const PIPELINE: usize = 5;
/// What items begin with, so that they are known among the values of the object.
const MARK: &[u8] = b"an item ";
/// Keys and values of the object that are looked at in the end.
const ALL_ENTRIES: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Produced,
    GivenUp,
    Unknown,
}

#[derive(Debug)]
struct Item {
    producer: SessionId,
    fate: Fate,
    consumed: Option<Step>,
}

pub(super) struct Queues {
    capacity: u32,
    items: BTreeMap<u64, Item>,
    unknown_consumers: u64,
    /// Of each producer, by the step of their consumption: the items.
    consumed: BTreeMap<(SessionId, Step), BTreeSet<u64>>,
    /// Of each session and method, by number: the step of the end.
    ends: BTreeMap<(SessionId, &'static str, u64), Step>,
    next_key: u64,
}

fn item_bytes(key: u64) -> Vec<u8> {
    [MARK, &key.to_le_bytes()].concat()
}

impl Queues {
    pub(super) fn new(prng: &mut Prng) -> Self {
        Self {
            capacity: u32::try_from(prng.between(1, 4)).expect("it is small"),
            items: BTreeMap::new(),
            unknown_consumers: 0,
            consumed: BTreeMap::new(),
            ends: BTreeMap::new(),
            next_key: 0,
        }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Call {
        Call {
            object: object("Queue", "jobs"),
            method,
            arguments,
            key: self.next_key,
            time_left: None,
        }
    }

    fn plan_one(&mut self, worker: &Worker, prng: &mut Prng) -> Call {
        self.next_key += 1;
        // Clients alternate between being mostly producers and mostly consumers.
        let produces = prng.permille(if (worker.client / super::NUMBER).is_multiple_of(2) {
            850
        } else {
            200
        });
        if !produces {
            return self.call("consume", Vec::new());
        }
        let item = Item { producer: worker.session, fate: Fate::Open, consumed: None };
        self.items.insert(self.next_key, item);
        let bytes = Bytes(item_bytes(self.next_key));
        self.call("produce", to_bytes(&bytes))
    }

    fn consume(&mut self, bytes: &[u8], step: Step) -> Checked {
        let Bytes(bytes) = decode(CHECKER, bytes)?;
        let key = bytes.strip_prefix(MARK).and_then(|key| key.try_into().ok());
        let key = key.map(u64::from_le_bytes);
        let item = key.and_then(|key| self.items.get_mut(&key));
        let (Some(key), Some(item)) = (key, item) else {
            return Err(Violation::new(CHECKER, format!("{bytes:?} was never produced")));
        };
        demand(item.fate != Fate::GivenUp, CHECKER, || {
            format!("item {key} was consumed although its producer gave it up")
        })?;
        demand(item.consumed.is_none(), CHECKER, || format!("item {key} was consumed twice"))?;
        item.consumed = Some(step);
        let producer = item.producer;
        self.consumed.entry((producer, step)).or_default().insert(key);
        let before = self.consumed.range((producer, Step(0))..(producer, step)).next_back();
        let after = self.consumed.range((producer, Step(step.0 + 1))..=(producer, Step(u64::MAX)));
        let greatest = before.and_then(|(_, keys)| keys.last());
        let least = after.into_iter().next().and_then(|(_, keys)| keys.first());
        let sorted =
            greatest.is_none_or(|other| *other < key) && least.is_none_or(|other| *other > key);
        demand(sorted, CHECKER, || {
            format!("item {key} of session {producer} was consumed at {step}, out of its order")
        })
    }

    /// Calls of a session on one end of the queue are served in their order.
    fn served(&mut self, session: SessionId, call: &Call, number: u64, step: Step) -> Checked {
        let method = call.method;
        self.ends.insert((session, method, number), step);
        let before = self.ends.range((session, method, 0)..(session, method, number)).next_back();
        let after =
            self.ends.range((session, method, number + 1)..=(session, method, u64::MAX)).next();
        let sorted = before.is_none_or(|(_, other)| *other <= step)
            && after.is_none_or(|(_, other)| *other >= step);
        demand(sorted, CHECKER, || {
            format!("request {number} of session {session} ({method}) was served out of order")
        })
    }
}

impl Workload for Queues {
    fn class(&self) -> &'static str {
        "Queue"
    }

    fn creation(&self) -> Option<Call> {
        let arguments = to_bytes(&self.capacity);
        Some(Call {
            object: object("Queue", "jobs"),
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
        let fate = match ended {
            Ended::Unknown => Fate::Unknown,
            Ended::Reply { session, number, step, outcome: Ok(bytes), .. } => {
                self.served(*session, call, *number, *step)?;
                if call.method == "consume" {
                    self.consume(bytes, *step)?;
                }
                Fate::Produced
            }
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => Fate::GivenUp,
            Ended::Reply { outcome: Err(error), .. } => {
                return Err(unexpected(CHECKER, call, error));
            }
        };
        if call.method == "consume" {
            self.unknown_consumers += u64::from(fate == Fate::Unknown);
            return Ok(());
        }
        let item = self.items.get_mut(&call.key).expect("it was planned");
        let wrong = fate == Fate::GivenUp && item.consumed.is_some();
        item.fate = fate;
        demand(!wrong, CHECKER, || {
            format!("item {} was consumed although its producer gave it up", call.key)
        })
    }

    fn stuck(&self, pending: &[&'static str]) -> Checked {
        let both = pending.contains(&"produce") && pending.contains(&"consume");
        demand(!both, CHECKER, || "a producer and a consumer wait for each other".into())
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, _catalog: &Catalog) -> Checked {
        let view = machine.object(&object("Queue", "jobs"), ALL_ENTRIES);
        let values: Vec<_> = view
            .map(|view| view.entries)
            .unwrap_or_default()
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        let mut lost = 0;
        let mut left = 0;
        for (key, item) in &self.items {
            let is_there = values.iter().any(|value| value.ends_with(&item_bytes(*key)));
            left += u64::from(is_there);
            let doubled = is_there && (item.consumed.is_some() || item.fate == Fate::GivenUp);
            demand(!doubled, CHECKER, || {
                format!(
                    "item {key} is in the queue, and it is {:?}, {:?}",
                    item.fate, item.consumed
                )
            })?;
            lost += u64::from(item.fate == Fate::Produced && item.consumed.is_none() && !is_there);
        }
        demand(left <= u64::from(self.capacity), CHECKER, || {
            format!("{left} items are in a queue of {}", self.capacity)
        })?;
        let unknown = self.unknown_consumers;
        demand(lost <= unknown, CHECKER, || {
            format!("{lost} items are lost, and only {unknown} consumers have an unknown fate")
        })
    }
}
