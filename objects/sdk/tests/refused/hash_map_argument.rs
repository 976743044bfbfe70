//! A HashMap has no order.

use gesmas_sdk::prelude::*;

use std::collections::HashMap;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn put(&mut self, _values: HashMap<String, u64>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
