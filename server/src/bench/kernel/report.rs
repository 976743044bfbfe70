//! The figures of the kernel, as data and as a table.

use std::fmt;

use serde::Serialize;

use crate::bench::{load::Load, sample::Spread};

/// All cases and what the machine did meanwhile.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Rounds of each case.
    pub rounds: usize,
    /// The cases.
    pub cases: Vec<Case>,
    /// Load of the machine.
    pub load: Load,
}

/// One case. Times are microseconds for each call.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// What runs the bodies.
    pub engine: &'static str,
    /// What is called.
    pub name: &'static str,
    /// Calls in a round.
    pub calls: u64,
    /// Time on the clock.
    pub wall: Spread,
    /// Time of the processor.
    pub processor: Spread,
    /// Where the time goes.
    pub parts: Parts,
}

/// Where the time of a call goes: medians of rounds in which the engine looks at the clock,
/// microseconds; and counts for each call.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parts {
    /// Decoding the entry of the log.
    pub decoding: f64,
    /// Running bodies, their instances included.
    pub engine: f64,
    /// The rest.
    pub machine: f64,
    /// Bodies started, again after parking included.
    pub starts: f64,
    /// Host calls answered, replayed ones included.
    pub answers: f64,
    /// Bodies rebuilt from their journals.
    pub rebuilt: f64,
    /// Bytes in the log.
    pub log_bytes: f64,
    /// Allocations from decoding on, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocations: Option<f64>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Microseconds for each call in the kernel alone: median of {} rounds (least, greatest).\n",
            self.rounds
        )?;
        writeln!(
            f,
            "{:<7} {:<35} {:>21} {:>21} {:>8} {:>7} {:>8} {:>7} {:>8} {:>10}",
            "engine",
            "calls",
            "wall",
            "processor",
            "decoding",
            "engine",
            "machine",
            "starts",
            "answers",
            "log bytes",
        )?;
        for case in &self.cases {
            let parts = &case.parts;
            writeln!(
                f,
                "{:<7} {:<35} {:>21} {:>21} {:>8.2} {:>7.2} {:>8.2} {:>7.2} {:>8.2} {:>10.1}",
                case.engine,
                case.name,
                spread(case.wall),
                spread(case.processor),
                parts.decoding,
                parts.engine,
                parts.machine,
                parts.starts,
                parts.answers,
                parts.log_bytes,
            )?;
        }
        write!(f, "\n{}", self.load)
    }
}

fn spread(spread: Spread) -> String {
    format!("{:.2} ({:.2}, {:.2})", spread.median, spread.least, spread.greatest)
}
