//! What the test's clients do, as futures that nobody but the world polls.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Waker},
};

/// What a task comes to.
#[derive(Debug)]
pub struct Pending<T> {
    pub(crate) task: u64,
    end: Arc<Mutex<Option<T>>>,
}

impl<T> Pending<T> {
    /// Takes the result of a task that has ended.
    ///
    /// # Panics
    /// When it has not ended, or its result was taken before.
    #[must_use]
    pub fn result(&self) -> T {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        end.expect("the task has ended, and its result was not taken before")
    }

    /// Whether the task has not ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// All tasks that have not ended.
#[derive(Default)]
pub(crate) struct Tasks {
    open: BTreeMap<u64, Pin<Box<dyn Future<Output = ()>>>>,
    begun: u64,
}

impl Tasks {
    /// Adds a task, which does not run yet.
    pub(crate) fn add<T: 'static>(
        &mut self,
        task: impl Future<Output = T> + 'static,
    ) -> Pending<T> {
        self.begun += 1;
        let end = Arc::new(Mutex::new(None));
        let written = Arc::clone(&end);
        let task = async move {
            let result = task.await;
            *written.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        };
        self.open.insert(self.begun, Box::pin(task));
        Pending { task: self.begun, end }
    }

    /// Lets a task run as far as it comes.
    pub(crate) fn poll(&mut self, task: u64) {
        let Some(future) = self.open.get_mut(&task) else { return };
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            self.open.remove(&task);
        }
    }
}
