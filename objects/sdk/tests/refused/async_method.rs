//! A method blocks by semaphores, not by futures.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub async fn wait(&mut self) -> Result<()> {
        Ok(())
    }
}

fn main() {}
