//! Keys with values, in the order of the keys.

use std::{collections::VecDeque, marker::PhantomData};

use gesmas_abi::{
    call::Request,
    interface::{FieldKind, Type},
    key::{Key, from_key, to_key},
    value::{Value, from_bytes, to_bytes},
};

use super::Handle;
use crate::host;

/// How many entries an iterator asks for at once.
const PAGE: u32 = 100;

/// A map in the order of its keys.
#[derive(Debug)]
pub struct Map<K, V> {
    name: &'static str,
    entry: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> Map<K, V> {
    /// Sets the value of a key and returns the former one.
    pub fn insert(&mut self, key: &K, value: V) -> Option<V> {
        host::optional(&Request::MapInsert {
            map: self.name.as_bytes(),
            key: &to_key(key),
            value: &to_bytes(&value),
        })
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        host::optional(&Request::MapGet { map: self.name.as_bytes(), key: &to_key(key) })
    }

    /// Whether a key is there.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        host::optional(&Request::MapRemove { map: self.name.as_bytes(), key: &to_key(key) })
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        host::number(&Request::Length { collection: self.name.as_bytes() })
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries from the least key up, a page at a time.
    #[must_use]
    pub fn iter(&self) -> Entries<K, V> {
        Entries::new(self.name, None, false, PAGE)
    }

    /// All entries from the greatest key down, a page at a time.
    #[must_use]
    pub fn iter_reverse(&self) -> Entries<K, V> {
        Entries::new(self.name, None, true, PAGE)
    }

    /// The entries after a key, from the least up.
    #[must_use]
    pub fn iter_after(&self, key: &K) -> Entries<K, V> {
        Entries::new(self.name, Some(to_key(key)), false, PAGE)
    }

    /// The entry of the least key.
    #[must_use]
    pub fn first(&self) -> Option<(K, V)> {
        Entries::new(self.name, None, false, 1).next()
    }

    /// The entry of the greatest key.
    #[must_use]
    pub fn last(&self) -> Option<(K, V)> {
        Entries::new(self.name, None, true, 1).next()
    }
}

impl<K: Key, V: Value> Handle for Map<K, V> {
    const KIND: FieldKind = FieldKind::Map;
    const KEY: Option<Type> = Some(K::TYPE);
    const VALUE: Option<Type> = Some(V::TYPE);

    fn open(name: &'static str) -> Self {
        Self { name, entry: PhantomData }
    }
}

/// Entries of a map. Each page is as the map is when it is asked for, so an iteration that is
/// interrupted by blocking may see what others changed meanwhile.
pub struct Entries<K, V> {
    name: &'static str,
    after: Option<Vec<u8>>,
    reverse: bool,
    page: u32,
    fetched: VecDeque<(Vec<u8>, Vec<u8>)>,
    done: bool,
    entry: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Entries<K, V> {
    pub(super) fn new(
        name: &'static str,
        after: Option<Vec<u8>>,
        reverse: bool,
        page: u32,
    ) -> Self {
        let fetched = VecDeque::new();
        Self { name, after, reverse, page, fetched, done: false, entry: PhantomData }
    }

    /// An empty page is the end; a short one need not be, since the kernel also bounds its bytes.
    fn fetch(&mut self) {
        let request = Request::Scan {
            collection: self.name.as_bytes(),
            after: self.after.as_deref(),
            reverse: self.reverse,
            entries: self.page,
        };
        self.fetched = host::ask(&request, VecDeque::new(), |reader| {
            let count = reader.count(8)?;
            let mut entries = VecDeque::with_capacity(count);
            for _ in 0..count {
                entries.push_back((reader.led()?.to_vec(), reader.led()?.to_vec()));
            }
            Ok(entries)
        });
        self.after = self.fetched.back().map(|(key, _)| key.clone());
        self.done = self.fetched.is_empty();
    }
}

impl<K: Key, V: Value> Iterator for Entries<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        if self.fetched.is_empty() && !self.done {
            self.fetch();
        }
        let (key, value) = self.fetched.pop_front()?;
        match (from_key(&key), from_bytes(&value)) {
            (Ok(key), Ok(value)) => Some((key, value)),
            _ => panic!("an entry of a map is of another layout"),
        }
    }
}
