//! `WorkQueue`: jobs that come again until somebody says that they are done.
//!
//! A taker gets a job under a *lease*. `ack` within the lease ends the job; after `nack`, or when the lease
//! runs out, it comes back. So a worker that dies loses nothing, and a job is delivered at least once. A
//! job that was delivered as often as `init` allows is put aside as a *dead letter* instead.
//! A job that comes back first waits: for a second after its first delivery, for twice as long after each
//! further one, for five minutes at most; a `nack` can say for how long instead. Then it goes to the end of
//! the queue. So a bad job delays no good one, and does not wear out its deliveries in a moment.
//! A lease is a matter of time alone: it outlives the session of its taker, which may be the short one of
//! a single HTTP call. An `ack` that comes after the lease changes nothing and is told so: by then
//! another may have the job.
//! Every method costs the same however many jobs there are; `dead_letters` goes through them a page at a
//! time.
//! Invariants: permits of `filled` that are counted or on their way to a taker are as many as the jobs that
//! are ready; a job is ready, leased, delayed or dead, and has an alarm exactly while it is leased or
//! delayed. A handler that fails leaves another alarm in place of the one that called it.
//! Not here: order between jobs that came back and those that did not, and a bound: the limits of objects
//! are one.
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

/// How long a job waits that comes back after its first delivery.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How long a job waits at most that comes back.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// After how long a handler is called again that failed.
const AGAIN: Duration = Duration::from_secs(30);

/// A queue whose items come again until they are acknowledged.
#[class]
pub struct WorkQueue {
    most_deliveries: Value<u32>,
    ready: Deque<Job>,
    filled: Semaphore,
    /// Jobs that somebody has, by their leases.
    leased: Map<u64, Job>,
    /// Jobs whose delay is not over, by their ids.
    delayed: Map<u64, Job>,
    /// The alarms of both. Leases and ids are drawn from one sequence.
    alarms: Map<u64, Alarm>,
    dead: Map<u64, Job>,
}

/// What is kept of a job.
#[derive(Value)]
struct Job {
    id: u64,
    item: Bytes,
    deliveries: u32,
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

/// A page of dead letters.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct DeadLetters {
    /// The letters.
    pub letters: Vec<DeadLetter>,
    /// What to give as `after` for the page after this one; nothing if this is the last.
    pub next: Option<u64>,
}

/// Why a job, or all of them, stay as they are.
#[error]
pub enum WorkQueueError {
    /// the lease has run out, or was ended before; another may have the job
    NotLeased,
    /// no dead letter has this id
    NoDeadLetter,
    /// a job is delivered once at least; 4294967295 deliveries are as good as any number
    ZeroDeliveries,
    /// a page has one letter at least
    ZeroLimit,
}

#[methods]
impl WorkQueue {
    /// Creates a queue whose jobs are delivered at most so often, and once at least.
    #[init]
    fn init(&mut self, most_deliveries: u32) -> Result<(), WorkQueueError> {
        if most_deliveries == 0 {
            return Err(WorkQueueError::ZeroDeliveries);
        }
        self.most_deliveries.set(most_deliveries);
        Ok(())
    }

    /// Appends a job, at once or after a delay, and returns its id, greater than all before.
    pub fn put(&mut self, item: Bytes, delay: Option<Duration>) -> Result<u64> {
        let id = ctx::fencing_token();
        self.make_ready_after(delay.unwrap_or_default(), Job { id, item, deliveries: 0 });
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

    /// The job is not done, and comes back: after this delay, or else after one that is the longer the
    /// more often it was delivered.
    pub fn nack(&mut self, lease: u64, delay: Option<Duration>) -> Result<(), WorkQueueError> {
        let job = self.end_lease(lease)?;
        self.come_back(job, delay);
        Ok(())
    }

    /// The lease runs out that long from now instead, which may be sooner; returns when.
    pub fn extend(&mut self, lease: u64, duration: Duration) -> Result<Time, WorkQueueError> {
        if !self.leased.contains_key(&lease) {
            return Err(WorkQueueError::NotLeased);
        }
        self.disarm(lease);
        self.arm(lease, duration, Self::LEASE_OVER);
        Ok(ctx::now() + duration)
    }

    /// A dead letter is ready again, at the end of the queue, as if it had never been delivered.
    pub fn revive(&mut self, id: u64) -> Result<(), WorkQueueError> {
        let job = self.dead.remove(&id).ok_or(WorkQueueError::NoDeadLetter)?;
        self.make_ready(Job { deliveries: 0, ..job });
        Ok(())
    }

    /// Removes a dead letter and returns its item.
    pub fn discard(&mut self, id: u64) -> Result<Bytes, WorkQueueError> {
        let job = self.dead.remove(&id).ok_or(WorkQueueError::NoDeadLetter)?;
        Ok(job.item)
    }

    /// A page of the dead letters, in the order of their ids: those after this id, 0 for all; at most
    /// `limit`, and as many as fit into a page.
    #[read]
    pub fn dead_letters(&self, after: u64, limit: u32) -> Result<DeadLetters, WorkQueueError> {
        if limit == 0 {
            return Err(WorkQueueError::ZeroLimit);
        }
        let (mut page, mut letters) = (Portion::of(limit), Vec::new());
        for (_, Job { id, item, deliveries }) in self.dead.iter_after(&after) {
            if !page.takes(item.len()) {
                let next = letters.last().map(|letter: &DeadLetter| letter.id);
                return Ok(DeadLetters { letters, next });
            }
            letters.push(DeadLetter { id, item, deliveries });
        }
        Ok(DeadLetters { letters, next: None })
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

    /// How many jobs wait for a delay to be over.
    #[read]
    pub fn delayed(&self) -> Result<u64> {
        Ok(self.delayed.len())
    }

    /// How many jobs are put aside.
    #[read]
    pub fn dead(&self) -> Result<u64> {
        Ok(self.dead.len())
    }

    #[handler]
    fn lease_over(&mut self, lease: u64) {
        if self.call_again(lease, Self::LEASE_OVER) {
            ctx::continue_with(Self::END_LEASE_OVER, (lease,));
        }
    }

    #[handler]
    fn end_lease_over(&mut self, lease: u64) {
        if let Ok(job) = self.end_lease(lease) {
            self.come_back(job, None);
        }
    }

    #[handler]
    fn delay_over(&mut self, id: u64) {
        if self.call_again(id, Self::DELAY_OVER) {
            ctx::continue_with(Self::END_DELAY, (id,));
        }
    }

    #[handler]
    fn end_delay(&mut self, id: u64) {
        if let Some(job) = self.delayed.remove(&id) {
            self.disarm(id);
            self.make_ready(job);
        }
    }

    fn deliver(&mut self, duration: Duration) -> Delivery {
        let mut job = self.ready.pop_front().expect("a permit is a job");
        job.deliveries = job.deliveries.saturating_add(1);
        let lease = ctx::fencing_token();
        let Job { id, ref item, deliveries } = job;
        let ends = ctx::now() + duration;
        let delivery = Delivery { lease, id, item: item.clone(), deliveries, ends };
        self.leased.insert(&lease, job);
        self.arm(lease, duration, Self::LEASE_OVER);
        delivery
    }

    fn end_lease(&mut self, lease: u64) -> Result<Job, WorkQueueError> {
        let job = self.leased.remove(&lease).ok_or(WorkQueueError::NotLeased)?;
        self.disarm(lease);
        Ok(job)
    }

    fn come_back(&mut self, job: Job, delay: Option<Duration>) {
        if job.deliveries >= self.most_deliveries.get() {
            let id = job.id;
            self.dead.insert(&id, job);
        } else {
            self.make_ready_after(delay.unwrap_or_else(|| pause(job.deliveries)), job);
        }
    }

    fn make_ready_after(&mut self, delay: Duration, job: Job) {
        if delay.is_zero() {
            return self.make_ready(job);
        }
        let id = job.id;
        self.delayed.insert(&id, job);
        self.arm(id, delay, Self::DELAY_OVER);
    }

    fn make_ready(&mut self, job: Job) {
        self.ready.push_back(job);
        self.filled.v();
    }

    fn arm(&mut self, number: u64, duration: Duration, handler: ctx::Handler<(u64,)>) {
        let alarm = ctx::after(duration, handler, (number,));
        self.alarms.insert(&number, alarm);
    }

    fn disarm(&mut self, number: u64) {
        if let Some(alarm) = self.alarms.remove(&number) {
            ctx::cancel(alarm);
        }
    }

    /// The alarm has gone off. Another takes its place until the work is done, and stands if that fails.
    /// False when there is nothing to do any more.
    fn call_again(&mut self, number: u64, handler: ctx::Handler<(u64,)>) -> bool {
        let awaited = self.alarms.contains_key(&number);
        if awaited {
            self.arm(number, AGAIN, handler);
        }
        awaited
    }
}

/// How long a job waits that comes back after so many deliveries.
fn pause(deliveries: u32) -> Duration {
    let doubled = 1_u32.checked_shl(deliveries.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let seconds = [0, 1, 2, 3, 9, 10, 32, 33, u32::MAX].map(|many| pause(many).as_secs());
        assert_eq!(seconds, [1, 1, 2, 4, 256, 300, 300, 300, 300]);
    }
}
