//! Producers and consumers of one bounded queue.
//!
//! Producers bring two items at a time without waiting for the first. Some workers give calls up
//! after a while. In the end each consumer takes an item that tells it to stop.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use gesmas_client::CallFailure;
use gesmas_queue::QueueStub;
use gesmas_sdk::{Cancelled, abi::value::Bytes, stub::StubError};

use super::Worker;
use crate::{
    checkers::queue::Item,
    history::{Book, Outcome},
};

/// The object.
pub(crate) const NAME: &str = "kill";
/// How many items it holds.
pub(crate) const CAPACITY: u32 = 8;
/// Producers, and as many consumers.
pub(crate) const WORKERS: u64 = 4;
/// The producer of the items that tell consumers to stop.
pub(crate) const LAST: u64 = u64::MAX;

/// The calls of both sides.
#[derive(Debug, Default)]
pub(crate) struct QueueBooks {
    /// Of producers.
    pub(crate) produced: Book<Item, ()>,
    /// Of consumers.
    pub(crate) consumed: Book<usize, Item>,
    /// Consumers that have stopped.
    pub(crate) stopped: AtomicU64,
}

fn encode(item: Item) -> Bytes {
    let mut bytes = item.producer.to_le_bytes().to_vec();
    bytes.extend(item.place.to_le_bytes());
    bytes.into()
}

/// An item that nobody could have brought gets a place that nobody brought.
fn decode(bytes: &[u8]) -> Item {
    let number = |bytes: Option<&[u8]>| {
        bytes.and_then(|bytes| bytes.try_into().ok()).map_or(u64::MAX - 1, u64::from_le_bytes)
    };
    Item { producer: number(bytes.get(..8)), place: number(bytes.get(8..)) }
}

/// Brings items until workers are to end.
pub(crate) async fn produce(mut worker: Worker, books: Arc<QueueBooks>, producer: u64) {
    let mut place = 0;
    while !worker.desk.is_stopping() {
        let queue = QueueStub::new(worker.session(), NAME);
        let [first, second] = [place, place + 1].map(|place| Item { producer, place });
        place += 2;
        let book = &books.produced;
        // Polled in order, so that the session makes the calls in order.
        tokio::join!(
            biased;
            worker.ask_in_turn(book, first, queue.produce(encode(first))),
            worker.ask_in_turn(book, second, queue.produce(encode(second))),
        );
        worker.mend().await;
        worker.think().await;
    }
    worker.finish().await;
}

/// Takes items until one tells it to stop.
pub(crate) async fn consume(mut worker: Worker, books: Arc<QueueBooks>, consumer: usize) {
    loop {
        let queue = QueueStub::new(worker.session(), NAME);
        let call = async { queue.consume().await.map(|item| decode(&item)) };
        let outcome = worker.ask(&books.consumed, consumer, call).await;
        if matches!(outcome, Outcome::Done(Item { producer: LAST, .. })) {
            break;
        }
        worker.think().await;
    }
    books.stopped.fetch_add(1, Ordering::Relaxed);
    worker.finish().await;
}

/// Brings one item that tells a consumer to stop.
pub(crate) async fn bring_last(worker: &mut Worker, books: &QueueBooks, place: u64) {
    let item = Item { producer: LAST, place };
    let queue = QueueStub::new(worker.session(), NAME);
    worker.ask(&books.produced, item, queue.produce(encode(item))).await;
}

/// Takes what is left, as one more consumer.
pub(crate) async fn drain(
    worker: &mut Worker,
    books: &QueueBooks,
    consumer: usize,
) -> Result<(), StubError<Cancelled, CallFailure>> {
    loop {
        let queue = QueueStub::new(worker.session(), NAME);
        if queue.length().await? == 0 {
            return Ok(());
        }
        let call = async { queue.consume().await.map(|item| decode(&item)) };
        worker.ask(&books.consumed, consumer, call).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_survive_their_bytes() {
        let item = Item { producer: 3, place: 1 << 40 };
        assert_eq!(decode(&encode(item)), item);
        assert_ne!(decode(b"short").place, 0);
    }
}
