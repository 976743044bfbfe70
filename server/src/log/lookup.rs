//! The log as its readers see it: entries, the scalars of its instances, and how it is doing.
//!
//! Invariant: nothing here changes what the log holds; reading an entry that is not in memory reads it
//! back from its file, and checks it.
//! Not here: how it got there (`durable.rs`).

use bytes::Bytes;

use super::call::{Instance, RecordedBallot};
use super::durable::Log;
use super::error::LogError;
use super::repo::Repo;
use super::state::{InstanceState, Place, Slot};

impl Log {
    /// The entries from `from` up to, not including, `to`: as many as there are and as fit into
    /// `max_bytes`, but at least one if there is one.
    pub fn entries(
        &mut self,
        instance: Instance,
        from: u64,
        to: u64,
        max_bytes: u64,
    ) -> Result<Vec<Bytes>, LogError> {
        let Some(state) = self.state.get(instance) else { return Ok(Vec::new()) };
        if from < state.first() && from < to {
            return Err(LogError::Compacted { index: from, first: state.first() });
        }
        let to = to.min(state.end());
        let mut left = max_bytes;
        let mut entries = Vec::new();
        for index in from..to {
            let slot = state.slot(index).expect("between first and end");
            let length = u64::from(slot.length);
            if length > left && !entries.is_empty() {
                break;
            }
            left = left.saturating_sub(length);
            entries.push(match &slot.cached {
                Some(bytes) => bytes.clone(),
                None => read_back(&mut *self.repo, slot)?,
            });
        }
        Ok(entries)
    }

    /// The instances of which the log knows anything.
    pub fn instances(&self) -> Vec<Instance> {
        self.state.instances().map(|(instance, _)| instance).collect()
    }

    fn instance(&self, instance: Instance) -> Option<&InstanceState> {
        self.state.get(instance)
    }

    /// The promise of an instance.
    pub fn promise(&self, instance: Instance) -> Option<RecordedBallot> {
        self.instance(instance).and_then(|state| state.promise)
    }

    /// The round in which an instance last accepted entries.
    pub fn accepted_round(&self, instance: Instance) -> Option<RecordedBallot> {
        self.instance(instance).and_then(|state| state.accepted_round)
    }

    /// The decided index of an instance.
    pub fn decided(&self, instance: Instance) -> u64 {
        self.instance(instance).map_or(0, |state| state.decided)
    }

    /// The compacted index of an instance.
    pub fn compacted(&self, instance: Instance) -> u64 {
        self.instance(instance).map_or(0, |state| state.compacted)
    }

    /// The mark that ends the configuration, if it was accepted.
    pub fn stop_sign(&self, instance: Instance) -> Option<Bytes> {
        self.instance(instance).and_then(|state| state.stop_sign.clone())
    }

    /// The disk of a member, as far as it has ever been told.
    pub fn disk(&self, instance: Instance, replica: u64) -> Option<u128> {
        self.instance(instance).and_then(|state| state.disks.get(&replica).copied())
    }

    /// Whether all members know this replica's disk.
    pub fn is_admitted(&self, instance: Instance) -> bool {
        self.instance(instance).is_some_and(|state| state.admitted)
    }

    /// One past the index of the last entry of an instance.
    pub fn end(&self, instance: Instance) -> u64 {
        self.instance(instance).map_or(0, InstanceState::end)
    }

    /// One past the last entry of an instance before the first that is not durable yet.
    pub fn durable_end(&self, instance: Instance) -> u64 {
        self.state.placed_end(instance)
    }

    /// The index of the first entry of an instance that is kept.
    pub fn first(&self, instance: Instance) -> u64 {
        self.instance(instance).map_or(0, InstanceState::first)
    }

    /// Turns that were made durable, each with one fdatasync, since the log was opened.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Numbers of the first file that is kept and of the one that is written to.
    pub fn files(&self) -> (u64, u64) {
        (self.oldest, self.active.header.number)
    }

    /// Bytes of recent entries that are held in memory.
    pub fn cached_bytes(&self) -> u64 {
        self.state.cached_bytes()
    }
}

fn read_back(repo: &mut dyn Repo, slot: &Slot) -> Result<Bytes, LogError> {
    let Place { file, offset } = slot.place;
    assert_ne!(file, 0, "what is in no file yet is in memory");
    let mut bytes = vec![0; slot.length as usize];
    repo.read(file, offset, &mut bytes)?;
    if crc32c::crc32c(&bytes) != slot.checksum {
        return Err(LogError::EntryCorrupt { file, offset });
    }
    Ok(bytes.into())
}
