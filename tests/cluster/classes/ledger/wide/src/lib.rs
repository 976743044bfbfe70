//! `Ledger`, the third code: a sum of 64 bits, and a `migrate` that does not like 13.

use gesmas_sdk::prelude::*;

/// A sum.
#[class]
pub struct Ledger {
    total: Value<u64>,
}

#[methods]
impl Ledger {
    /// Brings a sum of 32 bits along.
    #[migrate]
    fn migrate(&mut self) {
        let mut sum: Value<u32> = ctx::former("sum");
        let sum = sum.take().unwrap_or(0);
        assert!(sum != 13, "a sum of {sum} cannot be migrated");
        self.total.set(sum.into());
    }

    /// Adds a number.
    pub fn add(&mut self, number: u32) -> Result<String> {
        self.total.set(self.total.get() + u64::from(number));
        Ok(format!("wide: {}", self.total.get()))
    }

    /// The sum.
    #[read]
    pub fn sum(&self) -> Result<String> {
        Ok(format!("wide: {}", self.total.get()))
    }
}
