//! The storage of omnipaxos on top of the log.
//!
//! omnipaxos consumes its storage, so it gets a handle and the driver keeps another. The handle is
//! locked for the moment of a call only; both ends live on the driver's thread, and the lock is
//! what lets the whole core be moved into it.
//!
//! Invariant: an error of the log stops the node. omnipaxos changes its caches before it calls the
//! storage and then unwraps, so there is nothing to go back to. The error is put aside, the stack is
//! unwound past omnipaxos without a panic message, and `node.rs` returns the error as it was.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gesmas_machine::{Planted, PlantedBug};
use omnipaxos::ballot_leader_election::Ballot as PaxosBallot;
use omnipaxos::storage::{NoSnapshot, StopSign, Storage, StorageOp, StorageResult};

use super::ballot::{from_record, to_record};
use super::entry::LogEntry;
use crate::log::{Call, Instance, Log, LogError, Synced, Syncing};

/// The most bytes of an encoded stop sign.
const STOP_SIGN_LIMIT: usize = 64 << 10;

/// A log that a driver and its nodes share.
pub type SharedLog = Arc<Mutex<Log>>;

/// Shares a log between a driver and its nodes.
pub fn share(log: Log) -> SharedLog {
    Arc::new(Mutex::new(log))
}

/// Makes a shared log durable: step 3 of a turn. After an error the replica must stop.
pub fn sync(log: &SharedLog) -> Result<(), LogError> {
    lock(log).sync()
}

/// The first half of [`sync`]: what is returned makes the log durable, on any thread.
pub fn begin_sync(log: &SharedLog) -> Result<Option<Syncing>, LogError> {
    lock(log).begin_sync()
}

/// The second half: how it went.
pub fn end_sync(log: &SharedLog, synced: Synced) -> Result<(), LogError> {
    lock(log).end_sync(synced)
}

/// Whether something of this turn has to become durable before others may hear of it.
pub fn needs_sync(log: &SharedLog) -> bool {
    lock(log).needs_sync()
}

/// Whether a shared log can go on, after another attempt to make its next file.
pub fn make_room(log: &SharedLog) -> Result<bool, LogError> {
    lock(log).make_room()
}

/// Why a shared log cannot go on now, if it cannot.
pub fn lack(log: &SharedLog) -> Option<String> {
    lock(log).lack().map(Into::into)
}

/// Turns that a shared log has made durable.
pub fn syncs(log: &SharedLog) -> u64 {
    lock(log).syncs()
}

/// The lock is only ever held for one call, and a panic within it stops the replica anyway.
pub(crate) fn lock(log: &SharedLog) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why the stack was unwound: the error itself is put aside.
pub(crate) struct StorageStopped;

/// The place where the error is put aside.
#[derive(Clone, Default)]
pub(crate) struct Aside(Arc<Mutex<Option<LogError>>>);

impl Aside {
    pub(crate) fn take(&self) -> Option<LogError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn stop(&self, error: LogError) -> ! {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        resume_unwind(Box::new(StorageStopped))
    }
}

/// One instance of a shared log, in the shape omnipaxos wants.
pub(crate) struct InstanceStorage {
    pub(crate) log: SharedLog,
    pub(crate) instance: Instance,
    pub(crate) aside: Aside,
    pub(crate) planted: Planted,
}

impl InstanceStorage {
    fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    fn record(&self, call: &Call) {
        let outcome = self.log().record(self.instance, call);
        outcome.unwrap_or_else(|error| self.aside.stop(error));
    }

    fn read(&self, from: u64, to: u64) -> Vec<LogEntry> {
        let outcome = self.log().entries(self.instance, from, to, u64::MAX);
        let entries = outcome.unwrap_or_else(|error| self.aside.stop(error));
        entries.into_iter().map(LogEntry).collect()
    }
}

impl Storage<LogEntry> for InstanceStorage {
    fn write_atomically(&mut self, ops: Vec<StorageOp<LogEntry>>) -> StorageResult<()> {
        // The turn is the record, so whatever is called within one turn is atomic.
        for op in ops {
            match op {
                StorageOp::AppendEntry(entry) => self.append_entry(entry)?,
                StorageOp::AppendEntries(entries) => self.append_entries(entries)?,
                StorageOp::AppendOnPrefix(from, entries) => self.append_on_prefix(from, entries)?,
                StorageOp::SetPromise(ballot) => self.set_promise(ballot)?,
                StorageOp::SetDecidedIndex(index) => self.set_decided_idx(index)?,
                StorageOp::SetAcceptedRound(ballot) => self.set_accepted_round(ballot)?,
                StorageOp::SetCompactedIdx(index) => self.set_compacted_idx(index)?,
                StorageOp::Trim(index) => self.trim(index)?,
                StorageOp::SetStopsign(stop_sign) => self.set_stopsign(stop_sign)?,
                StorageOp::SetSnapshot(snapshot) => self.set_snapshot(snapshot)?,
            }
        }
        Ok(())
    }

    fn append_entry(&mut self, entry: LogEntry) -> StorageResult<()> {
        self.record(&Call::Append(vec![entry.0]));
        Ok(())
    }

    fn append_entries(&mut self, entries: Vec<LogEntry>) -> StorageResult<()> {
        if !entries.is_empty() {
            self.record(&Call::Append(bytes_of(entries)));
        }
        Ok(())
    }

    fn append_on_prefix(&mut self, from: usize, entries: Vec<LogEntry>) -> StorageResult<()> {
        self.record(&Call::AppendOnPrefix(from as u64, bytes_of(entries)));
        Ok(())
    }

    fn set_promise(&mut self, ballot: PaxosBallot) -> StorageResult<()> {
        let ballot = to_record(ballot);
        // omnipaxos sets the promise that it has just read when it starts.
        let lost = self.planted.has(PlantedBug::VoteNotPersisted);
        if !lost && self.log().promise(self.instance) != Some(ballot) {
            self.record(&Call::Promise(ballot));
        }
        Ok(())
    }

    fn set_decided_idx(&mut self, index: usize) -> StorageResult<()> {
        self.record(&Call::Decided(index as u64));
        Ok(())
    }

    fn get_decided_idx(&self) -> StorageResult<usize> {
        Ok(to_usize(self.log().decided(self.instance)))
    }

    fn set_accepted_round(&mut self, ballot: PaxosBallot) -> StorageResult<()> {
        let ballot = to_record(ballot);
        if self.log().accepted_round(self.instance) != Some(ballot) {
            self.record(&Call::AcceptedRound(ballot));
        }
        Ok(())
    }

    fn get_accepted_round(&self) -> StorageResult<Option<PaxosBallot>> {
        Ok(self.log().accepted_round(self.instance).map(from_record))
    }

    fn get_entries(&self, from: usize, to: usize) -> StorageResult<Vec<LogEntry>> {
        let end = to_usize(self.log().end(self.instance));
        if from >= to || to > end {
            return Ok(Vec::new());
        }
        Ok(self.read(from as u64, to as u64))
    }

    fn get_log_len(&self) -> StorageResult<usize> {
        let log = self.log();
        Ok(to_usize(log.end(self.instance) - log.first(self.instance)))
    }

    fn get_suffix(&self, from: usize) -> StorageResult<Vec<LogEntry>> {
        let end = self.log().end(self.instance);
        Ok(self.read(from as u64, end))
    }

    fn get_promise(&self) -> StorageResult<Option<PaxosBallot>> {
        Ok(self.log().promise(self.instance).map(from_record))
    }

    fn set_stopsign(&mut self, stop_sign: Option<StopSign>) -> StorageResult<()> {
        self.record(&Call::StopSign(stop_sign.map(|stop_sign| encode_stop_sign(&stop_sign))));
        Ok(())
    }

    fn get_stopsign(&self) -> StorageResult<Option<StopSign>> {
        Ok(self.log().stop_sign(self.instance).map(|bytes| decode_stop_sign(&bytes)))
    }

    fn trim(&mut self, index: usize) -> StorageResult<()> {
        self.record(&Call::Trim(index as u64));
        Ok(())
    }

    fn set_compacted_idx(&mut self, index: usize) -> StorageResult<()> {
        self.record(&Call::Compacted(index as u64));
        Ok(())
    }

    fn get_compacted_idx(&self) -> StorageResult<usize> {
        Ok(to_usize(self.log().compacted(self.instance)))
    }

    fn set_snapshot(&mut self, snapshot: Option<NoSnapshot>) -> StorageResult<()> {
        assert!(snapshot.is_none(), "snapshots stay outside of omnipaxos");
        Ok(())
    }

    fn get_snapshot(&self) -> StorageResult<Option<NoSnapshot>> {
        Ok(None)
    }
}

fn bytes_of(entries: Vec<LogEntry>) -> Vec<Bytes> {
    entries.into_iter().map(|entry| entry.0).collect()
}

fn to_usize(index: u64) -> usize {
    usize::try_from(index).expect("indices of entries in memory fit")
}

fn encode_stop_sign(stop_sign: &StopSign) -> Bytes {
    let config = bincode::config::standard().with_limit::<STOP_SIGN_LIMIT>();
    let bytes = bincode::serde::encode_to_vec(stop_sign, config);
    bytes.expect("a stop sign lists a few members").into()
}

fn decode_stop_sign(bytes: &[u8]) -> StopSign {
    let config = bincode::config::standard().with_limit::<STOP_SIGN_LIMIT>();
    let (stop_sign, length) = bincode::serde::decode_from_slice(bytes, config)
        .expect("a stop sign from a verified record is as it was written");
    assert_eq!(length, bytes.len(), "a stop sign ends where its bytes end");
    stop_sign
}
