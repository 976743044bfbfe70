//! What comes and goes by itself is created without arguments.

use gesmas_sdk::prelude::*;

#[class(transient)]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    #[init]
    fn init(&mut self, count: u64) {
        self.count.set(count);
    }
}

fn main() {}
