//! Counts of what a machine has done since it was made.
//!
//! Not state: they are in no image and no hash, and a restart begins them anew (replaying the log
//! counts its work again).

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Entries of the current leader.
    pub batches: u64,
    /// Entries of others.
    pub void_batches: u64,
    /// Steps.
    pub steps: u64,
    /// Invocations begun.
    pub invocations: u64,
    /// Invocations that blocked at least once.
    pub blocked_invocations: u64,
    /// Times that an invocation that had blocked was resumed with a permit or because its time was
    /// up.
    pub resumptions: u64,
    /// Times that a blocked invocation was resumed to clean up.
    pub cancellations: u64,
    /// Times that an invocation was resumed without its permit and blocked again on the same
    /// semaphore.
    pub wakeups_in_vain: u64,
    /// Segments undone.
    pub undone_segments: u64,
    /// Requests not admitted.
    pub refusals: u64,
    /// Requests that came again and were not run again.
    pub duplicates: u64,
    /// Reads.
    pub reads: u64,
    /// Invocations rebuilt from their journals.
    pub rebuilt: u64,
    /// Invocations whose instances were dropped while they waited.
    pub parked: u64,
    /// Instances of blocked invocations that are kept now.
    pub live_activations: u64,
    /// Invocations that are blocked now.
    pub blocked_now: u64,
}
