//! `Ledger`, the first code: a sum of 32 bits, and calls that wait to add to it.
//!
//! Tests replace it by `next`, `wide` and `mended`. It knows none of them.

use gesmas_sdk::prelude::*;

/// A sum.
#[class]
pub struct Ledger {
    sum: Value<u32>,
    open: Semaphore,
}

#[methods]
impl Ledger {
    /// Adds a number.
    pub fn add(&mut self, number: u32) -> Result<String> {
        self.sum.set(self.sum.get() + number);
        Ok(format!("first: {}", self.sum.get()))
    }

    /// Waits until it is let through, then adds a number.
    pub fn wait_and_add(&mut self, number: u32) -> Result<String> {
        self.open.p()?;
        self.add(number)
    }

    /// Lets calls through.
    pub fn let_through(&mut self, calls: u64) -> Result<()> {
        self.open.v_n(calls);
        Ok(())
    }

    /// The sum.
    #[read]
    pub fn sum(&self) -> Result<String> {
        Ok(format!("first: {}", self.sum.get()))
    }
}
