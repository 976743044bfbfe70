//! Sums of hashes: how replicas compare states that they change record by record.
//!
//! A state is a set of records. Its sum is the sum, modulo 2^128, of the XXH3 hashes of its records, so
//! that a change costs two hashes however large the state is, and the order of changes does not
//! matter. What it has to tell apart are states that came to differ by a fault; that somebody could
//! make up two records with one hash helps nobody to make a replica wrong.
//! Invariant: a record that leaves the state is subtracted with exactly the value it was added with.

use std::ops::{AddAssign, SubAssign};

use serde::{Deserialize, Serialize};

use crate::encoding;

/// Sum of the hashes of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sum(pub u128);

/// Kinds of records: two kinds never have equal hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Kind {
    Object,
    Entry,
    Semaphore,
    InitialCount,
    Waiter,
    Permit,
    Alarm,
    Invocation,
    Fault,
    Session,
    Reply,
    Event,
    State,
}

impl Sum {
    /// Sum of one record, given as what names it and what it holds.
    pub(crate) fn of(kind: Kind, record: &impl Serialize) -> Self {
        Self(encoding::hash(&(kind, record)))
    }

    /// Sum of one entry of an object's store, on the path of every call: no intermediate encoding.
    pub(crate) fn of_entry(incarnation: u64, key: &[u8], value: &[u8]) -> Self {
        let mut hashing = encoding::Hashing::default();
        hashing.update(&[Kind::Entry as u8]);
        hashing.update(&incarnation.to_le_bytes());
        hashing.update(&(key.len() as u64).to_le_bytes());
        hashing.update(key);
        hashing.update(value);
        Self(hashing.finish())
    }

    /// Digest of what had the digest `self` and has grown by `bytes`.
    pub(crate) fn chain(self, bytes: &[u8]) -> Self {
        let mut hashing = encoding::Hashing::default();
        hashing.update(&self.0.to_le_bytes());
        hashing.update(bytes);
        Self(hashing.finish())
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl SubAssign for Sum {
    fn sub_assign(&mut self, other: Self) {
        self.0 = self.0.wrapping_sub(other.0);
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
