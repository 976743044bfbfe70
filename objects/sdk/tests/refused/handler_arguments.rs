//! Arguments of a handler are typed.

use gesmas_sdk::prelude::*;

#[class]
pub struct Store {
    count: Value<u64>,
}

#[methods]
impl Store {
    pub fn start(&mut self) -> Result<()> {
        ctx::after(Duration::from_secs(1), Self::LATE, ("soon",));
        Ok(())
    }

    #[handler]
    fn late(&mut self, round: u64) {
        self.count.set(round);
    }
}

fn main() {}
