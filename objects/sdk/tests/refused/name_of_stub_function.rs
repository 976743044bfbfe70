//! Names of the stub are taken.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn new(&mut self) -> Result<()> {
        Ok(())
    }
}

fn main() {}
