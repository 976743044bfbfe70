//! A method works on an object.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn sum(left: u64, right: u64) -> Result<u64> {
        Ok(left + right)
    }

    pub fn consume(self) -> Result<()> {
        Ok(())
    }
}

fn main() {}
