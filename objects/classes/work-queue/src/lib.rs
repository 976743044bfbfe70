//! `WorkQueue`: jobs that come again until somebody says that they are done.
//!
//! Whoever takes a job gets it under a *lease*. `ack` within the lease ends the job; `nack`, or a lease
//! that runs out, puts it back at the head of the queue for the next taker. So a worker that dies loses
//! nothing, and a job is delivered at least once. A job that was delivered as often as `init` allows is
//! put aside as a *dead letter* instead.
//! A lease is a matter of time alone: it outlives the session of its taker, which may be the short one of
//! a single HTTP call. An `ack` that comes after the lease changes nothing and is told so: by then
//! another may have the job.
//! Every method costs the same however many jobs there are; `dead_letters` goes through them a page at a
//! time.
//! Invariant: permits of `filled` that are counted or on their way to a taker are as many as the jobs that
//! are ready; a job is ready, leased or dead.
//! Not here: order between a job that came back and those that were taken after it, and a bound:
//! the limits of objects are one.
//!
//! ```text
//! $ gesmas object create WorkQueue/mail 5         # at most five deliveries
//! $ gesmas call WorkQueue/mail put '{"text": "to ann"}'
//! 17
//! $ gesmas call WorkQueue/mail take 30s
//! {"lease": 18, "id": 17, "item": {"text": "to ann"}, "deliveries": 1, "ends": "…"}
//! $ gesmas call WorkQueue/mail ack 18
//! ```
//!
//! From Rust:
//!
//! ```
//! use std::time::Duration;
//!
//! use gesmas_sdk::stub::Invoke;
//! use gesmas_work_queue::WorkQueueStub;
//!
//! async fn work(client: impl Invoke) {
//!     let mail = WorkQueueStub::new(client, "mail");
//!     while let Ok(job) = mail.take(Duration::from_secs(30)).await {
//!         println!("{:?}, delivery {}", job.item, job.deliveries);
//!         let _ = mail.ack(job.lease).await;
//!     }
//! }
//! ```

use gesmas_sdk::prelude::*;

/// Dead letters that `dead_letters` gives at once at most.
const PAGE: usize = 1_000;

/// A queue whose items come again until they are acknowledged.
#[class]
pub struct WorkQueue {
    most_deliveries: Value<u32>,
    ready: Deque<Job>,
    filled: Semaphore,
    leased: Map<u64, Leased>,
    dead: Map<u64, Job>,
}

/// What is kept of a job.
#[derive(Value)]
struct Job {
    id: u64,
    item: Bytes,
    deliveries: u32,
}

/// A job that somebody has.
#[derive(Value)]
struct Leased {
    job: Job,
    alarm: Alarm,
}

/// A job and its lease.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Delivery {
    /// What it is acknowledged with.
    pub lease: u64,
    /// What `put` returned.
    pub id: u64,
    /// The item.
    pub item: Bytes,
    /// How often it was delivered, this time included.
    pub deliveries: u32,
    /// When the lease runs out.
    pub ends: Time,
}

/// A job that was delivered as often as it may be.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct DeadLetter {
    /// What `put` returned.
    pub id: u64,
    /// The item.
    pub item: Bytes,
    /// How often it was delivered.
    pub deliveries: u32,
}

/// Why a job stays as it is.
#[error]
pub enum WorkQueueError {
    /// the lease has run out, or was ended before; another may have the job
    NotLeased,
    /// no dead letter has this id
    NoDeadLetter,
}

#[methods]
impl WorkQueue {
    /// Creates a queue whose jobs are delivered at most so often; 0 for any number of times.
    #[init]
    fn init(&mut self, most_deliveries: u32) {
        self.most_deliveries.set(most_deliveries);
    }

    /// Appends a job and returns its id, greater than all before.
    pub fn put(&mut self, item: Bytes) -> Result<u64> {
        let id = ctx::fencing_token();
        self.ready.push_back(Job { id, item, deliveries: 0 });
        self.filled.v();
        Ok(id)
    }

    /// Takes the first job for that long; blocks while none is ready.
    pub fn take(&mut self, lease: Duration) -> Result<Delivery> {
        self.filled.p()?;
        Ok(self.deliver(lease))
    }

    /// Takes the first job for that long, if one is ready; never blocks.
    pub fn try_take(&mut self, lease: Duration) -> Result<Option<Delivery>> {
        Ok(self.filled.try_p().then(|| self.deliver(lease)))
    }

    /// Takes the first job for that long; blocks at most for `patience`, and returns nothing when that
    /// was up.
    pub fn take_for(&mut self, lease: Duration, patience: Duration) -> Result<Option<Delivery>> {
        let filled = self.filled.p_for(patience)?;
        Ok(filled.then(|| self.deliver(lease)))
    }

    /// The job is done.
    pub fn ack(&mut self, lease: u64) -> Result<(), WorkQueueError> {
        self.end_lease(lease).map(drop)
    }

    /// The job is not done, and is ready for the next taker at once.
    pub fn nack(&mut self, lease: u64) -> Result<(), WorkQueueError> {
        let job = self.end_lease(lease)?;
        self.put_back(job);
        Ok(())
    }

    /// The lease runs out that long from now instead, which may be sooner; returns when.
    pub fn extend(&mut self, lease: u64, duration: Duration) -> Result<Time, WorkQueueError> {
        let job = self.end_lease(lease)?;
        Ok(self.begin_lease(lease, job, duration))
    }

    /// A dead letter is ready again, at the end of the queue, as if it had never been delivered.
    pub fn revive(&mut self, id: u64) -> Result<(), WorkQueueError> {
        let job = self.dead.remove(&id).ok_or(WorkQueueError::NoDeadLetter)?;
        self.ready.push_back(Job { deliveries: 0, ..job });
        self.filled.v();
        Ok(())
    }

    /// Removes a dead letter and returns its item.
    pub fn discard(&mut self, id: u64) -> Result<Bytes, WorkQueueError> {
        let job = self.dead.remove(&id).ok_or(WorkQueueError::NoDeadLetter)?;
        Ok(job.item)
    }

    /// The dead letters after this id, 0 for all, at most `limit` and at most 1,000.
    #[read]
    pub fn dead_letters(&self, after: u64, limit: u32) -> Result<Vec<DeadLetter>> {
        let letters = self.dead.iter_after(&after).take(PAGE.min(limit as usize));
        let letter = |(_, Job { id, item, deliveries })| DeadLetter { id, item, deliveries };
        Ok(letters.map(letter).collect())
    }

    /// How many jobs are ready.
    #[read]
    pub fn length(&self) -> Result<u64> {
        Ok(self.ready.len())
    }

    /// How many jobs somebody has.
    #[read]
    pub fn leased(&self) -> Result<u64> {
        Ok(self.leased.len())
    }

    /// How many jobs are put aside.
    #[read]
    pub fn dead(&self) -> Result<u64> {
        Ok(self.dead.len())
    }

    #[handler]
    fn lease_over(&mut self, lease: u64) {
        if let Some(leased) = self.leased.remove(&lease) {
            self.put_back(leased.job);
        }
    }

    fn deliver(&mut self, duration: Duration) -> Delivery {
        let mut job = self.ready.pop_front().expect("a permit is a job");
        job.deliveries += 1;
        let lease = ctx::fencing_token();
        let Job { id, ref item, deliveries } = job;
        let item = item.clone();
        let ends = self.begin_lease(lease, job, duration);
        Delivery { lease, id, item, deliveries, ends }
    }

    fn begin_lease(&mut self, lease: u64, job: Job, duration: Duration) -> Time {
        let alarm = ctx::after(duration, Self::LEASE_OVER, (lease,));
        self.leased.insert(&lease, Leased { job, alarm });
        ctx::now() + duration
    }

    fn end_lease(&mut self, lease: u64) -> Result<Job, WorkQueueError> {
        let leased = self.leased.remove(&lease).ok_or(WorkQueueError::NotLeased)?;
        ctx::cancel(leased.alarm);
        Ok(leased.job)
    }

    fn put_back(&mut self, job: Job) {
        let most = self.most_deliveries.get();
        if most > 0 && job.deliveries >= most {
            let id = job.id;
            self.dead.insert(&id, job);
        } else {
            self.ready.push_front(job);
            self.filled.v();
        }
    }
}
