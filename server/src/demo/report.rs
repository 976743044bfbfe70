//! The account of a demo, and whether it kept every promise.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::{Options, REPLICAS, audit::Audit, barrier::Barriers, queue::Moved};

/// Failover must take at most this long.
const FAILOVER_MAX: Duration = Duration::from_millis(1_500);
/// At least this many calls must have blocked, or little was shown.
const BLOCKED_MIN: u64 = 5_000;

/// What happened.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Replicas.
    pub replicas: u64,
    /// Items that moved.
    pub items: u64,
    /// Items that no consumer got.
    pub lost: u64,
    /// Items that more than one consumer got.
    pub duplicated: u64,
    /// Items that a consumer got before an earlier one of the same producer.
    pub out_of_order: u64,
    /// Calls that blocked, as the replicas counted them.
    pub blocked_calls: u64,
    /// Resumptions over blocked calls, cancelled ones apart.
    pub wakeups_per_blocked_call: f64,
    /// Resumptions that found nothing and blocked again.
    pub wakeups_in_vain: u64,
    /// Barriers that all callers passed together.
    pub barriers: u64,
    /// Callers of each barrier.
    pub barrier_callers: u32,
    /// Calls per second, over the queue and the barriers.
    pub calls_per_second: u64,
    /// Whether the leader was killed.
    pub leader_killed: bool,
    /// From the kill to the next acknowledged update, milliseconds.
    pub failover_ms: u64,
    /// Whether all replicas ended with equal state hashes and equal counts.
    pub replicas_agree: bool,
    /// Promises that were broken; empty when all is well.
    pub broken: Vec<String>,
}

impl Report {
    pub(super) fn new(
        options: &Options,
        moved: &Moved,
        barriers: &Barriers,
        audit: &Audit,
        victim_lost: u64,
    ) -> Self {
        let uncancelled = audit.blocked.saturating_sub(audit.cancelled);
        let elapsed = (moved.elapsed + barriers.elapsed).as_secs_f64();
        let calls = moved.calls + barriers.calls;
        let mut report = Self {
            replicas: REPLICAS,
            items: options.items,
            lost: moved.lost + victim_lost,
            duplicated: moved.duplicated,
            out_of_order: moved.out_of_order,
            blocked_calls: audit.blocked,
            wakeups_per_blocked_call: audit.resumptions as f64 / uncancelled.max(1) as f64,
            wakeups_in_vain: audit.in_vain,
            barriers: barriers.passed,
            barrier_callers: options.barrier_callers,
            calls_per_second: (calls as f64 / elapsed) as u64,
            leader_killed: moved.leader_killed,
            failover_ms: u64::try_from(moved.failover.as_millis()).unwrap_or(u64::MAX),
            replicas_agree: audit.agree,
            broken: Vec::new(),
        };
        report.broken = report.check(options, audit);
        report
    }

    fn check(&self, options: &Options, audit: &Audit) -> Vec<String> {
        // All callers of a barrier but the last must have blocked: the client knows that by itself.
        let barrier_blocked = options.barriers * u64::from(options.barrier_callers - 1);
        let blocked_min =
            barrier_blocked.max(if options.items >= 20_000 { BLOCKED_MIN } else { 0 });
        let failover_max = FAILOVER_MAX.as_millis() as u64;
        let uncancelled = audit.blocked.saturating_sub(audit.cancelled);
        let promises = [
            (self.lost == 0, "no item is lost"),
            (self.duplicated == 0, "no item is delivered twice"),
            (self.out_of_order == 0, "items of a producer reach a consumer in order"),
            (self.blocked_calls >= blocked_min, "the calls that had to block did"),
            (audit.resumptions == uncancelled, "each blocked call is resumed once"),
            (self.wakeups_in_vain == 0, "nobody is woken in vain"),
            (self.barriers == options.barriers, "all callers pass each barrier together"),
            (self.leader_killed, "the leader is killed"),
            (self.failover_ms <= failover_max, "another leader acknowledges within 1,500 ms"),
            (self.replicas_agree, "all replicas agree"),
        ];
        let broken = promises.iter().filter(|(kept, _)| !kept);
        broken.map(|(_, promise)| (*promise).into()).collect()
    }

    /// Whether every promise was kept.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.broken.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("replicas", self.replicas.to_string()),
            ("items moved", self.items.to_string()),
            ("lost", self.lost.to_string()),
            ("delivered twice", self.duplicated.to_string()),
            ("out of order", self.out_of_order.to_string()),
            ("calls that blocked", self.blocked_calls.to_string()),
            ("wake-ups per blocked call", self.wakeups_per_blocked_call.to_string()),
            ("wake-ups in vain", self.wakeups_in_vain.to_string()),
            ("barriers", format!("{}, {} callers each", self.barriers, self.barrier_callers)),
            ("calls per second", self.calls_per_second.to_string()),
            ("leader killed", if self.leader_killed { "yes" } else { "no" }.into()),
            ("failover", format!("{} ms", self.failover_ms)),
            ("replicas agree", if self.replicas_agree { "yes" } else { "no" }.into()),
        ];
        for (name, value) in rows {
            writeln!(f, "{name:<27}{value}")?;
        }
        if self.broken.is_empty() {
            writeln!(f, "\nEvery promise was kept.")
        } else {
            writeln!(f, "\nBroken: {}", self.broken.join("; "))
        }
    }
}
