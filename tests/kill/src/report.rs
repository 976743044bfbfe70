//! The account of a run, as text and as JSON.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

/// What became of the splits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Splits {
    /// They were not asked for, or could not be made: why.
    No(String),
    /// By kind.
    Made(BTreeMap<String, SplitCount>),
}

/// Splits of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SplitCount {
    /// How many.
    pub(crate) count: u64,
    /// Longest time from a split until calls went on during it.
    pub(crate) longest_until_calls_ms: u64,
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// What the rounds were drawn from.
    pub(crate) seed: u64,
    /// Replicas.
    pub(crate) replicas: usize,
    /// SIGKILLs.
    pub(crate) kills: u64,
    /// SIGSTOPs.
    pub(crate) stops: u64,
    /// Rounds.
    pub(crate) rounds: u64,
    /// Starts after a kill.
    pub(crate) restarts: u64,
    /// Calls of all clients that were acknowledged.
    pub(crate) calls_acknowledged: u64,
    /// Calls that certainly did nothing: cancelled at their deadline or never sent.
    pub(crate) calls_without_effect: u64,
    /// Calls that blocked, as a replica has counted them.
    pub(crate) blocked_calls: u64,
    /// Calls of which nobody can tell what they did.
    pub(crate) unknown: u64,
    /// Calls that were open when their client found another replica, and were sent again.
    pub(crate) retries: u64,
    /// Effects that happened twice.
    pub(crate) duplicates: u64,
    /// Acknowledged effects that are gone.
    pub(crate) lost: u64,
    /// Effects in another order than was promised.
    pub(crate) out_of_order: u64,
    /// Times that somebody held the lock for certain.
    pub(crate) holds: u64,
    /// Generations of the barrier.
    pub(crate) generations: u64,
    /// Sessions of living clients that were lost.
    pub(crate) sessions_lost: u64,
    /// Longest time without an acknowledged call, whatever was done to the replicas.
    pub(crate) longest_unavailability_ms: u64,
    /// The same while a majority ran all the time and the network was whole.
    pub(crate) longest_unavailability_with_majority_ms: u64,
    /// From the start of the replicas to the last check.
    pub(crate) wall_ms: u64,
    /// Whether all replicas ended at one step with one state.
    pub(crate) replicas_agree: bool,
    /// What became of the splits.
    pub(crate) splits: Splits,
    /// Where the replicas' data and logs are, if something is wrong.
    pub(crate) folder: Option<String>,
    /// Broken promises.
    pub(crate) violations: Vec<String>,
}

impl Report {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let milliseconds = |number: u64| format!("{number} ms");
        vec![
            ("seed", self.seed.to_string()),
            ("replicas", self.replicas.to_string()),
            ("SIGKILLs", self.kills.to_string()),
            ("SIGSTOPs", self.stops.to_string()),
            ("rounds", self.rounds.to_string()),
            ("restarts", self.restarts.to_string()),
            ("calls acknowledged", self.calls_acknowledged.to_string()),
            ("calls without effect", self.calls_without_effect.to_string()),
            ("calls that blocked", self.blocked_calls.to_string()),
            ("outcome unknown", self.unknown.to_string()),
            ("calls sent again", self.retries.to_string()),
            ("duplicates", self.duplicates.to_string()),
            ("lost", self.lost.to_string()),
            ("out of order", self.out_of_order.to_string()),
            ("holds of the lock", self.holds.to_string()),
            ("barrier generations", self.generations.to_string()),
            ("sessions lost", self.sessions_lost.to_string()),
            ("longest unavailability", milliseconds(self.longest_unavailability_ms)),
            (
                "the same with a majority",
                milliseconds(self.longest_unavailability_with_majority_ms),
            ),
            ("wall time", milliseconds(self.wall_ms)),
            ("replicas agree", if self.replicas_agree { "yes" } else { "no" }.into()),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.rows() {
            writeln!(f, "{name:<27}{value}")?;
        }
        match &self.splits {
            Splits::No(reason) => writeln!(f, "{:<27}{reason}", "splits")?,
            Splits::Made(kinds) => {
                for (kind, SplitCount { count, longest_until_calls_ms }) in kinds {
                    let name = format!("split: {kind}");
                    writeln!(
                        f,
                        "{name:<32}{count}, calls went on within {longest_until_calls_ms} ms"
                    )?;
                }
            }
        }
        if let Some(folder) = &self.folder {
            writeln!(f, "{:<27}{folder}", "data and logs")?;
        }
        if self.violations.is_empty() {
            return writeln!(f, "\nEvery promise was kept.");
        }
        writeln!(f, "\nBroken promises:")?;
        self.violations.iter().try_for_each(|violation| writeln!(f, "- {violation}"))
    }
}
