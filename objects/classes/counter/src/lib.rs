//! `Counter`: a number that many change at once without losing a change.
//!
//! Transient: a counter at 0 takes no room, and one that nobody has touched reads 0.
//! Not here: floats, and a counter that wraps. A change that does not fit is refused and changes
//! nothing.
//!
//! ```text
//! $ gesmas call Counter/visits increment
//! 1
//! $ gesmas call Counter/visits add -- -1
//! 0
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_counter::CounterStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn visit(client: impl Invoke) {
//!     let visits = CounterStub::new(client, "visits");
//!     if let Ok(count) = visits.increment().await {
//!         println!("visitor number {count}");
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A number that many change at once.
#[class(transient)]
pub struct Counter {
    count: Value<i64>,
}

/// Why a counter stays as it is.
#[error]
pub enum CounterError {
    /// the counter would leave the range of 64 bits
    OutOfRange,
}

#[methods]
impl Counter {
    /// Adds 1 and returns the new count.
    pub fn increment(&mut self) -> Result<i64, CounterError> {
        self.change(1)
    }

    /// Subtracts 1 and returns the new count.
    pub fn decrement(&mut self) -> Result<i64, CounterError> {
        self.change(-1)
    }

    /// Adds any number, also a negative one, and returns the new count.
    pub fn add(&mut self, number: i64) -> Result<i64, CounterError> {
        self.change(number)
    }

    /// Sets the count to 0 and returns what it was.
    pub fn reset(&mut self) -> Result<i64> {
        Ok(self.count.take().unwrap_or(0))
    }

    /// Sets the count to `new` if it is `expected`, and tells whether it was.
    pub fn compare_and_set(&mut self, expected: i64, new: i64) -> Result<bool> {
        let equal = self.count.get() == expected;
        if equal {
            self.store(new);
        }
        Ok(equal)
    }

    /// The count.
    #[read]
    pub fn get(&self) -> Result<i64> {
        Ok(self.count.get())
    }

    fn change(&mut self, number: i64) -> Result<i64, CounterError> {
        let count = self.count.get().checked_add(number).ok_or(CounterError::OutOfRange)?;
        self.store(count);
        Ok(count)
    }

    /// Zero is kept as nothing, so that a counter at 0 can vanish.
    fn store(&mut self, count: i64) {
        if count == 0 {
            self.count.take();
        } else {
            self.count.set(count);
        }
    }
}
