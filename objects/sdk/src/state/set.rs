//! Keys, in their order.

use gesmas_abi::{
    interface::{FieldKind, Type},
    key::Key,
};

use super::{Entries, Handle, Map};

/// A set in the order of its keys.
#[derive(Debug)]
pub struct Set<K>(Map<K, ()>);

impl<K: Key> Set<K> {
    /// Adds a key; false when it was there.
    pub fn insert(&mut self, key: &K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Whether a key is there.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Removes a key; false when it was not there.
    pub fn remove(&mut self, key: &K) -> bool {
        self.0.remove(key).is_some()
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All keys from the least up, a page at a time.
    #[must_use]
    pub fn iter(&self) -> Keys<K> {
        Keys(self.0.iter())
    }

    /// The keys after this one, from the least up.
    #[must_use]
    pub fn iter_after(&self, key: &K) -> Keys<K> {
        Keys(self.0.iter_after(key))
    }

    /// The least key.
    #[must_use]
    pub fn first(&self) -> Option<K> {
        self.0.first().map(|(key, ())| key)
    }

    /// The greatest key.
    #[must_use]
    pub fn last(&self) -> Option<K> {
        self.0.last().map(|(key, ())| key)
    }
}

impl<K: Key> Handle for Set<K> {
    const KIND: FieldKind = FieldKind::Set;
    const KEY: Option<Type> = Some(K::TYPE);
    const VALUE: Option<Type> = None;

    fn open(name: &'static str) -> Self {
        Self(Map::open(name))
    }
}

/// Keys of a set, as [`Entries`] of a map.
pub struct Keys<K>(Entries<K, ()>);

impl<K: Key> Iterator for Keys<K> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        self.0.next().map(|(key, ())| key)
    }
}
