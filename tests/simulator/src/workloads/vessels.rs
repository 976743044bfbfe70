//! Vessels, and operators: bodies use up what limits bound, while every limit is changed.
//!
//! Each call that came through has a count of its own, and the count in the end is that of all who
//! did; the others were cancelled, or ended with the name of a limit. A limit is set to values that
//! leave the other workloads alone. Bombs are lit, and removing their object always works.
//! Every limit has a row in [`choices`]: one without panics when it is drawn.

use std::collections::BTreeSet;

use gesmas_machine::{CallError, CancelReason, Limits, Machine, MethodName, Read, Trap};

use super::{Ended, Facts, Worker, Workload, is_given_up, unexpected};
use crate::{
    catalog::{Call, Catalog, OPERATOR, object},
    engine::SimulatedEngine,
    prng::Prng,
    schedule::{MILLISECOND, SECOND},
    verdict::{Checked, Violation, demand},
};

const CHECKER: &str = "vessel";
/// Calls of one client that are open at most.
const PIPELINE: usize = 6;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct Vessels {
    next_key: u64,
    /// Counts of calls that came through.
    counts: BTreeSet<u64>,
    /// Calls that may have come through unknown to their callers.
    unknown: u64,
    /// Calls that light bombs and have not ended.
    lighting: BTreeSet<u64>,
    /// Whether bombs may be lit.
    lit: bool,
    /// Removals of them that have not ended: one at most.
    removing: u64,
    /// Whether the removal was asked for when no call was on its way that lights one, and none was since.
    puts_out_all: bool,
}

/// Limits of which this workload uses up what they bound.
const FELT: [&str; 4] = ["memory_bytes", "fuel_per_segment", "fuel_per_step", "journal_bytes"];

/// Values of a limit that other workloads do not feel.
fn choices(name: &str, value: u64) -> [u64; 3] {
    match name {
        "memory_bytes" => [MIB, 2 * MIB, 4 * MIB],
        "fuel_per_segment" => [2_000_000, 20_000_000, 50_000_000],
        "fuel_per_step" => [60_000_000, 200_000_000, 400_000_000],
        "journal_bytes" => [32 * KIB, 64 * KIB, 4 * MIB],
        "checkpoint_steps" => [100, 400, 1_000],
        "least_delay" => [MILLISECOND, 5 * MILLISECOND, 20 * MILLISECOND],
        "alarm_fuel" => [200_000, 500_000, 1_000_000],
        "session_timeout" => [60 * SECOND, 3_600 * SECOND, 24 * 3_600 * SECOND],
        // Greater than what is ever reached here, so that nothing of value is turned away.
        "fuel_per_cleanup"
        | "segments_per_step"
        | "object_bytes"
        | "state_bytes"
        | "objects"
        | "key_bytes"
        | "value_bytes"
        | "scan_entries"
        | "scan_bytes"
        | "semaphores_per_object"
        | "semaphore_name_bytes"
        | "semaphore_count"
        | "waiters_per_object"
        | "permits_per_object"
        | "alarms_per_object"
        | "faults_per_object"
        | "events_per_session"
        | "event_bytes"
        | "sessions"
        | "requests_per_session"
        | "replies_per_session"
        | "argument_bytes"
        | "reply_bytes"
        | "log_bytes"
        | "principal_bytes"
        | "classes"
        | "module.bytes"
        | "module.functions"
        | "module.function_bytes"
        | "module.parameters"
        | "module.locals"
        | "module.globals"
        | "module.table_elements"
        | "module.memory_pages"
        | "module.data_segments"
        | "module.exports"
        | "module.methods"
        | "module.interface_bytes"
        | "module.loop_depth"
        | "module.effort" => [value - value / 4, value, value + value / 4],
        other => panic!("the limit {other} is never drawn"),
    }
}

impl Vessels {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn call(&mut self, target: (&str, &str), method: &'static str, arguments: String) -> Call {
        self.next_key += 1;
        let object = object(target.0, target.1);
        Call {
            object,
            method,
            arguments: arguments.into_bytes(),
            key: self.next_key,
            time_left: None,
        }
    }

    /// An operator changes a limit.
    fn set_limit(&mut self, prng: &mut Prng) -> Call {
        let felt = prng.permille(500);
        let all = Limits::default().list();
        let some: Vec<_> =
            all.into_iter().filter(|(name, _)| !felt || FELT.contains(name)).collect();
        let (name, limit) = some[prng.index(some.len())];
        let value = choices(name, limit.value)[prng.index(3)];
        let value = value.clamp(limit.least, limit.greatest);
        self.call((OPERATOR, "cluster"), "limit", format!("{name} {value}"))
    }

    fn plan_one(&mut self, prng: &mut Prng) -> Call {
        let vessel = ("Vessel", "v");
        let amount = |prng: &mut Prng, least, most| prng.between(least, most).to_string();
        let mut call = match prng.below(20) {
            0..4 => self.call(vessel, "swell", amount(prng, MIB / 2, 4 * MIB)),
            4..7 => self.call(vessel, "burn", amount(prng, 1_000_000, 40_000_000)),
            7..10 => self.call(vessel, "fill", amount(prng, 1, 1_000)),
            10..15 => self.call(vessel, "open", amount(prng, 1, 3)),
            15 if prng.permille(60) => {
                (self.lit, self.puts_out_all) = (true, false);
                let call = self.call(("Vessel", "bomb"), "light", "x".into());
                self.lighting.insert(call.key);
                return call;
            }
            _ => return self.set_limit(prng),
        };
        call.time_left = prng.permille(300).then(|| prng.between(50, 3_000) * MILLISECOND);
        call
    }

    /// Bombs are put out after a while, or as soon as nothing new is begun.
    fn put_out(&mut self, draining: bool, prng: &mut Prng) -> Option<Call> {
        let now = self.lit && self.removing == 0 && (draining || prng.permille(50));
        now.then(|| {
            self.removing += 1;
            self.puts_out_all = self.lighting.is_empty();
            self.call((OPERATOR, "bomb"), "remove", String::new())
        })
    }

    fn removed(&mut self, known: bool) {
        self.removing -= 1;
        if known && self.puts_out_all {
            self.lit = false;
        }
    }

    fn came_through(&mut self, call: &Call, bytes: &[u8]) -> Checked {
        let count = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
        let count: u64 = count.ok_or_else(|| Violation::new(CHECKER, "a count is no number"))?;
        demand(count > 0 && self.counts.insert(count), CHECKER, || {
            format!("{} {} came through as number {count}, again", call.method, call.key)
        })
    }
}

/// Whether a call may have ended so.
fn may_fail(call: &Call, error: &CallError) -> bool {
    match error {
        CallError::Cancelled(CancelReason::Deadline) => call.time_left.is_some(),
        CallError::Trapped(Trap::OutOfMemory(_)) => call.method == "swell",
        CallError::Trapped(Trap::OutOfFuel(_) | Trap::StepBudget(_)) => call.method == "burn",
        CallError::Trapped(Trap::Limit(limit)) => {
            call.method == "fill" && limit.name == "journal_bytes"
        }
        error => is_given_up(error),
    }
}

impl Workload for Vessels {
    fn class(&self) -> &'static str {
        "Vessel"
    }

    fn creation(&self) -> Option<Call> {
        None
    }

    fn may_starve(&self, call: &Call) -> bool {
        matches!(call.method, "swell" | "burn" | "fill")
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, _facts: &Facts<'_>) -> Vec<Call> {
        if let Some(call) = self.put_out(worker.draining, prng) {
            return vec![call];
        }
        if worker.draining || worker.open >= PIPELINE {
            return Vec::new();
        }
        vec![self.plan_one(prng)]
    }

    fn ended(
        &mut self,
        _client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        self.lighting.remove(&call.key);
        let outcome = match ended {
            Ended::Unknown => {
                self.unknown += u64::from(self.may_starve(call));
                if call.method == "remove" {
                    self.removed(false);
                }
                return Ok(());
            }
            Ended::Reply { outcome, .. } => outcome,
        };
        match (call.method, outcome) {
            ("remove", Ok(_) | Err(CallError::ObjectUnknown)) => self.removed(true),
            ("remove", Err(error)) if is_given_up(error) => self.removed(false),
            ("swell" | "burn" | "fill", Ok(bytes)) => return self.came_through(call, bytes),
            (_, Ok(_)) => {}
            (_, Err(error)) if may_fail(call, error) => {}
            // A removed object ends its callers.
            ("light", Err(CallError::ObjectRemoved)) => {}
            (_, Err(error)) => return Err(unexpected(CHECKER, call, error)),
        }
        Ok(())
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, _catalog: &Catalog) -> Checked {
        let read = Read {
            after: None,
            principal: "simulator".into(),
            object: object("Vessel", "v"),
            method: MethodName::new("total").expect("a name"),
            signature: 0,
            arguments: Vec::new(),
        };
        let total = match machine.read(read) {
            Ok(Ok(bytes)) => String::from_utf8_lossy(&bytes).parse().unwrap_or(0),
            _ => 0,
        };
        let least = self.counts.len() as u64;
        demand((least..=least + self.unknown).contains(&total), CHECKER, || {
            format!("{total} came through, {least} said so and {} may have", self.unknown)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_drawn_within_its_range() {
        for (name, limit) in Limits::default().list() {
            for value in choices(name, limit.value) {
                let value = value.clamp(limit.least, limit.greatest);
                assert_eq!(Limits::default().set(name, value), Ok(()), "{name}");
            }
        }
    }
}
