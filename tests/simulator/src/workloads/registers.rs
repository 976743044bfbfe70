//! Registers: clients write, remove and read a few keys, most of them only if the key is as they know it.
//!
//! Versions rise in the order of the steps that wrote them, and each has one value. A version is replaced or
//! removed once. In the end the calls on each key, in the order of their steps, saw what the one before them
//! left (`cells.rs`), so that nothing is lost; what was given up never shows. No read gives a
//! version that was known to be gone when it was asked.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_abi::value::{Bytes, to_bytes};
use gesmas_machine::{CallError, Machine, Outcome, Step};
use gesmas_register::{Entry, Expected};

use super::{
    Ended, Facts, Worker, Workload,
    cells::{Cell, Left, Saw},
    decode, is_given_up, read, unexpected,
};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, Violation, demand},
};

const CHECKER: &str = "register";
/// Calls of one client that are open at most.
const PIPELINE: usize = 3;
/// The keys.
const KEYS: [&str; 2] = ["colour", "size"];

/// What a call asks for.
#[derive(Clone, Debug)]
struct Asked {
    /// Which key.
    at: usize,
    expected: Option<Expected>,
    /// What was heard of when it was asked.
    after: Step,
}

/// What is known of a key.
#[derive(Debug, Default)]
struct Key {
    cell: Cell,
    /// The newest version that is known, if it was not removed.
    newest: Option<u64>,
    /// Whatever is there from now on has this version or a greater one.
    floor: u64,
    /// Whether anybody ever asked to remove it.
    removals: bool,
}

pub(super) struct Registers {
    keys: [Key; KEYS.len()],
    /// Calls that are open, and writes that were asked for at any time.
    asked: BTreeMap<u64, Asked>,
    given_up: BTreeSet<u64>,
    /// Floors when reads were asked.
    reads: BTreeMap<u64, (usize, u64)>,
    /// Versions by the steps that wrote them.
    versions: BTreeMap<Step, u64>,
    /// Values by version.
    values: BTreeMap<u64, u64>,
    /// Versions that somebody replaced or removed.
    replaced: BTreeSet<u64>,
    heard: Step,
    next_key: u64,
}

fn key(at: usize) -> Bytes {
    Bytes::from(KEYS[at])
}

impl Registers {
    pub(super) fn new() -> Self {
        Self {
            keys: [Key::default(), Key::default()],
            asked: BTreeMap::new(),
            given_up: BTreeSet::new(),
            reads: BTreeMap::new(),
            versions: BTreeMap::new(),
            values: BTreeMap::new(),
            replaced: BTreeSet::new(),
            heard: Step(0),
            next_key: 0,
        }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Call {
        let object = object("Register", "config");
        Call { object, method, arguments, key: self.next_key, time_left: None }
    }

    fn plan_one(&mut self, prng: &mut Prng) -> Call {
        self.next_key += 1;
        let at = prng.index(KEYS.len());
        let value = Bytes(self.next_key.to_le_bytes().to_vec());
        // Most take for granted what was last heard of; some what may be long gone.
        let old = self.replaced.iter().next_back().filter(|_| prng.permille(150));
        let expected = old.or(self.keys[at].newest.as_ref());
        let expected = expected.map_or(Expected::Nothing, |version| Expected::Version(*version));
        let (method, arguments, expected) = match prng.below(20) {
            0..4 => ("set", to_bytes(&(key(at), value)), None),
            4 => ("remove", to_bytes(&key(at)), None),
            5..7 => {
                let arguments = to_bytes(&(key(at), expected.clone()));
                ("compare_and_remove", arguments, Some(expected))
            }
            _ => {
                let arguments = to_bytes(&(key(at), expected.clone(), value));
                ("compare_and_set", arguments, Some(expected))
            }
        };
        self.keys[at].removals |= method.ends_with("remove");
        self.asked.insert(self.next_key, Asked { at, expected, after: self.heard });
        self.call(method, arguments)
    }

    /// A version has this value, and no other.
    fn has_value(&mut self, at: usize, version: u64, value: u64) -> Checked {
        let known = *self.values.entry(version).or_insert(value);
        let asked = self.asked.get(&value).is_some_and(|asked| asked.at == at);
        let right = known == value && asked && !self.given_up.contains(&value);
        demand(right, CHECKER, || {
            format!(
                "version {version} of {} has value {value}, which was {known} before, was never \
                 asked for there, or was given up",
                KEYS[at]
            )
        })
    }

    /// Somebody saw an entry.
    fn seen(&mut self, at: usize, entry: &Entry) -> Checked {
        let value = <[u8; 8]>::try_from(&entry.value[..]).map(u64::from_le_bytes);
        let Ok(value) = value else {
            return Err(Violation::new(CHECKER, format!("nobody ever wrote {entry:?}")));
        };
        self.has_value(at, entry.version, value)?;
        let found = &mut self.keys[at];
        if entry.version >= found.floor {
            found.newest = Some(entry.version);
            found.floor = entry.version;
        }
        Ok(())
    }

    fn written(&mut self, (at, value): (usize, u64), step: Step, version: u64) -> Checked {
        let before = self.versions.range(..step).next_back();
        let after = self.versions.range(step..).next();
        let rises = before.is_none_or(|(_, other)| *other < version)
            && after.is_none_or(|(_, other)| *other > version);
        demand(rises, CHECKER, || {
            format!("version {version} of step {step} lies between {before:?} and {after:?}")
        })?;
        self.versions.insert(step, version);
        self.seen(at, &Entry { value: Bytes(value.to_le_bytes().to_vec()), version })
    }

    /// A version was replaced or removed.
    fn gone(&mut self, at: usize, version: u64) -> Checked {
        demand(self.replaced.insert(version), CHECKER, || {
            format!("version {version} of {} was replaced or removed twice", KEYS[at])
        })?;
        let found = &mut self.keys[at];
        found.floor = found.floor.max(version + 1);
        found.newest = found.newest.filter(|newest| *newest >= found.floor);
        Ok(())
    }

    /// What a call saw that took something for granted.
    fn compared(&mut self, asked: &Asked, held: bool) -> Checked<Saw> {
        match (&asked.expected, held) {
            (None, _) => Ok(Saw::Unseen),
            (Some(Expected::Nothing), true) => Ok(Saw::Nothing),
            (Some(Expected::Nothing), false) => Ok(Saw::Something),
            (Some(Expected::Version(version)), true) => {
                self.gone(asked.at, *version)?;
                Ok(Saw::Version(*version))
            }
            (Some(Expected::Version(version)), false) => Ok(Saw::AnotherThan(*version)),
        }
    }

    fn answered(&mut self, call: &Call, asked: &Asked, (step, bytes): (Step, &[u8])) -> Checked {
        let at = asked.at;
        let (saw, left) = match call.method {
            "remove" => {
                let entry: Option<Entry> = decode(CHECKER, bytes)?;
                if let Some(entry) = &entry {
                    self.seen(at, entry)?;
                    self.gone(at, entry.version)?;
                }
                (entry.map_or(Saw::Nothing, |entry| Saw::Version(entry.version)), Left::Nothing)
            }
            "compare_and_remove" => {
                let held = decode(CHECKER, bytes)?;
                let saw = self.compared(asked, held)?;
                (saw, if held { Left::Nothing } else { Left::AsItWas })
            }
            method => {
                let version = match method {
                    "set" => Some(decode(CHECKER, bytes)?),
                    _ => decode(CHECKER, bytes)?,
                };
                let saw = self.compared(asked, version.is_some())?;
                if let Some(version) = version {
                    self.written((at, call.key), step, version)?;
                }
                (saw, version.map_or(Left::AsItWas, Left::Version))
            }
        };
        self.keys[at].cell.act(step, saw, left);
        Ok(())
    }
}

impl Workload for Registers {
    fn class(&self) -> &'static str {
        "Register"
    }

    fn creation(&self) -> Option<Call> {
        None
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

    fn plan_read(&mut self, worker: &Worker, prng: &mut Prng) -> Option<Call> {
        if worker.draining || prng.permille(600) {
            return None;
        }
        self.next_key += 1;
        let at = prng.index(KEYS.len());
        self.reads.insert(self.next_key, (at, self.keys[at].floor));
        Some(self.call("get", to_bytes(&key(at))))
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        let asked = self.asked[&call.key].clone();
        match ended {
            Ended::Unknown => {
                let value = (!call.method.ends_with("remove")).then_some(call.key);
                self.keys[asked.at].cell.may_have_acted(asked.after, value);
                Ok(())
            }
            Ended::Reply { step, outcome: Ok(bytes), .. } => {
                self.heard = self.heard.max(*step);
                self.answered(call, &asked, (*step, bytes))
            }
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => {
                self.given_up.insert(call.key);
                let shows = self.values.values().any(|value| *value == call.key);
                demand(!shows, CHECKER, || format!("value {} shows, and was given up", call.key))
            }
            Ended::Reply { outcome: Err(error), .. } => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn read_ended(&mut self, _client: usize, call: &Call, outcome: &Outcome) -> Checked {
        let entry: Option<Entry> = match outcome {
            Ok(bytes) => decode(CHECKER, bytes)?,
            // Reads create nothing, and a register without values is not there.
            Err(CallError::ObjectUnknown) => None,
            Err(error) => return Err(unexpected(CHECKER, call, error)),
        };
        let (at, floor) = self.reads.remove(&call.key).expect("it was planned");
        let Some(entry) = entry else {
            let lost = floor > 0 && !self.keys[at].removals;
            return demand(!lost, CHECKER, || format!("{} is gone, nobody removed it", KEYS[at]));
        };
        self.seen(at, &entry)?;
        demand(entry.version >= floor, CHECKER, || {
            format!("a read of {} gave {entry:?}, and {floor} was the least", KEYS[at])
        })
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        for (at, name) in KEYS.into_iter().enumerate() {
            let call = self.call("get", to_bytes(&key(at)));
            let entry: Option<Option<Entry>> = read(CHECKER, machine, catalog, &call)?;
            let entry = entry.flatten();
            if let Some(entry) = &entry {
                self.seen(at, entry)?;
            }
            let saw = entry.map_or(Saw::Nothing, |entry| Saw::Version(entry.version));
            let found = &mut self.keys[at];
            found.cell.act(Step(u64::MAX), saw, Left::AsItWas);
            let right = found.cell.verify(&self.values);
            right.map_err(|message| Violation::new(CHECKER, format!("{name}: {message}")))?;
        }
        Ok(())
    }
}
