//! A migration finds what it needs in the object.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    #[migrate]
    fn migrate(&mut self, count: u64) {
        self.count.set(count);
    }
}

fn main() {}
