//! A handler is not called by clients, and is nothing else besides.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    #[handler]
    #[read]
    pub fn late(&self) -> Result<()> {
        Ok(())
    }
}

fn main() {}
