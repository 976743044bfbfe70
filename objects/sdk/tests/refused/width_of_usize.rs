//! The width of usize differs between client and class.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn put(&mut self, _count: usize) -> Result<()> {
        Ok(())
    }
}

fn main() {}
