//! Only what is ordered can be detached.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    #[read]
    #[detached]
    pub fn get(&self) -> Result<u64> {
        Ok(self.count.get())
    }
}

fn main() {}
