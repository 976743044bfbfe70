//! An object is created in one way.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    #[init]
    fn init(&mut self) {}

    #[init]
    fn init_with(&mut self, count: u64) {
        self.count.set(count);
    }
}

fn main() {}
