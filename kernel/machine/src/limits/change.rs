//! Limits by their names, to show them and to change them while a cluster runs.
//!
//! A change is ordered like anything else, so all replicas decide by it from the same step on.
//! What is over a limit that was lowered stays: it may shrink, and not grow.
//! Invariant: no limit leaves its range, within which the rest of the system works: frames, the
//! memory of instances and the comparison of states are laid out for it.

use serde::{Deserialize, Serialize};

use super::Limits;

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Its value.
    pub value: u64,
    /// The least that it can be.
    pub least: u64,
    /// The greatest that it can be.
    pub greatest: u64,
}

/// Why a limit is not changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum LimitChangeError {
    /// There is none of this name.
    #[error("there is no limit {0:?}")]
    Unknown(String),
    /// The value is out of its range.
    #[error("{name} is between {least} and {greatest}, not {value}")]
    OutOfRange {
        /// Name of the limit.
        name: String,
        /// What was asked for.
        value: u64,
        /// The least that it can be.
        least: u64,
        /// The greatest that it can be.
        greatest: u64,
    },
}

macro_rules! limits {
    ($($name:literal: $($field:ident).+, $least:expr, $greatest:expr;)*) => {
        impl Limits {
            /// All limits, by name.
            #[must_use]
            pub fn list(&self) -> Vec<(&'static str, Limit)> {
                vec![$((
                    $name,
                    Limit { value: self.$($field).+, least: $least, greatest: $greatest },
                ),)*]
            }

            fn find_mut(&mut self, name: &str) -> Option<(&mut u64, u64, u64)> {
                match name {
                    $($name => Some((&mut self.$($field).+, $least, $greatest)),)*
                    _ => None,
                }
            }
        }
    };
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const MILLION: u64 = 1_000_000;
/// Arguments, values and modules travel in one frame of 16 MiB with what is around them.
const FRAME: u64 = 15 * MIB;

limits! {
    "fuel_per_segment": fuel_per_segment, 10_000, 10_000 * MILLION;
    "fuel_per_step": fuel_per_step, 10_000, 10_000 * MILLION;
    "fuel_per_cleanup": fuel_per_cleanup, 10_000, 10_000 * MILLION;
    "segments_per_step": segments_per_step, 1, MILLION;
    // Instances are made with room for this much.
    "memory_bytes": memory_bytes, 64 * KIB, 4 * MIB;
    "journal_bytes": journal_bytes, KIB, 64 * MIB;
    "object_bytes": object_bytes, KIB, 4_096 * MIB;
    "state_bytes": state_bytes, MIB, MIB * MIB;
    "objects": objects, 1, 1_000 * MILLION;
    "key_bytes": key_bytes, 16, 64 * KIB;
    "value_bytes": value_bytes, 16, FRAME;
    "scan_entries": scan_entries, 1, 100_000;
    "scan_bytes": scan_bytes, KIB, FRAME;
    "semaphores_per_object": semaphores_per_object, 1, 100 * MILLION;
    "semaphore_name_bytes": semaphore_name_bytes, 16, 64 * KIB;
    "semaphore_count": semaphore_count, 1, 1 << 60;
    "waiters_per_object": waiters_per_object, 1, 100 * MILLION;
    "permits_per_object": permits_per_object, 1, 100 * MILLION;
    "alarms_per_object": alarms_per_object, 1, 100 * MILLION;
    "least_delay": least_delay, 1, 1_000 * MILLION;
    "alarm_fuel": alarm_fuel, 10_000, 10_000 * MILLION;
    "faults_per_object": faults_per_object, 1, 1_000;
    "events_per_session": events_per_session, 1, 100_000;
    "event_bytes": event_bytes, 16, MIB;
    "sessions": sessions, 16, 100 * MILLION;
    "requests_per_session": requests_per_session, 1, MILLION;
    "replies_per_session": replies_per_session, 1, MILLION;
    "argument_bytes": argument_bytes, 16, FRAME;
    "reply_bytes": reply_bytes, 16, FRAME;
    "log_bytes": log_bytes, 16, MIB;
    "principal_bytes": principal_bytes, 16, 4 * KIB;
    "session_timeout": session_timeout, 1_000 * MILLION, 365 * 24 * 3_600 * 1_000 * MILLION;
    // Each comparison costs a step for every replica; evidence of all in between is kept.
    "checkpoint_steps": checkpoint_steps, 100, 1_000;
    "classes": classes, 1, MILLION;
    "module.bytes": module.bytes, KIB, FRAME;
    "module.functions": module.functions, 1, MILLION;
    "module.function_bytes": module.function_bytes, KIB, FRAME;
    "module.parameters": module.parameters, 1, 1_000;
    "module.locals": module.locals, 1, 50_000;
    "module.globals": module.globals, 1, 100_000;
    "module.table_elements": module.table_elements, 1, MILLION;
    // Instances are made with room for this much.
    "module.memory_pages": module.memory_pages, 1, 64;
    "module.data_segments": module.data_segments, 1, 100_000;
    "module.exports": module.exports, 1, 100_000;
    "module.methods": module.methods, 1, 10_000;
    "module.interface_bytes": module.interface_bytes, KIB, MIB;
    "module.loop_depth": module.loop_depth, 1, 1_000;
    "module.effort": module.effort, MILLION, 100_000 * MILLION;
}

impl Limits {
    /// Changes one limit.
    ///
    /// # Errors
    /// When there is none of this name, or the value is out of its range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), LimitChangeError> {
        let Some((limit, least, greatest)) = self.find_mut(name) else {
            return Err(LimitChangeError::Unknown(name.into()));
        };
        if !(least..=greatest).contains(&value) {
            let name = name.into();
            return Err(LimitChangeError::OutOfRange { name, value, least, greatest });
        }
        *limit = value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_range_and_every_limit_has_a_name() {
        let mut limits = Limits::default();
        for (name, Limit { value, least, greatest }) in limits.list() {
            assert!((least..=greatest).contains(&value), "{name} is {value}");
            assert_eq!(limits.set(name, least), Ok(()), "{name}");
            assert!(
                limits.set(name, least - 1).is_err() && limits.set(name, greatest + 1).is_err()
            );
        }
        // With all set to their least, none is left as it was.
        let text = format!("{limits:?}");
        let listed = limits.list().len();
        let fields = text.matches(": ").count() - "module: ModuleLimits".matches(": ").count();
        assert_eq!(listed, fields, "a limit has no name: {text}");
        let unknown = limits.set("nothing", 1).expect_err("there is none");
        assert_eq!(unknown.to_string(), "there is no limit \"nothing\"");
    }
}
