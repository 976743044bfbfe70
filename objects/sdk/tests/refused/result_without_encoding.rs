//! What crosses the boundary has an encoding.

use gesmas_sdk::prelude::*;

pub struct Secret;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn get(&self) -> Result<Secret> {
        Ok(Secret)
    }
}

fn main() {}
