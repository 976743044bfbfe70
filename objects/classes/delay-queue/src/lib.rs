//! `DelayQueue`: items that can be taken once their delay is over.
//!
//! As `java.util.concurrent.DelayQueue`: takers get the item that has been due for longest, those with
//! one due time in the order in which they were put, and wait while none is due. Time is the ordered time of
//! the cluster, so an item is due at the same point of the history on every replica, and no clock of a
//! host that jumps makes it due early.
//! Transient: a queue without items and takers takes no room. Every method costs the same however many
//! items there are, but for the logarithm of an ordered map; one timer wakes for the items that are due
//! next.
//! Items stay where they are when they become due, and are counted, a portion at a time: neither their
//! number nor their size can make that fail. Should it fail for want of something else, a timer calls it again,
//! and so does whoever puts the next item.
//! Invariants: the items up to `counted` in `order` are as many as the permits of `filled` that are counted
//! or on their way to a taker; while there are others, the timer in `next` goes off for the first of them,
//! or has gone off and goes off again.
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

/// Items that become due in one step at most; the rest follows in steps of its own, so that any number
/// may be due at one time.
const PORTION: u32 = 500;
/// After how long the timer goes off again whose handler failed.
const AGAIN: Duration = Duration::from_secs(30);

/// A queue of items with delays.
#[class(transient)]
pub struct DelayQueue {
    /// Items by their numbers.
    items: Map<u64, Bytes>,
    /// When each is due, and its number; how many bytes it has.
    order: Map<Place, u32>,
    /// The last place whose item is known to be due. There is one while there are items.
    counted: Value<Place>,
    next: Value<Next>,
    filled: Semaphore,
}

/// When an item is due, and its number.
type Place = (Time, u64);

/// The timer for the first of the items that are not known to be due.
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
        let (now, number) = (ctx::now(), ctx::fencing_token());
        let due = now + delay;
        if self.items.is_empty() {
            self.counted.set((Time::default(), 0));
        }
        self.order.insert(&(due, number), item.len() as u32);
        self.items.insert(&number, item);
        match self.next.read() {
            // The timer went off, and its handler failed.
            Some(next) if next.due <= now => self.count(),
            _ if delay.is_zero() => self.count(),
            Some(next) if next.due <= due => {}
            _ => self.wake_for(Some(due)),
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
        Ok(self.items.len())
    }

    /// How many items are due.
    #[read]
    pub fn due(&self) -> Result<u64> {
        Ok(self.filled.value())
    }

    /// When the next item will be due of those that are not.
    #[read]
    pub fn next_due(&self) -> Result<Option<Time>> {
        Ok(self.next.read().map(|next| next.due))
    }

    #[handler]
    fn some_are_due(&mut self) {
        // A fault that is retried may come when there is nothing to do any more.
        if let Some(Next { due, .. }) = self.next.read() {
            let alarm = ctx::after(AGAIN, Self::SOME_ARE_DUE, ());
            self.next.set(Next { due, alarm });
            ctx::continue_with(Self::COUNT_DUE, ());
        }
    }

    #[handler]
    fn count_due(&mut self) {
        self.count();
    }

    /// Counts a portion of the items that have become due, and sets the timer for what follows.
    fn count(&mut self) {
        let Some(mut counted) = self.counted.read() else { return };
        let (now, mut portion) = (ctx::now(), Portion::of(PORTION));
        let mut count = 0_u64;
        let mut rest = None;
        for (place, bytes) in self.order.iter_after(&counted) {
            if place.0 > now || !portion.takes(bytes as usize) {
                rest = Some(place.0);
                break;
            }
            counted = place;
            count += 1;
        }
        if count > 0 {
            self.counted.set(counted);
            self.filled.v_n(count);
        }
        self.wake_for(rest);
    }

    fn first(&mut self) -> Bytes {
        let (place, _) = self.order.first().expect("a permit is an item");
        self.order.remove(&place);
        let item = self.items.remove(&place.1).expect("each item has one place");
        if self.items.is_empty() {
            self.counted.take();
        }
        item
    }

    /// The timer goes off at this time, if at any.
    fn wake_for(&mut self, due: Option<Time>) {
        if let Some(next) = self.next.read() {
            if due == Some(next.due) && next.due > ctx::now() {
                return;
            }
            ctx::cancel(next.alarm);
        }
        match due {
            None => {
                self.next.take();
            }
            Some(due) => {
                let alarm = ctx::after(due.since(ctx::now()), Self::SOME_ARE_DUE, ());
                self.next.set(Next { due, alarm });
            }
        }
    }
}
