//! Tests of the log on a modelled disk: what it keeps, what it loses, what it refuses.

mod corruption;
mod crashes;
mod errors;
mod folder;
mod given_back;
mod turns;

use bytes::Bytes;

use super::repo::{MemDisk, Repo};
use super::{Call, Identity, Instance, Log, LogError, LogSettings, RecordedBallot};

const IDENTITY: Identity = Identity { cluster: 0x6e5, replica: 2 };
const FIRST: Instance = Instance { group: 1, configuration: 1 };
const SECOND: Instance = Instance { group: 2, configuration: 3 };

const SETTINGS: LogSettings =
    LogSettings { identity: IDENTITY, file_bytes: 4096, cache_bytes: 1 << 20, salt: 0x5a17 };

/// A source of choices that replays from its seed.
struct Choices(u64);

impl Choices {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// One of `0..n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn ballot(number: u32) -> RecordedBallot {
    RecordedBallot { configuration: 1, number, priority: 0, replica: 2 }
}

fn entry(number: u64, length: usize) -> Bytes {
    let mut bytes = format!("{number}:").into_bytes();
    bytes.resize(length.max(bytes.len()), b'e');
    bytes.into()
}

fn create(disk: &MemDisk) -> Log {
    Log::create(Box::new(disk.open().unwrap()), SETTINGS).unwrap()
}

fn open(disk: &MemDisk) -> Result<Log, LogError> {
    Log::open(Box::new(disk.open().unwrap()), SETTINGS)
}

/// Everything the log holds of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Contents {
    promise: Option<RecordedBallot>,
    accepted_round: Option<RecordedBallot>,
    decided: u64,
    compacted: u64,
    stop_sign: Option<Bytes>,
    first: u64,
    entries: Vec<Bytes>,
}

fn contents(log: &mut Log, instance: Instance) -> Contents {
    let (first, end) = (log.first(instance), log.end(instance));
    Contents {
        promise: log.promise(instance),
        accepted_round: log.accepted_round(instance),
        decided: log.decided(instance),
        compacted: log.compacted(instance),
        stop_sign: log.stop_sign(instance),
        first,
        entries: log.entries(instance, first, end, u64::MAX).unwrap(),
    }
}

fn both(log: &mut Log) -> [Contents; 2] {
    [contents(log, FIRST), contents(log, SECOND)]
}

/// Runs `turns` turns with one entry each, and returns the contents after each turn, those before
/// the first included.
fn run_turns(log: &mut Log, turns: u64) -> Vec<[Contents; 2]> {
    let mut after = vec![both(log)];
    for turn in 1..=turns {
        log.record(FIRST, &Call::Promise(ballot(u32::try_from(turn).unwrap()))).unwrap();
        log.record(FIRST, &Call::Append(vec![entry(turn, 40)])).unwrap();
        log.record(SECOND, &Call::AppendOnPrefix(turn / 2, vec![entry(turn, 7)])).unwrap();
        log.sync().unwrap();
        after.push(both(log));
    }
    after
}
