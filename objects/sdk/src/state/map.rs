//! Keys with values, in the order of the keys.

use std::marker::PhantomData;

use gesmas_abi::{
    Reader,
    call::Request,
    interface::{FieldKind, Type},
    key::{Key, from_key, to_key},
    value::{Value, from_bytes},
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
        let (map, key) = (self.name.as_bytes(), to_key(key));
        host::optional_with(&Request::MapInsert { map, key: &key, value: &[] }, value)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        host::optional(&Request::MapGet { map: self.name.as_bytes(), key: &to_key(key) })
    }

    /// Whether a key is there.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        let request = Request::MapGet { map: self.name.as_bytes(), key: &to_key(key) };
        host::ask(&request, false, |reader| reader.flag())
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
    fetched: Page,
    done: bool,
    entry: PhantomData<fn() -> (K, V)>,
}

/// A page of entries as the host wrote it: each is taken apart when it is asked for, so that a large one
/// is in memory twice at most.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    /// How many bytes are taken.
    taken: usize,
    /// How many entries are not.
    left: usize,
}

impl Page {
    fn next(&mut self) -> Option<(&[u8], &[u8])> {
        self.left = self.left.checked_sub(1)?;
        let mut reader = Reader::new(&self.bytes[self.taken..]);
        let (Ok(key), Ok(value)) = (reader.led(), reader.led()) else {
            panic!("the host's response does not decode");
        };
        self.taken = self.bytes.len() - reader.remaining();
        Some((key, value))
    }
}

impl<K, V> Entries<K, V> {
    pub(super) fn new(
        name: &'static str,
        after: Option<Vec<u8>>,
        reverse: bool,
        page: u32,
    ) -> Self {
        let fetched = Page::default();
        Self { name, after, reverse, page, fetched, done: false, entry: PhantomData }
    }

    /// An empty page is the end; a short one need not be, since the kernel also bounds its bytes.
    fn fetch(&mut self) {
        // The former page makes room first.
        self.fetched = Page::default();
        let request = Request::Scan {
            collection: self.name.as_bytes(),
            after: self.after.as_deref(),
            reverse: self.reverse,
            entries: self.page,
        };
        self.fetched = host::ask(&request, Page::default(), |reader| {
            let left = reader.count(8)?;
            Ok(Page { bytes: reader.rest().to_vec(), taken: 0, left })
        });
        self.done = self.fetched.left == 0;
    }
}

impl<K: Key, V: Value> Iterator for Entries<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        if self.fetched.left == 0 && !self.done {
            self.fetch();
        }
        let last = self.fetched.left == 1;
        let (key, value) = self.fetched.next()?;
        if last {
            self.after = Some(key.to_vec());
        }
        match (from_key(key), from_bytes(value)) {
            (Ok(key), Ok(value)) => Some((key, value)),
            _ => panic!("an entry of a map is of another layout"),
        }
    }
}
