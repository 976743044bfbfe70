//! Why no snapshots live inside omnipaxos: a follower that rejoins loses entries.
//!
//! The same short history runs on omnipaxos alone, once with an entry that takes snapshots and once
//! with one that does not. If the first test fails, the bug has been mended and the rule of
//! `entry.rs` can be thought over.

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message;
use omnipaxos::storage::{
    Entry, NoSnapshot, Snapshot, StopSign, Storage, StorageOp, StorageResult,
};
use omnipaxos::util::LogEntry as Read;
use omnipaxos::{ClusterConfig, OmniPaxos, OmniPaxosConfig, ServerConfig};
use serde::{Deserialize, Serialize};

use super::super::LogEntry;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Snapshotted(u64);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct AllEntries(Vec<u64>);

impl Snapshot<Snapshotted> for AllEntries {
    fn create(entries: &[Snapshotted]) -> Self {
        Self(entries.iter().map(|entry| entry.0).collect())
    }

    fn merge(&mut self, delta: Self) {
        self.0.extend(delta.0);
    }

    fn use_snapshots() -> bool {
        true
    }
}

impl Entry for Snapshotted {
    type Snapshot = AllEntries;
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Plain(u64);

impl Entry for Plain {
    type Snapshot = NoSnapshot;
}

/// A storage in memory, as simple as it can be.
struct Memory<T: Entry> {
    entries: Vec<T>,
    promise: Option<Ballot>,
    accepted_round: Option<Ballot>,
    decided: usize,
    compacted: usize,
    snapshot: Option<T::Snapshot>,
}

impl<T: Entry> Storage<T> for Memory<T> {
    fn write_atomically(&mut self, ops: Vec<StorageOp<T>>) -> StorageResult<()> {
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

    fn append_entry(&mut self, entry: T) -> StorageResult<()> {
        self.entries.push(entry);
        Ok(())
    }

    fn append_entries(&mut self, entries: Vec<T>) -> StorageResult<()> {
        self.entries.extend(entries);
        Ok(())
    }

    fn append_on_prefix(&mut self, from: usize, entries: Vec<T>) -> StorageResult<()> {
        self.entries.truncate(from - self.compacted);
        self.append_entries(entries)
    }

    fn set_promise(&mut self, ballot: Ballot) -> StorageResult<()> {
        self.promise = Some(ballot);
        Ok(())
    }

    fn set_decided_idx(&mut self, index: usize) -> StorageResult<()> {
        self.decided = index;
        Ok(())
    }

    fn get_decided_idx(&self) -> StorageResult<usize> {
        Ok(self.decided)
    }

    fn set_accepted_round(&mut self, ballot: Ballot) -> StorageResult<()> {
        self.accepted_round = Some(ballot);
        Ok(())
    }

    fn get_accepted_round(&self) -> StorageResult<Option<Ballot>> {
        Ok(self.accepted_round)
    }

    fn get_entries(&self, from: usize, to: usize) -> StorageResult<Vec<T>> {
        let range = from.saturating_sub(self.compacted)..to.saturating_sub(self.compacted);
        Ok(self.entries.get(range).unwrap_or_default().to_vec())
    }

    fn get_log_len(&self) -> StorageResult<usize> {
        Ok(self.entries.len())
    }

    fn get_suffix(&self, from: usize) -> StorageResult<Vec<T>> {
        self.get_entries(from, self.compacted + self.entries.len())
    }

    fn get_promise(&self) -> StorageResult<Option<Ballot>> {
        Ok(self.promise)
    }

    fn set_stopsign(&mut self, _: Option<StopSign>) -> StorageResult<()> {
        Ok(())
    }

    fn get_stopsign(&self) -> StorageResult<Option<StopSign>> {
        Ok(None)
    }

    fn trim(&mut self, index: usize) -> StorageResult<()> {
        let trimmed = (index - self.compacted).min(self.entries.len());
        self.entries.drain(..trimmed);
        Ok(())
    }

    fn set_compacted_idx(&mut self, index: usize) -> StorageResult<()> {
        self.compacted = index;
        Ok(())
    }

    fn get_compacted_idx(&self) -> StorageResult<usize> {
        Ok(self.compacted)
    }

    fn set_snapshot(&mut self, snapshot: Option<T::Snapshot>) -> StorageResult<()> {
        self.snapshot = snapshot;
        Ok(())
    }

    fn get_snapshot(&self) -> StorageResult<Option<T::Snapshot>> {
        Ok(self.snapshot.clone())
    }
}

type Bare<T> = OmniPaxos<T, Memory<T>>;

fn build<T: Entry>(pid: u64) -> Bare<T> {
    let storage = Memory {
        entries: vec![],
        promise: None,
        accepted_round: None,
        decided: 0,
        compacted: 0,
        snapshot: None,
    };
    let cluster_config =
        ClusterConfig { configuration_id: 1, nodes: vec![1, 2, 3], flexible_quorum: None };
    let server_config = ServerConfig { pid, ..ServerConfig::default() };
    OmniPaxosConfig { cluster_config, server_config }.build(storage).unwrap()
}

/// Delivers everything but what is from or for the replica that is cut off.
fn deliver_all<T: Entry>(nodes: &mut [Bare<T>; 3], cut_off: Option<u64>) {
    loop {
        let mut messages: Vec<Message<T>> = Vec::new();
        nodes.iter_mut().for_each(|node| node.take_outgoing_messages(&mut messages));
        if messages.is_empty() {
            return;
        }
        for message in messages {
            let (from, to) = (message.get_sender(), message.get_receiver());
            if cut_off != Some(from) && cut_off != Some(to) {
                nodes[usize::try_from(to - 1).unwrap()].handle_incoming(message);
            }
        }
    }
}

/// Five entries are decided, five more while replica 3 is cut off, and replica 3 comes back.
fn follower_that_rejoined<T: Entry>(entry: fn(u64) -> T) -> Bare<T> {
    let mut nodes = [build(1), build(2), build(3)];
    nodes[0].try_become_leader();
    deliver_all(&mut nodes, None);
    for (numbers, cut_off) in [(0..5, None), (5..10, Some(3))] {
        for number in numbers {
            nodes[0].append(entry(number)).unwrap();
        }
        deliver_all(&mut nodes, cut_off);
    }
    nodes[2].reconnected(1);
    deliver_all(&mut nodes, None);
    let [_, _, follower] = nodes;
    assert_eq!(follower.get_decided_idx(), 10);
    follower
}

#[test]
fn a_delta_snapshot_of_omnipaxos_loses_entries() {
    let follower = follower_that_rejoined(Snapshotted);
    let Some(Read::Snapshotted(read)) = follower.read(0) else { panic!("no snapshot") };
    assert_ne!(read.snapshot.0, (0..10).collect::<Vec<_>>());
}

#[test]
fn without_snapshots_it_loses_none() {
    let follower = follower_that_rejoined(Plain);
    let read = follower.read_decided_suffix(0).unwrap();
    let numbers = read.into_iter().map(|entry| match entry {
        Read::Decided(Plain(number)) => number,
        other => panic!("{other:?}"),
    });
    assert!(numbers.eq(0..10));
}

#[test]
fn our_entries_take_no_snapshots() {
    assert!(!<<LogEntry as Entry>::Snapshot as Snapshot<LogEntry>>::use_snapshots());
}
