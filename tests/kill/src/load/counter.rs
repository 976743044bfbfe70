//! Callers of one counter: increments and reads, some of which are given up after a while.

use std::sync::Arc;

use gesmas_counter::CounterStub;

use super::Worker;
use crate::{checkers::counter::CounterCall, history::Book};

/// The object.
pub(crate) const NAME: &str = "kill";
/// Callers.
pub(crate) const WORKERS: u64 = 5;
/// One call in so many is a read.
const READS: u64 = 4;

/// The calls.
pub(crate) type CounterBook = Book<CounterCall, i64>;

/// Calls until workers are to end.
pub(crate) async fn work(mut worker: Worker, book: Arc<CounterBook>) {
    while !worker.desk.is_stopping() {
        let counter = CounterStub::new(worker.session(), NAME);
        if worker.prng.below(READS) == 0 {
            worker.ask(&book, CounterCall::Read, counter.get()).await;
        } else {
            worker.ask(&book, CounterCall::Increment, counter.increment()).await;
        }
        worker.think().await;
    }
    worker.finish().await;
}
