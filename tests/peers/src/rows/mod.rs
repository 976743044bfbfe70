//! The rows: what work is measured, with how many clients.
//!
//! Works of three sorts: closed loops (`closed.rs`), in which each client does one thing after the
//! other for as long as it is measured; courses (`course.rs`), which are measured from their start to
//! their end; and one client beside many that work at a given rate (`regular.rs`).

mod closed;
mod course;
mod regular;

use std::{rc::Rc, time::Duration};

use clap::ValueEnum;
use serde::Serialize;

use crate::{
    run::Sample,
    systems::{Client, PeerError, Result, System, gesmas::Gesmas},
};

/// gesmas with native classes.
const NATIVE: &str = <Gesmas<true> as System>::NAME;

/// Bytes of a value or an item.
pub(crate) const PAYLOAD: usize = 16;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Writes a value of its own key.
    Update,
    /// Reads a value of its own key.
    Read,
    /// Adds one to a counter that all share (EDC figure 6).
    Counter,
    /// Adds an item to a queue that all share and removes one; two operations (EDC figure 8).
    Queue,
    /// Adds an item to a queue (GESMAS figure 2, table 1).
    Produce,
    /// Leads, and leads no more (EDC figure 12).
    Election,
    /// Two producers and two consumers (GESMAS figure 5).
    Four,
    /// 1,000 consumes from a queue of this size (GESMAS figures 3 and 4).
    Consume,
    /// All wait for an item; each that has one adds one (GESMAS table 2).
    Herd,
    /// All pass barriers in a row (GESMAS table 3, EDC figure 10).
    Barrier,
    /// Writes of one client: alone, or beside a queue at half of what it can do (EDC figure 13).
    Regular,
    /// Writes of 64 clients that share four connections.
    Shared,
    /// 1,000 callers add one to a counter through 16 connections.
    Pipelined,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 13] = [
        Self::Update,
        Self::Read,
        Self::Counter,
        Self::Queue,
        Self::Produce,
        Self::Election,
        Self::Four,
        Self::Consume,
        Self::Herd,
        Self::Barrier,
        Self::Regular,
        Self::Shared,
        Self::Pipelined,
    ];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Read => "read",
            Self::Counter => "counter",
            Self::Queue => "queue",
            Self::Produce => "produce",
            Self::Election => "election",
            Self::Four => "four",
            Self::Consume => "consume",
            Self::Herd => "herd",
            Self::Barrier => "barrier",
            Self::Regular => "regular",
            Self::Shared => "shared",
            Self::Pipelined => "pipelined",
        }
    }

    /// What is done, in words.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Update => "Each client writes a value of its own.",
            Self::Read => "Each client reads a value of its own; ZooKeeper's may be old.",
            Self::Counter => "All add one to one counter (EDC figure 6).",
            Self::Queue => "Each adds an item and removes one: two operations (EDC figure 8).",
            Self::Produce => "All add items to one queue (GESMAS figure 2 and table 1).",
            Self::Election => "Each leads, and leads no more (EDC figure 12).",
            Self::Four => "Two producers and two consumers on one queue (GESMAS figure 5).",
            Self::Consume => "1,000 items are taken from a queue (GESMAS figures 3 and 4).",
            Self::Herd => {
                "All wait for an item; each that has one adds one. The latency is the time until \
                 the last has one (GESMAS table 2)."
            }
            Self::Barrier => "All pass barriers in a row (GESMAS table 3, EDC figure 10).",
            Self::Regular => {
                "One client writes, alone or beside 50 that work on a queue at half of their peak \
                 (EDC figure 13)."
            }
            Self::Shared => "64 clients write as in `update`, through four connections.",
            Self::Pipelined => "1,000 callers add one to a counter through 16 connections.",
        }
    }

    /// Its rows.
    pub(crate) fn rows(self) -> Vec<Row> {
        let sizes: &[usize] = match self {
            Self::Update | Self::Read => &[1, 32, 64, 256],
            Self::Counter | Self::Queue => &[1, 10, 50],
            Self::Produce => &[1, 64],
            Self::Election => &[2, 10, 50],
            Self::Four => &[4],
            Self::Consume => &[1_000, 10_000, 1_000_000],
            Self::Herd | Self::Barrier => &[50, 100, 200],
            Self::Regular => &[0, 50],
            Self::Shared => &[64],
            Self::Pipelined => &[1_000],
        };
        sizes.iter().map(|size| Row { kind: self, size: *size }).collect()
    }
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    All,
    One(Kind),
}

impl Choice {
    /// Whether it asks for this kind.
    pub(crate) fn includes(self, kind: Kind) -> bool {
        match self {
            Self::All => true,
            Self::One(chosen) => chosen == kind,
        }
    }
}

impl std::str::FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        kind.map(Self::One).ok_or_else(|| {
            let names: Vec<_> = Kind::ALL.into_iter().map(Kind::name).collect();
            format!("rows are all, {}", names.join(", "))
        })
    }
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    /// Clients; of `consume`, the size of the queue; of `regular`, the clients of the queue beside it.
    pub(crate) size: usize,
}

impl Row {
    /// How many clients are measured.
    pub(crate) fn clients(self) -> usize {
        if matches!(self.kind, Kind::Consume | Kind::Regular) { 1 } else { self.size }
    }

    /// Through how many connections.
    fn connections(self) -> usize {
        match self.kind {
            Kind::Shared => 4,
            Kind::Pipelined => 16,
            _ => self.clients(),
        }
    }

    /// The name of what it works on: no two rows share anything.
    fn name(self) -> String {
        format!("{}-{}", self.kind.name(), self.size)
    }

    /// What a system does less of, and why, if it does.
    pub(crate) fn cap(self, system: &str) -> Option<Cap> {
        let slow = matches!(system, "ZooKeeper" | "etcd");
        match (self.kind, self.size, system) {
            (Kind::Consume, 1_000_000, "ZooKeeper") => {
                Some(Cap::Leave("the list of a million nodes does not fit into its packets"))
            }
            (Kind::Consume, 1_000_000, "etcd") => {
                Some(Cap::Leave("filling the queue would take longer than all other rows"))
            }
            (Kind::Shared, _, "ZooKeeper" | "etcd" | "redis") => {
                Some(Cap::Leave("the row compares gesmas with itself"))
            }
            (Kind::Pipelined, _, "ZooKeeper" | "etcd") => {
                Some(Cap::Leave("what reads and writes back has nothing to pipeline"))
            }
            (
                Kind::Update
                | Kind::Counter
                | Kind::Queue
                | Kind::Produce
                | Kind::Barrier
                | Kind::Shared
                | Kind::Pipelined,
                _,
                NATIVE,
            ) => None,
            (.., NATIVE) => Some(Cap::Leave("the kernel's work is a small part of it")),
            (Kind::Barrier, size, "ZooKeeper") if size > 50 => Some(Cap::Rounds(5_000 / size)),
            (Kind::Barrier, size, "etcd") => Some(Cap::Rounds(1_000 / size)),
            (Kind::Four, ..) if slow => Some(Cap::Rounds(500)),
            _ => None,
        }
    }

    /// Measures it once on a system that runs.
    pub(crate) async fn measure<S: System>(self, system: &S, length: Duration) -> Result<Sample> {
        match self.kind {
            Kind::Four | Kind::Consume | Kind::Herd | Kind::Barrier => {
                course::measure(self, system).await
            }
            Kind::Regular => regular::measure(self, system, length).await,
            _ => closed::measure(self, system, length).await,
        }
    }
}

/// What a system does less of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cap {
    /// Nothing at all, and why.
    Leave(&'static str),
    /// Only so many rounds of a course.
    Rounds(usize),
}

async fn connect<S: System>(system: &S, count: usize) -> Result<Vec<Rc<S::Client>>> {
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        clients.push(Rc::new(system.connect(number).await?));
    }
    Ok(clients)
}

/// What was made by one of these or another client is there for all of them from now on.
async fn all_see<C: Client>(clients: &[Rc<C>], name: &str) -> Result<()> {
    for client in clients {
        client.see(name).await?;
    }
    Ok(())
}

/// Bytes that these have sent so far; each has a connection of its own.
fn sent<C: Client>(clients: &[Rc<C>]) -> u64 {
    clients.iter().map(|client| client.bytes_sent()).sum()
}

/// The state is not what the work must leave.
fn wrong<S: System>(row: Row, what: String) -> PeerError {
    PeerError::Wrong { system: S::NAME, work: row.name(), what }
}

/// A payload with a number.
fn payload(number: u64) -> [u8; PAYLOAD] {
    let mut bytes = [0x2e; PAYLOAD];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The number of a payload.
fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
