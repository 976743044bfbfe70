//! A read is called by clients.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    #[read]
    fn get(&self) -> Result<u64> {
        Ok(self.count.get())
    }
}

fn main() {}
