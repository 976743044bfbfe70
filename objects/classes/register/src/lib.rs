//! `Register`: named values, each written and read as a whole, with compare-and-set.
//!
//! A value has a *version*, drawn when it is written and greater than any before it, also across
//! removals; so whoever has read a version and writes only if it is still that one loses no change of
//! others.
//! Transient: a register without values takes no room, and keys that nobody has written read as nothing.
//! All methods cost the same however many keys there are; only `keys` goes through them, a page at a
//! time.
//! A key has 1 to 1,024 bytes, whichever they are.
//!
//! ```text
//! $ gesmas call Register/config set '{"text": "colour"}' '{"text": "blue"}'
//! 17
//! $ gesmas call Register/config get '{"text": "colour"}'
//! {"value": {"text": "blue"}, "version": 17}
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_register::{Expected, RegisterStub};
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn paint(client: impl Invoke) {
//!     let config = RegisterStub::new(client, "config");
//!     if let Ok(Some(colour)) = config.get("colour".into()).await {
//!         let unchanged = Expected::Version(colour.version);
//!         let _ = config.compare_and_set("colour".into(), unchanged, "red".into()).await;
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// Bytes of a key at most.
const KEY_MAX: usize = 1_024;
/// Bytes of keys and values that one page goes through at most: they are read from the first to the last.
const LOOKED_MAX: usize = 4 << 20;

/// A map of atomic registers.
#[class(transient)]
pub struct Register {
    entries: Map<Bytes, Entry>,
}

/// A value and its version.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Entry {
    /// The value.
    pub value: Bytes,
    /// Its version: greater than that of every value written before it.
    pub version: u64,
}

/// What a writer takes for granted.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub enum Expected {
    /// The key has no value.
    Nothing,
    /// The key's value has this version.
    Version(u64),
}

/// A page of keys.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Keys {
    /// The keys.
    pub keys: Vec<Bytes>,
    /// What to give as `after` for the page after this one; nothing if this is the last.
    pub next: Option<Bytes>,
}

/// Why a call is refused. It has changed nothing.
#[error]
pub enum RegisterError {
    /// a key has one byte at least
    EmptyKey,
    /// the key is too long
    KeyTooLong {
        /// how many bytes a key has at most
        most: u32,
    },
    /// a page has one key at least
    ZeroLimit,
}

#[methods]
impl Register {
    /// A fresh register has no values.
    #[init]
    fn init(&mut self) {}

    /// Writes a value and returns its version.
    pub fn set(&mut self, key: Bytes, value: Bytes) -> Result<u64, RegisterError> {
        check(&key)?;
        Ok(self.write(&key, value))
    }

    /// Writes a value if the key is as expected, and returns its version; changes and returns nothing
    /// otherwise.
    pub fn compare_and_set(
        &mut self,
        key: Bytes,
        expected: Expected,
        value: Bytes,
    ) -> Result<Option<u64>, RegisterError> {
        check(&key)?;
        let is_expected = self.is(&key, &expected);
        Ok(is_expected.then(|| self.write(&key, value)))
    }

    /// Removes a value and returns it.
    pub fn remove(&mut self, key: Bytes) -> Result<Option<Entry>, RegisterError> {
        check(&key)?;
        Ok(self.entries.remove(&key))
    }

    /// Removes a value if the key is as expected, and tells whether it was.
    pub fn compare_and_remove(
        &mut self,
        key: Bytes,
        expected: Expected,
    ) -> Result<bool, RegisterError> {
        check(&key)?;
        let is_expected = self.is(&key, &expected);
        if is_expected {
            self.entries.remove(&key);
        }
        Ok(is_expected)
    }

    /// The value of a key, with its version.
    #[read]
    pub fn get(&self, key: Bytes) -> Result<Option<Entry>, RegisterError> {
        check(&key)?;
        Ok(self.entries.get(&key))
    }

    /// A page of the keys that have values, in their order: those after this one, or from the first if it
    /// is empty; at most `limit`, and as many as fit into a page.
    #[read]
    pub fn keys(&self, after: Bytes, limit: u32) -> Result<Keys, RegisterError> {
        if limit == 0 {
            return Err(RegisterError::ZeroLimit);
        }
        let (mut page, mut looked) = (Portion::of(limit), Portion::of_bytes(LOOKED_MAX));
        let mut keys = Vec::new();
        for (key, entry) in self.entries.iter_after(&after) {
            if !page.takes(key.len()) || !looked.takes(entry.value.len()) {
                let next = keys.last().cloned();
                return Ok(Keys { keys, next });
            }
            keys.push(key);
        }
        Ok(Keys { keys, next: None })
    }

    /// How many keys have values.
    #[read]
    pub fn length(&self) -> Result<u64> {
        Ok(self.entries.len())
    }

    fn is(&self, key: &Bytes, expected: &Expected) -> bool {
        let version = self.entries.get(key).map(|entry| entry.version);
        match expected {
            Expected::Nothing => version.is_none(),
            Expected::Version(expected) => version == Some(*expected),
        }
    }

    fn write(&mut self, key: &Bytes, value: Bytes) -> u64 {
        let version = ctx::fencing_token();
        self.entries.insert(key, Entry { value, version });
        version
    }
}

/// Whether a key is one: not empty, so that `keys` can begin before the first, and not too long.
fn check(key: &Bytes) -> Result<(), RegisterError> {
    if key.is_empty() {
        return Err(RegisterError::EmptyKey);
    }
    if key.len() > KEY_MAX {
        return Err(RegisterError::KeyTooLong { most: KEY_MAX as u32 });
    }
    Ok(())
}
