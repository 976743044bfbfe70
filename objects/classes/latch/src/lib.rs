//! `Latch`: calls wait until a number of things have happened.
//!
//! As `java.util.concurrent.CountDownLatch`: it counts down to 0 and stays there; a call that comes later
//! does not wait, and one that is created with 0 is open. To use a name again, remove the object and
//! create it anew.
//! Each call of `count_down` counts once, whatever is sent again.
//! Every method costs the same, but for the `count_down` that reaches 0: it wakes a thousand of the calls
//! that wait, and a thousand more go on at each of the next stamps.
//! Invariant: calls wait at the gate only while something remains, or until it is their turn to go on.
//!
//! ```text
//! $ gesmas object create Latch/ready 3
//! $ gesmas call Latch/ready count_down        # three times, from wherever
//! 2
//! $ gesmas call Latch/ready wait              # returns after the third
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_latch::LatchStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn start(client: impl Invoke) {
//!     let ready = LatchStub::new(client, "ready");
//!     let _ = ready.create(3).await;
//!     let _ = ready.count_down().await;
//!     if ready.wait().await.is_ok() {
//!         println!("all three are ready");
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A count that opens a gate for good when it reaches 0.
#[class]
pub struct Latch {
    remaining: Value<u32>,
    gate: Semaphore,
}

/// Calls that go on in one step.
const PORTION: u64 = 1_000;

#[methods]
impl Latch {
    /// Creates a latch that opens when `count` things have happened: at once for 0.
    #[init]
    fn init(&mut self, count: u32) {
        self.remaining.set(count);
    }

    /// One of the things has happened; returns how many remain. Changes nothing once none does.
    pub fn count_down(&mut self) -> Result<u32> {
        let remaining = match self.remaining.get() {
            0 => return Ok(0),
            remaining => remaining - 1,
        };
        self.remaining.set(remaining);
        if remaining == 0 {
            self.go_on();
        }
        Ok(remaining)
    }

    /// Blocks until nothing remains.
    pub fn wait(&mut self) -> Result<()> {
        if self.remaining.get() == 0 { Ok(()) } else { self.gate.p() }
    }

    /// Blocks until nothing remains, but at most that long; tells whether nothing remains.
    pub fn wait_for(&mut self, duration: Duration) -> Result<bool> {
        // When the time is up, it may have opened, and this call not been woken yet.
        Ok(self.remaining.get() == 0 || self.gate.p_for(duration)? || self.remaining.get() == 0)
    }

    /// How many things remain.
    #[read]
    pub fn count(&self) -> Result<u32> {
        Ok(self.remaining.get())
    }

    /// How many calls wait.
    #[read]
    pub fn waiting(&self) -> Result<u64> {
        Ok(self.gate.waiters())
    }

    /// The next portion of calls goes on. No others come: it is open.
    #[handler]
    fn go_on(&mut self) {
        let waiting = self.gate.waiters();
        self.gate.v_n(waiting.min(PORTION));
        if waiting > PORTION {
            ctx::after(Duration::ZERO, Self::GO_ON, ());
        }
    }
}
