//! A handle that is only borrowed cannot be written.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    #[read]
    pub fn get(&self) -> Result<u64> {
        self.count.set(1);
        Ok(self.count.get())
    }
}

fn main() {}
