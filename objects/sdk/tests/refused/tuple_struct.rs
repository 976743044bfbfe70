//! Fields have names.

use gesmas_sdk::prelude::*;

#[class(durable)]
pub struct Store(Value<u64>);



fn main() {}
