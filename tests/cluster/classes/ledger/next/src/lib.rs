//! `Ledger`, the second code: the same layout, other answers.

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
        Ok(format!("next: {}", self.sum.get()))
    }

    /// Lets calls through.
    pub fn let_through(&mut self, calls: u64) -> Result<()> {
        self.open.v_n(calls);
        Ok(())
    }

    /// The sum.
    #[read]
    pub fn sum(&self) -> Result<String> {
        Ok(format!("next: {}", self.sum.get()))
    }
}
