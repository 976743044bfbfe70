//! What the log holds, in memory: the scalars of every instance and an index of its entries.
//!
//! Each entry has a slot: where its bytes are, how long they are, their checksum, and, while it is
//! recent, the bytes themselves. The same code applies a call that is made and one that is read
//! back by recovery.
//!
//! Invariants:
//! - Slots of an instance are dense, from `first` on.
//! - A slot whose bytes are not in a file yet keeps them in memory: only placed slots are evicted.
//! - Bytes in memory are at most the cache's limit plus one turn.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::call::{Base, Instance, RecordedBallot};

/// Where the bytes of an entry begin. File 0 is the record of the turn that is being gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: u64,
    pub(crate) offset: u64,
}

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) place: Place,
    pub(crate) length: u32,
    pub(crate) checksum: u32,
    pub(crate) cached: Option<Bytes>,
}

/// One instance.
#[derive(Debug, Default)]
pub(crate) struct InstanceState {
    pub(crate) promise: Option<RecordedBallot>,
    pub(crate) accepted_round: Option<RecordedBallot>,
    pub(crate) decided: u64,
    pub(crate) compacted: u64,
    pub(crate) stop_sign: Option<Bytes>,
    pub(crate) disks: BTreeMap<u64, u128>,
    pub(crate) admitted: bool,
    first: u64,
    slots: VecDeque<Slot>,
    /// What it was at the end of the last turn that is in the files.
    settled: Base,
}

impl InstanceState {
    /// The index of the first entry that is kept.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// One past the index of the last entry.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// The slot of an entry, if it is kept.
    pub(crate) fn slot(&self, index: u64) -> Option<&Slot> {
        let at = index.checked_sub(self.first)?;
        self.slots.get(usize::try_from(at).ok()?)
    }

    fn base(&self) -> Base {
        Base {
            promise: self.promise,
            accepted_round: self.accepted_round,
            decided: self.decided,
            compacted: self.compacted,
            first: self.first,
            end: self.end(),
            stop_sign: self.stop_sign.clone(),
            disks: self.disks.clone(),
            admitted: self.admitted,
        }
    }

    /// File in which the first entry is.
    fn oldest_file(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.place.file)
    }

    fn slot_mut(&mut self, index: u64) -> Option<&mut Slot> {
        let at = index.checked_sub(self.first)?;
        self.slots.get_mut(usize::try_from(at).ok()?)
    }
}

/// All instances and the cache of their recent entries.
#[derive(Debug)]
pub(crate) struct State {
    instances: BTreeMap<Instance, InstanceState>,
    cache_limit: u64,
    cached_bytes: u64,
    /// Entries in the order in which they were cached. One that has been replaced since stands for
    /// its successor, which is then evicted early; that costs a read, no more.
    recent: VecDeque<(Instance, u64)>,
    /// Entries whose bytes are in no file yet.
    unplaced: Vec<(Instance, u64)>,
}

impl State {
    /// No instances; up to `cache_limit` bytes of entries are kept in memory.
    pub(crate) fn new(cache_limit: u64) -> Self {
        Self {
            instances: BTreeMap::new(),
            cache_limit,
            cached_bytes: 0,
            recent: VecDeque::new(),
            unplaced: Vec::new(),
        }
    }

    /// An instance, if the log knows it.
    pub(crate) fn get(&self, instance: Instance) -> Option<&InstanceState> {
        self.instances.get(&instance)
    }

    /// An instance, which is made if the log does not know it.
    pub(crate) fn get_mut(&mut self, instance: Instance) -> &mut InstanceState {
        self.instances.entry(instance).or_default()
    }

    /// All instances.
    pub(crate) fn instances(&self) -> impl Iterator<Item = (Instance, &InstanceState)> {
        self.instances.iter().map(|(instance, state)| (*instance, state))
    }

    /// Bytes of entries in memory.
    pub(crate) fn cached_bytes(&self) -> u64 {
        self.cached_bytes
    }

    /// What every instance was at the end of the last turn that is in the files.
    pub(crate) fn settled(&self) -> impl Iterator<Item = (Instance, &Base)> {
        self.instances.iter().map(|(instance, state)| (*instance, &state.settled))
    }

    /// The file in which the oldest entry is that is kept.
    pub(crate) fn oldest_file(&self) -> Option<u64> {
        self.instances.values().filter_map(InstanceState::oldest_file).min()
    }

    /// Begins an instance in the middle: its entries so far are in files before `file`.
    pub(crate) fn begin_at(&mut self, instance: Instance, base: Base, file: u64) {
        let place = Place { file: file - 1, offset: 0 };
        let slots = base.first..base.end;
        let slots = slots.map(|_| Slot { place, length: 0, checksum: 0, cached: None }).collect();
        let state = InstanceState {
            promise: base.promise,
            accepted_round: base.accepted_round,
            decided: base.decided,
            compacted: base.compacted,
            stop_sign: base.stop_sign.clone(),
            disks: base.disks.clone(),
            admitted: base.admitted,
            first: base.first,
            slots,
            settled: base,
        };
        self.instances.insert(instance, state);
    }

    /// Whether an instance is what a file says it was before the file. The decided index is not
    /// made durable by itself, so that the file may know more.
    pub(crate) fn agrees(&self, instance: Instance, base: &Base) -> bool {
        let own = self.instances.get(&instance).map(InstanceState::base).unwrap_or_default();
        own.decided <= base.decided && Base { decided: base.decided, ..own } == *base
    }

    /// Puts one entry at the end.
    pub(crate) fn push(&mut self, instance: Instance, place: Place, bytes: Bytes) {
        let state = self.instances.entry(instance).or_default();
        let index = state.end();
        let length = u32::try_from(bytes.len()).expect("an entry is far smaller");
        let checksum = crc32c::crc32c(&bytes);
        self.cached_bytes += u64::from(length);
        state.slots.push_back(Slot { place, length, checksum, cached: Some(bytes) });
        self.recent.push_back((instance, index));
        if place.file == 0 {
            self.unplaced.push((instance, index));
        }
    }

    /// Drops all entries from `from` on. False if that would leave a hole.
    pub(crate) fn truncate(&mut self, instance: Instance, from: u64) -> bool {
        let state = self.instances.entry(instance).or_default();
        if from < state.first || from > state.end() {
            return false;
        }
        let keep = usize::try_from(from - state.first).expect("at most the slots there are");
        self.cached_bytes -= cached(state.slots.drain(keep..));
        true
    }

    /// Drops all entries before `before`, which may be past the end.
    pub(crate) fn trim(&mut self, instance: Instance, before: u64) {
        let state = self.instances.entry(instance).or_default();
        let drop = before.saturating_sub(state.first).min(state.slots.len() as u64);
        let drop = usize::try_from(drop).expect("at most the slots there are");
        self.cached_bytes -= cached(state.slots.drain(..drop));
        state.first = state.first.max(before);
    }

    /// One past the last entry before the first whose bytes are in no file yet.
    pub(crate) fn placed_end(&self, instance: Instance) -> u64 {
        let end = self.get(instance).map_or(0, InstanceState::end);
        let own = self.unplaced.iter().filter(|(of, _)| *of == instance);
        own.map(|(_, index)| *index).fold(end, u64::min)
    }

    /// Tells the entries of the turn where their record went, then evicts the oldest ones.
    pub(crate) fn place(&mut self, record: Place) {
        for (instance, index) in std::mem::take(&mut self.unplaced) {
            let slot = self.instances.get_mut(&instance).and_then(|state| state.slot_mut(index));
            // It may have been dropped or replaced within the turn.
            if let Some(slot) = slot
                && slot.place.file == 0
            {
                slot.place = Place { file: record.file, offset: record.offset + slot.place.offset };
            }
        }
        self.settle();
        self.evict();
    }

    /// What was read back is in the files.
    pub(crate) fn settle(&mut self) {
        for state in self.instances.values_mut() {
            state.settled = state.base();
        }
    }

    /// Brings the cache under its limit. All slots must be placed.
    pub(crate) fn evict(&mut self) {
        assert!(self.unplaced.is_empty(), "only what is in a file can be evicted");
        while self.cached_bytes > self.cache_limit {
            let (instance, index) = self.recent.pop_front().expect("cached bytes are listed");
            let slot = self.instances.get_mut(&instance).and_then(|state| state.slot_mut(index));
            if let Some(bytes) = slot.and_then(|slot| slot.cached.take()) {
                self.cached_bytes -= bytes.len() as u64;
            }
        }
        self.forget_replaced();
    }

    /// Keeps the list of recent entries in proportion when entries are replaced again and again
    /// without the cache ever filling, or when they have no bytes at all.
    fn forget_replaced(&mut self) {
        let slots: usize = self.instances.values().map(|state| state.slots.len()).sum();
        if self.recent.len() > 2 * slots + 1024 {
            let instances = &self.instances;
            let mut listed = std::collections::BTreeSet::new();
            self.recent.retain(|(instance, index)| {
                let slot = instances.get(instance).and_then(|state| state.slot(*index));
                slot.is_some_and(|slot| slot.cached.is_some()) && listed.insert((*instance, *index))
            });
        }
    }
}

fn cached(slots: impl Iterator<Item = Slot>) -> u64 {
    slots.filter_map(|slot| slot.cached).map(|bytes| bytes.len() as u64).sum()
}
