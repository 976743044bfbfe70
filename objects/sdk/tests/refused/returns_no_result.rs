//! A method returns a Result.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn get(&self) -> u64 {
        self.count.get()
    }

    pub fn touch(&mut self) {}
}

fn main() {}
