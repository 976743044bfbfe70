//! `Slot`: room for one item, which one call puts there and another takes.
//!
//! Who puts waits while the slot is full, who takes waits while it is empty; each call wakes at most one
//! other, in the order in which they came.
//! Invariant: between calls a permit of `full` is counted or on its way exactly when there is an item, and
//! one of `empty` exactly when there is none.

use gesmas_sdk::prelude::*;

/// Room for one item.
///
/// Fields are handles: the state itself lives in the cluster, and survives every crash.
#[class]
pub struct Slot {
    item: Value<Bytes>,
    empty: Semaphore,
    full: Semaphore,
}

#[methods]
impl Slot {
    /// A fresh slot is empty.
    #[init]
    fn init(&mut self) {
        self.empty.set(1_u32);
    }

    /// Puts an item; blocks while the slot is full.
    pub fn put(&mut self, item: Bytes) -> Result<()> {
        self.empty.p()?;
        self.item.set(item);
        self.full.v();
        Ok(())
    }

    /// Takes the item; blocks while the slot is empty.
    pub fn take(&mut self) -> Result<Bytes> {
        self.full.p()?;
        let item = self.item.take().expect("a permit is an item");
        self.empty.v();
        Ok(item)
    }

    /// The item, which stays.
    #[read]
    pub fn peek(&self) -> Result<Option<Bytes>> {
        Ok(self.item.read())
    }
}
