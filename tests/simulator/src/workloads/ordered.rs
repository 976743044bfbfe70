//! Ordered queues: clients put items with a priority or a delay, and take whatever comes first.
//!
//! Items are unique. None is taken twice or without having been put, and what was given up never shows. Whoever
//! takes an item at a step gets the first of those that were there: no other that came before it in the
//! order, had been put by then and was taken later. In the end every item that was put was taken, is
//! there, or went with a taker of whom nothing is known.

use std::{collections::BTreeMap, time::Duration};

use gesmas_abi::value::{Bytes, Time, to_bytes};
use gesmas_machine::{Machine, Step};
use gesmas_priority_queue::Prioritized;

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, Violation, demand},
};

/// Calls of one client that are open at most.
const PIPELINE: usize = 4;
/// What items begin with, so that they are known among the keys and values of the object.
const MARK: &[u8] = b"an item ";
/// Keys and values of the object that are looked at in the end.
const ALL_ENTRIES: usize = 10_000;

/// By what items are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Priority,
    Delay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Put(Step),
    GivenUp,
    Unknown,
}

#[derive(Debug)]
struct Item {
    /// Its priority, or when it is due, as far as that is known.
    rank: Option<i128>,
    fate: Fate,
    taken: Option<Step>,
}

pub(super) struct Ordered {
    kind: Kind,
    items: BTreeMap<u64, Item>,
    unknown_takers: u64,
    next_key: u64,
}

fn item_bytes(key: u64) -> Vec<u8> {
    [MARK, &key.to_le_bytes()].concat()
}

impl Ordered {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, items: BTreeMap::new(), unknown_takers: 0, next_key: 0 }
    }

    const fn checker(&self) -> &'static str {
        match self.kind {
            Kind::Priority => "priority queue",
            Kind::Delay => "delay queue",
        }
    }

    fn plan_one(&mut self, worker: &Worker, prng: &mut Prng) -> Call {
        self.next_key += 1;
        let puts = if (worker.client / super::NUMBER).is_multiple_of(2) { 700 } else { 250 };
        let (key, object) = (self.next_key, object(self.class(), "ordered"));
        if !prng.permille(puts) {
            return Call { object, method: "take", arguments: Vec::new(), key, time_left: None };
        }
        let bytes = Bytes(item_bytes(key));
        let (rank, arguments) = match self.kind {
            Kind::Priority => {
                let priority = i64::try_from(prng.below(5)).expect("it is small") - 2;
                (Some(i128::from(priority)), to_bytes(&(bytes, priority)))
            }
            Kind::Delay => {
                let delay = Duration::from_millis(prng.below(4) * 300);
                (None, to_bytes(&(bytes, delay)))
            }
        };
        self.items.insert(key, Item { rank, fate: Fate::Open, taken: None });
        Call { object, method: "put", arguments, key, time_left: None }
    }

    fn put(&mut self, key: u64, fate: Fate, due: Option<&[u8]>) -> Checked {
        let checker = self.checker();
        let item = self.items.get_mut(&key).expect("it was planned");
        if let (Kind::Delay, Some(bytes)) = (self.kind, due) {
            let Time(due) = decode(checker, bytes)?;
            item.rank = Some(i128::from(due));
        }
        let wrong = fate == Fate::GivenUp && item.taken.is_some();
        item.fate = fate;
        demand(!wrong, checker, || format!("item {key} was taken although it was given up"))
    }

    fn take(&mut self, bytes: &[u8], step: Step) -> Checked {
        let checker = self.checker();
        let (Bytes(bytes), priority) = match self.kind {
            Kind::Priority => {
                let Prioritized { item, priority } = decode(checker, bytes)?;
                (item, Some(i128::from(priority)))
            }
            Kind::Delay => (decode(checker, bytes)?, None),
        };
        let key = bytes.strip_prefix(MARK).and_then(|key| key.try_into().ok());
        let key = key.map(u64::from_le_bytes);
        let item = key.and_then(|key| self.items.get_mut(&key));
        let (Some(key), Some(item)) = (key, item) else {
            return Err(Violation::new(checker, format!("{bytes:?} was never put")));
        };
        demand(item.fate != Fate::GivenUp, checker, || {
            format!("item {key} was taken although it was given up")
        })?;
        demand(item.taken.is_none(), checker, || format!("item {key} was taken twice"))?;
        demand(priority.is_none() || priority == item.rank, checker, || {
            format!("item {key} was taken with priority {priority:?}, it is {item:?}")
        })?;
        item.taken = Some(step);
        Ok(())
    }

    /// Nobody took an item while another was there that came before it.
    fn check_order(&self) -> Checked {
        let known = |(key, item): (&u64, &Item)| match (item.rank, item.fate) {
            (Some(rank), Fate::Put(put)) => Some((*key, (rank, put), put, item.taken)),
            _ => None,
        };
        let known: Vec<_> = self.items.iter().filter_map(known).collect();
        for (key, place, put, taken) in &known {
            let Some(step) = taken else { continue };
            demand(put <= step, self.checker(), || {
                format!("item {key} was taken at {step} and put at {put}")
            })?;
            let passed = known.iter().find(|(_, other, put, taken)| {
                other < place && put < step && taken.is_some_and(|taken| taken > *step)
            });
            demand(passed.is_none(), self.checker(), || {
                format!("item {key} ({place:?}) was taken at {step}, before {passed:?}")
            })?;
        }
        Ok(())
    }
}

impl Workload for Ordered {
    fn class(&self) -> &'static str {
        match self.kind {
            Kind::Priority => "PriorityQueue",
            Kind::Delay => "DelayQueue",
        }
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
        let (fate, bytes) = match ended {
            Ended::Unknown => (Fate::Unknown, None),
            Ended::Reply { step, outcome: Ok(bytes), .. } => (Fate::Put(*step), Some(&bytes[..])),
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => (Fate::GivenUp, None),
            Ended::Reply { outcome: Err(error), .. } => {
                return Err(unexpected(self.checker(), call, error));
            }
        };
        match (call.method, fate, bytes) {
            ("put", fate, bytes) => self.put(call.key, fate, bytes),
            (_, Fate::Put(step), Some(bytes)) => self.take(bytes, step),
            (_, fate, _) => {
                self.unknown_takers += u64::from(fate == Fate::Unknown);
                Ok(())
            }
        }
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, _catalog: &Catalog) -> Checked {
        self.check_order()?;
        let view = machine.object(&object(self.class(), "ordered"), ALL_ENTRIES);
        let entries = view.map(|view| view.entries).unwrap_or_default();
        let (mut lost, checker) = (0, self.checker());
        for (key, item) in &self.items {
            let there = entries.iter().any(|(_, value)| value.ends_with(&item_bytes(*key)));
            let doubled = there && (item.taken.is_some() || item.fate == Fate::GivenUp);
            demand(!doubled, checker, || format!("item {key} is there, and it is {item:?}"))?;
            let put = matches!(item.fate, Fate::Put(_));
            lost += u64::from(put && item.taken.is_none() && !there);
        }
        let unknown = self.unknown_takers;
        demand(lost <= unknown, checker, || {
            format!("{lost} items are lost, and only {unknown} takers have an unknown fate")
        })
    }
}
