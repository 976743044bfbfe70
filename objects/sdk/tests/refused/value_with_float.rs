//! A value derives only from values.

use gesmas_sdk::prelude::*;

#[derive(Value)]
pub struct Sample {
    at: Time,
    degrees: f32,
    parts: [&'static str; 2],
}



fn main() {}
