//! One run: all rows on all systems, so often as is asked.
//!
//! In each repeat the systems have their turns, each with servers and data of its own; what the
//! machine's other users do to one repeat they do to all systems.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use gesmas::bench::{
    load::{Load, LoadMeter},
    sample::Latencies,
};
use tokio::task::{JoinSet, LocalSet};

use crate::{
    Options, floor,
    floor::Floor,
    rows::{Cap, Row},
    systems::{
        Client as _, Result, System, etcd::Etcd, gesmas::Gesmas, redis::Redis, zookeeper::ZooKeeper,
    },
};

/// How long a system works before anything is measured: a virtual machine compiles what it runs often.
const WARM_UP: Duration = Duration::from_secs(3);
/// Clients that warm it up.
const WARM_UP_CLIENTS: usize = 16;

/// The systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Name {
    Gesmas,
    /// gesmas with the standard classes as native code.
    Native,
    Zookeeper,
    Etcd,
    Redis,
}

impl Name {
    /// In the order of their turns.
    pub(crate) const ALL: [Self; 5] =
        [Self::Gesmas, Self::Native, Self::Zookeeper, Self::Etcd, Self::Redis];

    /// Its name in the tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Gesmas => Gesmas::<false>::NAME,
            Self::Native => Gesmas::<true>::NAME,
            Self::Zookeeper => ZooKeeper::NAME,
            Self::Etcd => Etcd::NAME,
            Self::Redis => Redis::NAME,
        }
    }
}

/// What the machine and the servers did meanwhile.
pub(crate) struct Machine {
    pub(crate) load: Load,
    /// Syncs of its log by each server.
    pub(crate) syncs_per_second: Vec<f64>,
}

/// The beginning of a measurement.
pub(crate) struct Meter {
    load: LoadMeter,
    syncs: Vec<u64>,
    begin: Instant,
}

impl Meter {
    /// Begins.
    pub(crate) async fn start<S: System>(system: &S) -> Result<Self> {
        let syncs = system.syncs().await?;
        Ok(Self { load: LoadMeter::start(system.processes()), syncs, begin: Instant::now() })
    }

    /// Ends.
    pub(crate) async fn stop<S: System>(self, system: &S) -> Result<Machine> {
        let load = self.load.stop();
        let seconds = self.begin.elapsed().as_secs_f64();
        let syncs = system.syncs().await?;
        let difference = |(before, after): (&u64, &u64)| (after - before) as f64 / seconds;
        let syncs_per_second = self.syncs.iter().zip(&syncs).map(difference).collect();
        Ok(Machine { load, syncs_per_second })
    }
}

/// One measurement.
pub(crate) struct Sample {
    pub(crate) operations_per_second: f64,
    pub(crate) latencies: Latencies,
    /// Attempts for each operation.
    pub(crate) attempts: f64,
    pub(crate) bytes_per_operation: Option<f64>,
    /// Operations that others did at the same time, where the row has others.
    pub(crate) beside_per_second: Option<f64>,
    pub(crate) machine: Machine,
}

/// All that was measured.
pub(crate) struct Measured {
    pub(crate) floor: Vec<Floor>,
    pub(crate) samples: BTreeMap<(Row, Name), Vec<Sample>>,
    /// Rows that a system was spared.
    pub(crate) left: BTreeMap<(Row, Name), &'static str>,
    pub(crate) took: Duration,
}

/// Measures all that is asked.
pub(crate) fn all(options: &Options) -> Result<Measured> {
    let begin = Instant::now();
    let rows: Vec<Row> = options.kinds().into_iter().flat_map(|kind| kind.rows()).collect();
    let mut measured = Measured {
        floor: Vec::new(),
        samples: BTreeMap::new(),
        left: BTreeMap::new(),
        took: Duration::ZERO,
    };
    for repeat in 1..=options.repeats {
        let floor = floor::measure()?;
        eprintln!("{repeat}/{}: {floor}", options.repeats);
        measured.floor.push(floor);
        for name in &options.systems {
            eprintln!("{repeat}/{}: {}", options.repeats, name.title());
            let (length, rows) = (options.seconds, &rows);
            // All clients are on one thread, so that most of the machine is the servers'.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (local, into) = (LocalSet::new(), &mut measured);
            match name {
                Name::Gesmas => {
                    local.block_on(&runtime, one::<Gesmas<false>>(*name, rows, length, into))
                }
                Name::Native => {
                    local.block_on(&runtime, one::<Gesmas<true>>(*name, rows, length, into))
                }
                Name::Zookeeper => {
                    local.block_on(&runtime, one::<ZooKeeper>(*name, rows, length, into))
                }
                Name::Etcd => local.block_on(&runtime, one::<Etcd>(*name, rows, length, into)),
                Name::Redis => local.block_on(&runtime, one::<Redis>(*name, rows, length, into)),
            }?;
        }
    }
    measured.took = begin.elapsed();
    Ok(measured)
}

async fn one<S: System>(
    name: Name,
    rows: &[Row],
    length: Duration,
    measured: &mut Measured,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let system = S::start(folder.path()).await?;
    warm_up(&system).await?;
    for row in rows {
        if let Some(Cap::Leave(why)) = row.cap(S::NAME) {
            measured.left.insert((*row, name), why);
            continue;
        }
        let sample = row.measure(&system, length).await?;
        eprintln!(
            "    {:<10} {:>7}: {:>9.0} operations/s, p50 {:>9.0} µs, p99 {:>9.0} µs",
            row.kind.name(),
            row.size,
            sample.operations_per_second,
            sample.latencies.p50,
            sample.latencies.p99,
        );
        measured.samples.entry((*row, name)).or_default().push(sample);
    }
    Ok(())
}

async fn warm_up<S: System>(system: &S) -> Result<()> {
    let end = Instant::now() + WARM_UP;
    let mut tasks = JoinSet::<Result<()>>::new();
    for number in 0..WARM_UP_CLIENTS {
        let client = system.connect(number).await?;
        tasks.spawn_local(async move {
            let key = format!("warm-up-{number}");
            client.make_register(&key).await?;
            while Instant::now() < end {
                client.update(&key, b"warm").await?;
                client.read(&key).await?;
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(std::io::Error::other)??;
    }
    Ok(())
}
