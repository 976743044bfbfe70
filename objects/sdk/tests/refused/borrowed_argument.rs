//! Only str and byte slices are borrowed, and only at the top.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn put(&mut self, _items: &Vec<Bytes>, _names: Vec<&str>, _last: &mut u64) -> Result<()> {
        Ok(())
    }
}

fn main() {}
