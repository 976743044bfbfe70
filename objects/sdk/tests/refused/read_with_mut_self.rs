//! A read changes nothing.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    #[read]
    pub fn get(&mut self) -> Result<u64> {
        Ok(self.count.get())
    }
}

fn main() {}
