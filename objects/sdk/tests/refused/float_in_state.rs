//! Floats are no state.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    average: Value<f64>,
    history: Deque<(u64, f32)>,
}

#[methods]
impl Store {
    pub fn touch(&mut self) -> Result<()> {
        Ok(())
    }
}

fn main() {}
