//! `DelayQueue`: items that can be taken once their delay is over.
//!
//! As `java.util.concurrent.DelayQueue`: takers get the item that has been due for longest, those with
//! one due time in the order in which they were put, and wait while none is due. Time is the ordered time of
//! the cluster, so an item is due at the same point of the history on every replica, and no clock of a
//! host that jumps makes it due early.
//! Transient: a queue without items and takers takes no room. Every method costs the same however many
//! items there are, but for the logarithm of an ordered map; one timer wakes for the items that are due
//! next.
//! Invariants: permits of `filled` that are counted or on their way to a taker are as many as the items in
//! `due`; while items are in `waiting`, the timer in `next` is that of the first.
//! Not here: redelivery, as for `Queue`; and a bound.
//!
//! ```text
//! $ gesmas call DelayQueue/reminders put '{"text": "stretch"}' 10m
//! "2026-11-27T10:10:00Z"
//! $ gesmas call DelayQueue/reminders take         # returns at ten past
//! {"text": "stretch"}
//! ```
//!
//! From Rust:
//!
//! ```
//! use std::time::Duration;
//!
//! use gesmas_delay_queue::DelayQueueStub;
//! use gesmas_sdk::stub::Invoke;
//!
//! async fn remind(client: impl Invoke) {
//!     let reminders = DelayQueueStub::new(client, "reminders");
//!     let _ = reminders.put("stretch".into(), Duration::from_secs(600)).await;
//!     while let Ok(reminder) = reminders.take().await {
//!         println!("{reminder:?}");
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// Items that become due in one run of the handler at most; the rest follows at once, in a step of its
/// own, so that any number may be due at one time.
const PAGE: usize = 500;

/// A queue of items with delays.
#[class(transient)]
pub struct DelayQueue {
    waiting: Map<(Time, u64), Bytes>,
    next: Value<Next>,
    due: Deque<Bytes>,
    filled: Semaphore,
}

/// The timer for the first of the items that are not due.
#[derive(Value)]
struct Next {
    due: Time,
    alarm: Alarm,
}

#[methods]
impl DelayQueue {
    /// A fresh queue is empty.
    #[init]
    fn init(&mut self) {}

    /// Puts an item that is due after a delay, and returns when that is.
    pub fn put(&mut self, item: Bytes, delay: Duration) -> Result<Time> {
        let due = ctx::now() + delay;
        if delay.is_zero() {
            self.is_due(item);
        } else {
            self.waiting.insert(&(due, ctx::fencing_token()), item);
            self.wake_for(due);
        }
        Ok(due)
    }

    /// Removes the item that has been due for longest; blocks while none is due.
    pub fn take(&mut self) -> Result<Bytes> {
        self.filled.p()?;
        Ok(self.first())
    }

    /// Removes the item that has been due for longest, if one is due; never blocks.
    pub fn try_take(&mut self) -> Result<Option<Bytes>> {
        Ok(self.filled.try_p().then(|| self.first()))
    }

    /// Removes the item that has been due for longest; blocks at most for `patience`, and returns
    /// nothing when that was up.
    pub fn take_for(&mut self, patience: Duration) -> Result<Option<Bytes>> {
        let filled = self.filled.p_for(patience)?;
        Ok(filled.then(|| self.first()))
    }

    /// How many items there are, due or not.
    #[read]
    pub fn length(&self) -> Result<u64> {
        Ok(self.due.len() + self.waiting.len())
    }

    /// How many items are due.
    #[read]
    pub fn due(&self) -> Result<u64> {
        Ok(self.due.len())
    }

    /// When the next item will be due of those that are not.
    #[read]
    pub fn next_due(&self) -> Result<Option<Time>> {
        Ok(self.next.read().map(|next| next.due))
    }

    #[handler]
    fn some_are_due(&mut self) {
        self.next.take();
        let now = ctx::now();
        let page: Vec<_> =
            self.waiting.iter().take(PAGE).take_while(|((due, _), _)| *due <= now).collect();
        for (place, item) in page {
            self.waiting.remove(&place);
            self.is_due(item);
        }
        if let Some(((due, _), _)) = self.waiting.first() {
            self.wake_for(due);
        }
    }

    fn is_due(&mut self, item: Bytes) {
        self.due.push_back(item);
        self.filled.v();
    }

    fn first(&mut self) -> Bytes {
        self.due.pop_front().expect("a permit is an item")
    }

    /// The timer goes off at this time, or before if an item is due before.
    fn wake_for(&mut self, due: Time) {
        if let Some(next) = self.next.read() {
            if next.due <= due {
                return;
            }
            ctx::cancel(next.alarm);
        }
        let alarm = ctx::after(due.since(ctx::now()), Self::SOME_ARE_DUE, ());
        self.next.set(Next { due, alarm });
    }
}
