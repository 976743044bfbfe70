//! The objects' ordered key-value stores, and the collections laid out in them.
//!
//! A collection's header lies at its name, an entry at name, zero byte, key. A deque's header is
//! the position of its front and its length; its entries' keys are positions, big-endian, around
//! the middle of the number line. A map's header is its length.
//! Invariants: sizes are accounted with each change, here alone; what does not grow is never
//! refused.

use std::{ops::Bound, sync::Arc};

use crate::{
    limits::{Limits, within},
    names::ObjectName,
    outcome::Trap,
    state::{Entry, State},
    sum::Sum,
    world::{World, undo::Undo},
};

/// Position of the first item of a deque that was empty.
const DEQUE_MIDDLE: u64 = 1 << 63;

/// Front position and length of a deque.
#[derive(Clone, Copy)]
struct DequeHeader {
    front: u64,
    length: u64,
}

/// How an entry grows, in the bytes of an object and of the whole state.
struct Growth {
    before: u64,
    after: u64,
    object: u64,
    state: u64,
}

impl Growth {
    fn check(&self, limits: &Limits, key: usize, value: usize) -> Result<(), Trap> {
        if self.after <= self.before {
            return Ok(());
        }
        within("key_bytes", limits.key_bytes, key as u64)?;
        within("value_bytes", limits.value_bytes, value as u64)?;
        let (before, after) = (self.before, self.after);
        within("object_bytes", limits.object_bytes, self.object - before + after)?;
        within("state_bytes", limits.state_bytes, self.state - before + after)?;
        Ok(())
    }
}

/// Which end of a deque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

impl World {
    /// The value of a key.
    pub(crate) fn get(&self, object: &ObjectName, key: &[u8]) -> Option<&[u8]> {
        let entries = &self.state.objects.get(object)?.entries;
        entries.get(key).map(|entry| entry.value.as_slice())
    }

    /// Writes a key.
    pub(crate) fn set(
        &mut self,
        object: &ObjectName,
        key: Vec<u8>,
        value: Vec<u8>,
    ) -> Result<(), Trap> {
        let State { objects, genesis, state_bytes, total, .. } = &mut self.state;
        let limits = &genesis.as_ref().expect("there is an object, so there was a genesis").limits;
        let store = objects.get_mut(object).map(Arc::make_mut);
        let store = store.expect("a store belongs to an object");
        let sum = Sum::of_entry(store.incarnation.0, &key, &value);
        let place = store.entries.get_mut(&key);
        let weigh = |value: &[u8]| (key.len() + value.len()) as u64;
        let before = place.as_ref().map_or(0, |entry| weigh(&entry.value));
        let growth =
            Growth { before, after: weigh(&value), object: store.bytes, state: *state_bytes };
        growth.check(limits, key.len(), value.len())?;
        store.bytes = store.bytes - growth.before + growth.after;
        *state_bytes = *state_bytes - growth.before + growth.after;
        let entry = Entry { value, sum };
        let old = match place {
            Some(place) => match Arc::get_mut(place) {
                Some(place) => Some(std::mem::replace(place, entry)),
                None => Some(Arc::unwrap_or_clone(std::mem::replace(place, Arc::new(entry)))),
            },
            None => {
                store.entries.insert(key.clone(), Arc::new(entry));
                None
            }
        };
        let minus = old.as_ref().map(|old| old.sum).unwrap_or_default();
        for whole in [&mut store.sum, total] {
            *whole -= minus;
            *whole += sum;
        }
        self.record(Undo::Entry { object: object.clone(), key, old });
        Ok(())
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, object: &ObjectName, key: &[u8]) -> Option<Vec<u8>> {
        let key = key.to_vec();
        let old = self.replace_entry(object, key.clone(), None)?;
        let value = old.value.clone();
        self.record(Undo::Entry { object: object.clone(), key, old: Some(old) });
        Some(value)
    }

    /// Lists entries of a collection, keys without its prefix.
    pub(crate) fn scan(
        &self,
        object: &ObjectName,
        collection: &[u8],
        after: Option<&[u8]>,
        reverse: bool,
        entries: u32,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let limits = self.state.limits();
        let store = &self.state.objects[object].entries;
        let prefix = entry_key(collection, &[]);
        let mut past_prefix = prefix.clone();
        *past_prefix.last_mut().expect("a prefix ends with its zero byte") = 1;
        let bound = after.map(|key| entry_key(collection, key));
        let range = match (&bound, reverse) {
            (None, _) => (Bound::Included(prefix.clone()), Bound::Excluded(past_prefix)),
            (Some(key), false) => (Bound::Excluded(key.clone()), Bound::Excluded(past_prefix)),
            (Some(key), true) => (Bound::Included(prefix.clone()), Bound::Excluded(key.clone())),
        };
        let most = u64::from(entries).min(limits.scan_entries);
        let mut bytes = 0;
        let mut found = Vec::new();
        let mut list = |(key, entry): (&Vec<u8>, &Arc<Entry>)| {
            if found.len() as u64 >= most || bytes >= limits.scan_bytes {
                return false;
            }
            bytes += (key.len() + entry.value.len()) as u64;
            found.push((key[prefix.len()..].to_vec(), entry.value.clone()));
            true
        };
        if reverse {
            store.range(range).rev().all(&mut list);
        } else {
            store.range(range).all(&mut list);
        }
        found
    }

    /// Length of a deque or map.
    pub(crate) fn length(&self, object: &ObjectName, collection: &[u8]) -> u64 {
        match self.get(object, collection) {
            Some(header) if header.len() == 16 => read_number(&header[8..]),
            Some(header) => read_number(header),
            None => 0,
        }
    }

    /// Adds an item at an end of a deque.
    pub(crate) fn push(
        &mut self,
        object: &ObjectName,
        deque: Vec<u8>,
        value: Vec<u8>,
        end: End,
    ) -> Result<(), Trap> {
        let mut header = self.deque_header(object, &deque);
        if end == End::Front {
            header.front = header.front.wrapping_sub(1);
        }
        let position = match end {
            End::Front => header.front,
            End::Back => header.front.wrapping_add(header.length),
        };
        header.length = header.length.saturating_add(1);
        self.set(object, entry_key(&deque, &position.to_be_bytes()), value)?;
        self.write_deque_header(object, deque, header)
    }

    /// Takes the item at an end of a deque.
    pub(crate) fn pop(
        &mut self,
        object: &ObjectName,
        deque: Vec<u8>,
        end: End,
    ) -> Result<Option<Vec<u8>>, Trap> {
        let mut header = self.deque_header(object, &deque);
        if header.length == 0 {
            return Ok(None);
        }
        header.length -= 1;
        let position = match end {
            End::Front => header.front,
            End::Back => header.front.wrapping_add(header.length),
        };
        if end == End::Front {
            header.front = header.front.wrapping_add(1);
        }
        let item = self.remove(object, &entry_key(&deque, &position.to_be_bytes()));
        self.write_deque_header(object, deque, header)?;
        Ok(item)
    }

    /// An item of a deque by its place from the front.
    pub(crate) fn deque_get(&self, object: &ObjectName, deque: &[u8], index: u64) -> Option<&[u8]> {
        let header = self.deque_header(object, deque);
        if index >= header.length {
            return None;
        }
        let position = header.front.wrapping_add(index);
        self.get(object, &entry_key(deque, &position.to_be_bytes()))
    }

    /// Writes an entry of a map and counts it.
    pub(crate) fn map_insert(
        &mut self,
        object: &ObjectName,
        map: Vec<u8>,
        key: &[u8],
        value: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, Trap> {
        let whole = entry_key(&map, key);
        let old = self.get(object, &whole).map(<[u8]>::to_vec);
        self.set(object, whole, value)?;
        if old.is_none() {
            let length = self.length(object, &map).saturating_add(1);
            self.set(object, map, length.to_le_bytes().to_vec())?;
        }
        Ok(old)
    }

    /// Removes an entry of a map and counts it.
    pub(crate) fn map_remove(
        &mut self,
        object: &ObjectName,
        map: Vec<u8>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Trap> {
        let old = self.remove(object, &entry_key(&map, key));
        if old.is_some() {
            match self.length(object, &map).saturating_sub(1) {
                0 => {
                    self.remove(object, &map);
                }
                length => {
                    self.set(object, map, length.to_le_bytes().to_vec())?;
                }
            }
        }
        Ok(old)
    }

    /// Exchanges an entry without a trace in the undo log, and keeps sizes and sums.
    pub(super) fn replace_entry(
        &mut self,
        object: &ObjectName,
        key: Vec<u8>,
        new: Option<Entry>,
    ) -> Option<Entry> {
        let key_bytes = key.len() as u64;
        let weigh = |entry: &Entry| (key_bytes + entry.value.len() as u64, entry.sum);
        let plus = new.as_ref().map(weigh).unwrap_or_default();
        let store = self.state.object_mut(object).expect("a store belongs to an object");
        let old = match new {
            Some(entry) => store.entries.insert(key, Arc::new(entry)),
            None => store.entries.remove(&key),
        };
        let minus = old.as_deref().map(weigh).unwrap_or_default();
        store.bytes = store.bytes + plus.0 - minus.0;
        store.sum -= minus.1;
        store.sum += plus.1;
        self.state.state_bytes = self.state.state_bytes + plus.0 - minus.0;
        self.state.total -= minus.1;
        self.state.total += plus.1;
        old.map(Arc::unwrap_or_clone)
    }

    fn deque_header(&self, object: &ObjectName, deque: &[u8]) -> DequeHeader {
        match self.get(object, deque) {
            Some(header) if header.len() == 16 => {
                DequeHeader { front: read_number(&header[..8]), length: read_number(&header[8..]) }
            }
            _ => DequeHeader { front: DEQUE_MIDDLE, length: 0 },
        }
    }

    fn write_deque_header(
        &mut self,
        object: &ObjectName,
        deque: Vec<u8>,
        header: DequeHeader,
    ) -> Result<(), Trap> {
        if header.length == 0 {
            self.remove(object, &deque);
            return Ok(());
        }
        let mut bytes = header.front.to_le_bytes().to_vec();
        bytes.extend_from_slice(&header.length.to_le_bytes());
        self.set(object, deque, bytes)
    }
}

/// Key of an entry of a collection.
pub(crate) fn entry_key(collection: &[u8], key: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(collection.len() + 1 + key.len());
    whole.extend_from_slice(collection);
    whole.push(0);
    whole.extend_from_slice(key);
    whole
}

/// A number that the machine wrote, or 0 where a guest wrote something else in its place.
fn read_number(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
