//! A method cannot be generic.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn put<T: Default>(&mut self, _value: T) -> Result<()> {
        Ok(())
    }
}

fn main() {}
