//! `PriorityQueue`: takers get the item of the least number first.
//!
//! As in `java.util.concurrent.PriorityBlockingQueue` the least goes first; items of one priority go in the
//! order in which they were put, which that queue leaves open. Takers wait while there is none.
//! Transient: a queue without items and takers takes no room. Every method costs the same however many
//! items there are, but for the logarithm of an ordered map.
//! Invariant: permits of `filled` that are counted or on their way to a taker are as many as the items.
//! Not here: redelivery, as for `Queue`; and a bound.
//!
//! ```text
//! $ gesmas call PriorityQueue/tickets put '{"text": "printer is out of paper"}' 5
//! $ gesmas call PriorityQueue/tickets put '{"text": "data centre is on fire"}' 1
//! $ gesmas call PriorityQueue/tickets take
//! {"item": {"text": "data centre is on fire"}, "priority": 1}
//! ```
//!
//! From Rust:
//!
//! ```
//! use gesmas_priority_queue::PriorityQueueStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn serve(client: impl Invoke) {
//!     let tickets = PriorityQueueStub::new(client, "tickets");
//!     let _ = tickets.put("printer is out of paper".into(), 5).await;
//!     while let Ok(ticket) = tickets.take().await {
//!         println!("{:?} of priority {}", ticket.item, ticket.priority);
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// A queue in the order of priorities.
#[class(transient)]
pub struct PriorityQueue {
    items: Map<(i64, u64), Bytes>,
    filled: Semaphore,
}

/// An item and its priority.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Prioritized {
    /// The item.
    pub item: Bytes,
    /// Its priority: the less, the sooner.
    pub priority: i64,
}

#[methods]
impl PriorityQueue {
    /// A fresh queue is empty.
    #[init]
    fn init(&mut self) {}

    /// Puts an item; those of lesser priority numbers go before it, and those of the same that were put
    /// earlier.
    pub fn put(&mut self, item: Bytes, priority: i64) -> Result<()> {
        self.items.insert(&(priority, ctx::fencing_token()), item);
        self.filled.v();
        Ok(())
    }

    /// Removes the first item; blocks while there is none.
    pub fn take(&mut self) -> Result<Prioritized> {
        self.filled.p()?;
        Ok(self.first())
    }

    /// Removes the first item, if there is one; never blocks.
    pub fn try_take(&mut self) -> Result<Option<Prioritized>> {
        Ok(self.filled.try_p().then(|| self.first()))
    }

    /// Removes the first item; blocks at most for `patience`, and returns nothing when that was up.
    pub fn take_for(&mut self, patience: Duration) -> Result<Option<Prioritized>> {
        let filled = self.filled.p_for(patience)?;
        Ok(filled.then(|| self.first()))
    }

    /// The first item, which stays.
    #[read]
    pub fn peek(&self) -> Result<Option<Prioritized>> {
        let first = self.items.first();
        Ok(first.map(|((priority, _), item)| Prioritized { item, priority }))
    }

    /// How many items there are.
    #[read]
    pub fn length(&self) -> Result<u64> {
        Ok(self.items.len())
    }

    fn first(&mut self) -> Prioritized {
        let (place, _) = self.items.first().expect("a permit is an item");
        let item = self.items.remove(&place).expect("it was just found");
        Prioritized { item, priority: place.0 }
    }
}
