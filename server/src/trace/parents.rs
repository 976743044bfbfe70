//! Spans of HTTP requests that are parents of calls, by session and number of the call.
//!
//! The gateway is a client like others, and the protocol of clients carries no trace. But the gateway
//! is in the process of its replica: it leaves here which span its call belongs to, and the driver
//! finds it by the session and number that the call has anyway.
//! Invariants: the driver never waits for the lock: what it cannot have now it takes for not there, and
//! looks again at the call's end. An entry lives no longer than the task that makes its call.
//! Not here: reads, which have no number.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering},
    },
};

use opentelemetry::trace::SpanContext;

use super::Tracer;

/// Session and number of a call.
type Key = (u64, u64);

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    table: Mutex<BTreeMap<Key, SpanContext>>,
    /// How many there are, so that whoever finds none takes no lock.
    count: AtomicUsize,
}

impl Parents {
    fn insert(&self, key: Key, parent: SpanContext) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(key, parent);
        self.count.store(table.len(), Ordering::Release);
    }

    fn remove(&self, key: Key) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.remove(&key);
        self.count.store(table.len(), Ordering::Release);
    }

    /// The parent of a call, if it has one and can be had without waiting.
    pub(crate) fn of(&self, key: Key) -> Option<SpanContext> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let table = match self.table.try_lock() {
            Ok(table) => table,
            Err(TryLockError::Poisoned(table)) => table.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        table.get(&key).cloned()
    }
}

/// Keeps an entry.
#[derive(Debug)]
#[must_use = "the entry goes with the guard"]
pub(crate) struct ParentGuard {
    tracer: Tracer,
    key: Key,
}

impl ParentGuard {
    pub(super) fn new(tracer: Tracer, key: Key, parent: SpanContext) -> Self {
        tracer.shared.parents.insert(key, parent);
        Self { tracer, key }
    }
}

impl Drop for ParentGuard {
    fn drop(&mut self) {
        self.tracer.shared.parents.remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::new_context;

    #[test]
    fn whoever_would_have_to_wait_finds_nothing() {
        let parents = Parents::default();
        let (key, parent) = ((7, 1), new_context(None));
        assert_eq!(parents.of(key), None);
        parents.insert(key, parent.clone());
        assert_eq!(parents.of(key), Some(parent));
        assert_eq!(parents.of((7, 2)), None);
        let held = parents.table.lock().expect("nobody panicked");
        assert_eq!(parents.of(key), None);
        drop(held);
        parents.remove(key);
        assert_eq!((parents.of(key), parents.count.load(Ordering::Acquire)), (None, 0));
    }
}
