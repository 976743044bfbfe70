//! `Queue`: a bounded queue, as in the paper.
//!
//! Producers block while it is full, consumers while it is empty; each call wakes at most one
//! other, and each item reaches exactly one consumer.
//! Invariant: outside of a segment, the permits of `filled` that are counted or on their way to a
//! consumer are as many as the items, and those with the permits of `free` add up to the capacity.
//! Every method costs the same however many items there are.
//! Not here: redelivery. An item is the reply to the consumer's call, so a consumer that dies after
//! it was given an item takes it along: at most once.
//!
//! ```text
//! $ gesmas object create Queue/jobs 16
//! $ gesmas call Queue/jobs produce '{"text": "resize cat.png"}'
//! $ gesmas call Queue/jobs consume
//! {"text": "resize cat.png"}
//! ```
//!
//! From Rust, through the typed stub and any client:
//!
//! ```
//! use gesmas_queue::QueueStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn work(client: impl Invoke) {
//!     let jobs = QueueStub::new(client, "jobs");
//!     let _ = jobs.create(16).await;
//!     let _ = jobs.produce("resize cat.png".into()).await;
//!     while let Ok(job) = jobs.consume().await {
//!         println!("{job:?}");
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A bounded queue of byte strings.
#[class]
pub struct Queue {
    items: Deque<Bytes>,
    free: Semaphore,
    filled: Semaphore,
}

/// Why there is no queue.
#[error]
pub enum QueueError {
    /// a queue has room for one item at least
    ZeroCapacity,
}

#[methods]
impl Queue {
    /// Creates a queue that holds at most `capacity` items, and one at least.
    #[init]
    fn init(&mut self, capacity: u32) -> Result<(), QueueError> {
        if capacity == 0 {
            return Err(QueueError::ZeroCapacity);
        }
        self.free.set(capacity);
        Ok(())
    }

    /// Appends an item; blocks while the queue is full.
    pub fn produce(&mut self, item: Bytes) -> Result<()> {
        self.free.p()?;
        self.append(item);
        Ok(())
    }

    /// Appends an item if the queue is not full and nobody waits to, and tells whether it did; never
    /// blocks.
    pub fn try_produce(&mut self, item: Bytes) -> Result<bool> {
        let free = self.free.try_p();
        if free {
            self.append(item);
        }
        Ok(free)
    }

    /// Appends an item and tells whether it did; blocks at most that long while the queue is full.
    pub fn produce_for(&mut self, item: Bytes, duration: Duration) -> Result<bool> {
        let free = self.free.p_for(duration)?;
        if free {
            self.append(item);
        }
        Ok(free)
    }

    /// Removes the oldest item; blocks while the queue is empty.
    pub fn consume(&mut self) -> Result<Bytes> {
        self.filled.p()?;
        Ok(self.remove())
    }

    /// Removes the oldest item, if there is one and nobody waits for it; never blocks.
    pub fn try_consume(&mut self) -> Result<Option<Bytes>> {
        Ok(self.filled.try_p().then(|| self.remove()))
    }

    /// Removes the oldest item; blocks at most that long while the queue is empty, and returns nothing
    /// when the time was up.
    pub fn consume_for(&mut self, duration: Duration) -> Result<Option<Bytes>> {
        let filled = self.filled.p_for(duration)?;
        Ok(filled.then(|| self.remove()))
    }

    /// How many items are in the queue.
    #[read]
    pub fn length(&self) -> Result<u64> {
        Ok(self.items.len())
    }

    fn append(&mut self, item: Bytes) {
        self.items.push_back(item);
        self.filled.v();
    }

    fn remove(&mut self) -> Bytes {
        let item = self.items.pop_front().expect("a permit is an item");
        self.free.v();
        item
    }
}
