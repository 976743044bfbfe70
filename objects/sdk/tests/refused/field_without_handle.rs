//! A field is a handle.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: u64,
}

#[methods]
impl Store {
    pub fn touch(&mut self) -> Result<()> {
        Ok(())
    }
}

fn main() {}
