//! How a run went.

use std::fmt;

/// A promise that was broken, and who noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The checker.
    pub checker: &'static str,
    /// What it saw.
    pub message: String,
}

impl Violation {
    /// What a checker saw.
    pub(crate) fn new(checker: &'static str, message: impl Into<String>) -> Self {
        Self { checker, message: message.into() }
    }
}

/// Checkers that see more than clients do, or are the product's own.
const INSIDE: [&str; 10] = [
    "panic",
    "one log",
    "one state",
    "sound state",
    "peers",
    "recovery",
    "availability",
    "divergence",
    "overdue",
    "calm",
];

impl Violation {
    /// Whether clients alone could have noticed.
    #[must_use]
    pub fn is_seen_by_clients(&self) -> bool {
        !INSIDE.contains(&self.checker)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.checker, self.message)
    }
}

/// The result of a check.
pub(crate) type Checked<T = ()> = Result<T, Violation>;

/// Demands that something holds.
pub(crate) fn demand(
    holds: bool,
    checker: &'static str,
    message: impl FnOnce() -> String,
) -> Checked {
    if holds { Ok(()) } else { Err(Violation::new(checker, message())) }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What happened in a run, in numbers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Adds those of another run.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// Sets one by its name. False when there is none of that name.
            pub fn set(&mut self, name: &str, count: u64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = count,)*
                    _ => return false,
                }
                true
            }

            /// All of them by name.
            #[must_use]
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}

counts! {
    /// Virtual milliseconds.
    virtual_ms,
    /// Virtual milliseconds from the end of the faults until nothing was pending.
    drain_ms,
    /// Entries decided.
    entries,
    /// Commands ordered.
    commands,
    /// Invocations that blocked.
    blocked,
    /// Requests that were ordered more than once.
    ordered_again,
    /// And by different leaders.
    ordered_by_two_leaders,
    /// Batches of leaders that were deposed.
    void_batches,
    /// Batches in which a waiting call was cancelled and another got its permit.
    cancels_beside_grants,
    /// Segments that were undone.
    undone_segments,
    /// Leaders that were lost while calls were suspended.
    leaders_lost_with_waiters,
    /// Pieces of work of the machines that were compared between replicas.
    compared_states,
    /// Frames between replicas.
    frames,
    /// Changes of leader that were applied.
    leaders,
    /// Replies that clients received.
    replies,
    /// Requests that were sent again.
    retries,
    /// Requests that clients gave up.
    cancels,
    /// Reads that were answered.
    reads,
    /// Requests that were turned away as out of order.
    out_of_order,
    /// Sessions that expired.
    expired_sessions,
    /// Sessions that were closed.
    closed_sessions,
    /// Crashes of replicas.
    crashes,
    /// Crashes in the middle of a turn.
    crashes_in_turn,
    /// Power cuts of all replicas at once.
    power_cuts,
    /// Snapshots written.
    snapshots,
    /// Snapshots that held suspended calls.
    snapshots_with_waiters,
    /// Snapshots got from peers and installed.
    installed_snapshots,
    /// Pieces of snapshots that travelled.
    snapshot_pieces,
    /// Starts from a snapshot.
    starts_from_snapshot,
    /// Snapshots that were found damaged at a start.
    damaged_snapshots,
    /// Starts without a snapshot that reaches the log.
    starts_starving,
    /// Disks that were full for a while.
    full_disks,
    /// Replicas that had no file descriptor left for a while.
    scarce_descriptors,
    /// Replicas that stood still for either.
    standstills,
    /// Those of them that last lacked a descriptor.
    standstills_for_descriptors,
    /// Syncs of logs that failed, after which the replica began anew without a power cut.
    failed_syncs,
    /// Replicas that took over from a leader whose process was gone.
    takeovers,
    /// Replicas that took the lead because they were asked to.
    transfers,
    /// Trials of replacements that went to their ends.
    trials,
    /// Times that clients asked for nothing for a while.
    hushes,
    /// Drains that began so.
    quiet_drains,
    /// Changes of leaders in clusters of which nobody asked anything.
    quiet_transfers,
    /// Floods of acknowledgements.
    floods,
    /// Words of followers that leaders took while their own logs were made durable.
    settled,
    /// Replicas that were to take the lead when nobody heard them, and then lost power.
    unheard_promises,
    /// Disks that were lost.
    lost_disks,
    /// Bits of logs that flipped.
    flipped_bits,
    /// Writes into logs that went elsewhere.
    misdirected_writes,
    /// Logs that had more damage than can be mended.
    refused_logs,
    /// Reads of logs that failed.
    read_errors,
    /// Runs in which the standard classes were WebAssembly.
    webassembly,
    /// Runs in which the replicas in order reached each other through one of them only.
    stars,
    /// Times that a processor computed wrongly.
    miscomputations,
    /// Replicas that found out that their state was not the group's.
    divergences,
    /// Of those, how many could name what differed.
    divergences_named,
    /// Stops of replicas because no majority had the same state.
    stops_without_majority,
    /// Starts from a snapshot with suspended calls.
    restored_with_waiters,
    /// Snapshots got from peers with suspended calls.
    installed_with_waiters,
    /// Suspended calls that were rebuilt from their journals.
    rebuilt,
    /// Suspended calls whose instances were dropped.
    parked,
    /// Pauses of replicas.
    pauses,
    /// Jumps of wall clocks.
    clock_jumps,
    /// Connections between replicas that broke.
    link_breaks,
    /// Links that stood still for a while.
    clogs,
    /// Splits of the network.
    splits,
    /// Leaders that nobody reached for a while.
    isolated_leaders,
    /// Splits in one direction.
    one_way_splits,
    /// Messages between clients and replicas that were lost.
    lost_messages,
    /// Messages between clients and replicas that came twice.
    doubled_messages,
    /// Clients that died.
    client_deaths,
    /// Clients that were silent for a while.
    client_silences,
    /// Clients that went to another replica.
    client_moves,
}

/// Rare events that many runs together must have seen, each at least once.
pub const MARKS: [&str; 34] = [
    "ordered_by_two_leaders",
    "cancels_beside_grants",
    "undone_segments",
    "leaders_lost_with_waiters",
    "snapshots_with_waiters",
    "installed_with_waiters",
    "restored_with_waiters",
    "parked",
    "rebuilt",
    "damaged_snapshots",
    "starts_starving",
    "lost_disks",
    "misdirected_writes",
    "refused_logs",
    "webassembly",
    "stars",
    "divergences",
    "divergences_named",
    "standstills",
    "standstills_for_descriptors",
    "failed_syncs",
    "takeovers",
    "transfers",
    "settled",
    "trials",
    "hushes",
    "quiet_drains",
    "quiet_transfers",
    "floods",
    "unheard_promises",
    "crashes_in_turn",
    "power_cuts",
    "expired_sessions",
    "closed_sessions",
];

/// Faults that happened, by kind.
pub const FAULTS: [&str; 22] = [
    "crashes",
    "crashes_in_turn",
    "power_cuts",
    "damaged_snapshots",
    "full_disks",
    "scarce_descriptors",
    "failed_syncs",
    "lost_disks",
    "flipped_bits",
    "misdirected_writes",
    "read_errors",
    "miscomputations",
    "pauses",
    "clock_jumps",
    "link_breaks",
    "clogs",
    "splits",
    "isolated_leaders",
    "one_way_splits",
    "lost_messages",
    "doubled_messages",
    "client_deaths",
];

impl Counts {
    /// Those of these names.
    #[must_use]
    pub fn of(&self, names: &[&str]) -> Vec<(&'static str, u64)> {
        self.named().into_iter().filter(|(name, _)| names.contains(name)).collect()
    }
}

/// How a run went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The seed.
    pub seed: u64,
    /// What was broken, if anything.
    pub violation: Option<Violation>,
    /// Digest of the whole run.
    pub digest: u64,
    /// What happened, in numbers.
    pub counts: Counts,
    /// The last events, if they were asked for.
    pub words: Vec<String>,
}
