//! An error of a class is marked.

use gesmas_sdk::prelude::*;

pub enum Refusal {
    Full,
}

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn put(&mut self) -> Result<(), Refusal> {
        Err(Refusal::Full)
    }
}

fn main() {}
