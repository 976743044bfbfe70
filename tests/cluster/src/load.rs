//! Calls in flight all the time, each of which is accounted for.
//!
//! Sessions increment one counter without pause. None of the calls may fail, and the counts that
//! they return must be 1 to their number, each once: no call was lost or executed twice.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use gesmas_client::Session;
use gesmas_counter::CounterStub;
use tokio::task::JoinHandle;

use crate::{cluster::Cluster, wait};

/// See the file's head.
pub struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<Vec<i64>>>,
    sessions: Vec<Session>,
}

impl Load {
    /// Begins, with one session beginning at each replica.
    pub async fn start(cluster: &Cluster, object: &'static str) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut load = Self { stop, done, tasks: Vec::new(), sessions: Vec::new() };
        let mut addresses: Vec<_> = cluster.indices().map(|index| cluster.address(index)).collect();
        for _ in cluster.indices() {
            addresses.rotate_left(1);
            let client = cluster.client_at(&addresses).await;
            let session = client.session().open().await.expect("a session is opened");
            load.sessions.push(session.clone());
            let (stop, done) = (load.stop.clone(), load.done.clone());
            load.tasks.push(tokio::spawn(async move {
                let counter = CounterStub::new(session, object);
                let mut counts = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    counts.push(counter.increment().await.expect("no call fails"));
                    done.fetch_add(1, Ordering::Relaxed);
                }
                counts
            }));
        }
        load.goes_on(3).await;
        load
    }

    /// The sessions that call.
    #[must_use]
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// Waits until so many more calls have ended.
    pub async fn goes_on(&self, calls: u64) {
        let end = self.done.load(Ordering::Relaxed) + calls;
        wait::until("that calls go on", || async {
            assert!(!self.tasks.iter().any(JoinHandle::is_finished), "a call has failed");
            self.done.load(Ordering::Relaxed) >= end
        })
        .await;
    }

    /// Ends and gives the number of calls.
    ///
    /// # Panics
    /// When a call failed, was lost or executed twice.
    pub async fn finish(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let mut counts = Vec::new();
        for task in self.tasks {
            counts.extend(wait::bounded("the end of the load", task).await.expect("no call fails"));
        }
        counts.sort_unstable();
        let expected: Vec<_> = (1..).take(counts.len()).collect();
        assert!(counts == expected, "calls were lost or executed twice");
        counts.len()
    }
}
