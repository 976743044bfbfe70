//! What the project aims at beside others, and what of it was reached in this run.
//!
//! All are ratios of figures of one run, or figures of gesmas that need no other's.
//! Not here: judgement. A target that is missed is a line of a table.

use std::fmt;

use serde::Serialize;

use super::{Line, Report, median};
use crate::{
    rows::{Kind, Row},
    run::Name,
};

/// What a figure should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bound) => figure >= bound,
            Self::AtMost(bound) => figure <= bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "at least {bound}"),
            Self::AtMost(bound) => write!(f, "at most {bound}"),
        }
    }
}

/// A target beside what was reached.
#[derive(Debug, Serialize)]
pub(super) struct Reached {
    pub(super) target: &'static str,
    pub(super) bound: Bound,
    pub(super) reached: f64,
    pub(super) is_met: bool,
}

use Bound::{AtLeast, AtMost};
use Kind::{
    Barrier, Consume, Counter, Election, Herd, Pipelined, Produce, Queue, Read, Regular, Shared,
    Update,
};
use Name::{Gesmas, Native, Redis, Zookeeper};

/// One target: what it is called, its bound, and how it is computed, if all that it needs was measured.
type Target = (&'static str, Bound, fn(&Report) -> Option<f64>);

const TARGETS: &[Target] = &[
    ("counter, 50 clients, times ZooKeeper", AtLeast(150.0), |r| r.times(Counter, 50, Zookeeper)),
    ("counter, 50 clients, times redis alone", AtLeast(0.8), |r| r.times(Counter, 50, Redis)),
    ("queue, 50 clients, times ZooKeeper", AtLeast(100.0), |r| r.times(Queue, 50, Zookeeper)),
    ("queue, 50 clients, times redis alone", AtLeast(0.8), |r| r.times(Queue, 50, Redis)),
    ("produce, 64 clients, times ZooKeeper", AtLeast(5.0), |r| r.times(Produce, 64, Zookeeper)),
    ("64 sessions on 4 connections, times 64 connections", AtLeast(1.5), |r| {
        Some(r.rate(Shared, 64, Gesmas)? / r.rate(Update, 64, Gesmas)?)
    }),
    ("update, 1 client, p50, times three syncs at once and two round trips", AtMost(1.15), |r| {
        Some(r.p50(Update, 1, Gesmas)? / r.way())
    }),
    ("update, 1 client, p50, times ZooKeeper", AtMost(1.0), |r| {
        Some(r.p50(Update, 1, Gesmas)? / r.p50(Update, 1, Zookeeper)?)
    }),
    ("consume, slowest queue size, p50, times the fastest", AtMost(1.1), |r| {
        let sizes = [1_000, 10_000, 1_000_000].map(|size| r.p50(Consume, size, Gesmas));
        let sizes = [sizes[0]?, sizes[1]?, sizes[2]?];
        let least = sizes.into_iter().reduce(f64::min)?;
        Some(sizes.into_iter().reduce(f64::max)? / least)
    }),
    ("herd of 200, times ZooKeeper", AtLeast(25.0), |r| r.times(Herd, 200, Zookeeper)),
    ("herd of 200, time, times the herd of 100", AtMost(2.2), |r| {
        Some(r.p50(Herd, 200, Gesmas)? / r.p50(Herd, 100, Gesmas)?)
    }),
    ("barriers of 200, times ZooKeeper", AtLeast(20.0), |r| r.times(Barrier, 200, Zookeeper)),
    ("leader changes, 2 candidates, times ZooKeeper", AtLeast(2.5), |r| {
        r.times(Election, 2, Zookeeper)
    }),
    ("leader changes, 50 candidates, times ZooKeeper", AtLeast(2.5), |r| {
        r.times(Election, 50, Zookeeper)
    }),
    ("linearizable read, 32 clients, times ZooKeeper's read", AtLeast(1.5), |r| {
        r.times(Read, 32, Zookeeper)
    }),
    ("1,000 increments under way on 16 connections, a second", AtLeast(85_000.0), |r| {
        r.rate(Pipelined, 1_000, Gesmas)
    }),
    ("the same, native", AtLeast(400_000.0), |r| r.rate(Pipelined, 1_000, Native)),
    ("a client beside a busy queue, p50, times alone", AtMost(1.5), |r| {
        Some(r.p50(Regular, 50, Gesmas)? / r.p50(Regular, 0, Gesmas)?)
    }),
];

impl Report {
    fn line(&self, kind: Kind, size: usize, name: Name) -> Option<&Line> {
        self.rows.iter().find(|line| line.row == Row { kind, size } && line.name == name)
    }

    fn rate(&self, kind: Kind, size: usize, name: Name) -> Option<f64> {
        self.line(kind, size, name).map(|line| line.ops_per_second)
    }

    fn p50(&self, kind: Kind, size: usize, name: Name) -> Option<f64> {
        self.line(kind, size, name).map(|line| line.p50_us)
    }

    /// Operations of gesmas for each of another.
    fn times(&self, kind: Kind, size: usize, other: Name) -> Option<f64> {
        Some(self.rate(kind, size, Gesmas)? / self.rate(kind, size, other)?)
    }

    /// What a lone call cannot do without, microseconds.
    fn way(&self) -> f64 {
        let syncs = median(self.floor.iter().map(|floor| floor.three_syncs_us));
        syncs + 2.0 * median(self.floor.iter().map(|floor| floor.round_trip_us))
    }
}

/// All targets of which everything was measured.
pub(super) fn reached(report: &Report) -> Vec<Reached> {
    let of = |&(target, bound, compute): &Target| {
        let reached = compute(report)?;
        Some(Reached { target, bound, reached, is_met: bound.is_met(reached) })
    };
    TARGETS.iter().filter_map(of).collect()
}
