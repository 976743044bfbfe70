//! Snapshots, as the core sees them: when one is taken, what the log keeps, and going on from one.
//!
//! ```text
//! enough log ─► machine's snapshot ─► Job::Write ─► durable ─► log is compacted to the one before
//! peer is behind ─► it fetches one (`catch_up.rs`) ─► install: node, machine ─► the log's tail
//! ```
//!
//! A snapshot is due after so many bytes of log. Members begin at different places, so that they
//! write theirs at different times. The log is compacted to the older of the two that are kept: if
//! the newest is damaged, the one before it and the log still make the state.
//! Invariants: the log is compacted only to where a durable snapshot of this replica ends, and one
//! whose state a majority has agreed on stays, with the log after it, so that a step on which replicas
//! differed can be run again; a snapshot that was fetched is checked and durable before it is
//! installed.
//! Not here: files (`crate::snapshot`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gesmas_machine::{Effect, Engine, PlantedBug};

use super::{Output, ReadId, Replica, ReplicaError};
use crate::snapshot::{Done, Job, Loaded, Reader};

pub(super) fn paxos_ballot(ballot: gesmas_machine::Ballot) -> crate::paxos::Ballot {
    crate::paxos::Ballot {
        number: ballot.number,
        priority: ballot.priority,
        replica: ballot.replica,
        configuration: ballot.configuration,
    }
}

/// The snapshots that a replica starts with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Index of the newest, from which its machine was made.
    pub newest: Option<u64>,
    /// Index of the one before.
    pub previous: Option<u64>,
}

/// What a replica knows of its snapshots and does about them.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    pub(super) held: Held,
    /// Steps in the newest.
    newest_step: u64,
    /// Index of the newest one that is known to be of a state that a majority agreed on.
    base: u64,
    /// Bytes of the entries applied since the newest.
    since: u64,
    /// Bytes after which the next is due.
    due: u64,
    pub(super) wanted: bool,
    /// One is being taken or written.
    busy: bool,
    /// Whether the last one could not be written.
    failed: bool,
    /// Whether the machine lacks entries that the log no longer has.
    pub(super) starving: bool,
    /// Where the log should begin.
    compact: Option<u64>,
    pub(super) fetch: Option<Fetch>,
    /// Bytes that may be asked for now; less than nothing after a piece that was larger than a share.
    pub(super) allowance: i64,
    /// Peers for which a piece is being read.
    pub(super) reading: BTreeSet<u64>,
    /// Who fetches which snapshot of this replica, and when it last asked.
    pub(super) fetchers: BTreeMap<u64, (u64, u64)>,
    pub(super) jobs: VecDeque<Job>,
    pub(super) counts: SnapshotCounts,
}

/// Counts for operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotCounts {
    /// Snapshots written.
    pub written: u64,
    /// Snapshots that could not be written.
    pub failed: u64,
    /// Snapshots got from peers and installed.
    pub installed: u64,
    /// Pieces given to peers.
    pub pieces: u64,
    /// Index of the newest.
    pub newest: u64,
    /// Bytes of its file; 0 if it was written before this process began.
    pub bytes: u64,
}

/// A snapshot that is being fetched.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) from: u64,
    pub(super) index: u64,
    /// Bytes that are here.
    pub(super) fetched: u64,
    /// Length of the file, once a piece has come.
    pub(super) total: Option<u64>,
    pub(super) step: FetchStep,
    /// Questions in a row that got no answer.
    pub(super) unanswered: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchStep {
    /// The disk is at work.
    Disk,
    /// A piece can be asked for.
    Ask,
    /// A piece was asked for, at this time.
    Asked(u64),
}

impl Snapshots {
    /// `member` counts from 0 of `members`.
    pub(super) fn new(
        held: Held,
        newest_step: u64,
        interval: u64,
        member: u64,
        members: u64,
    ) -> Self {
        let counts =
            SnapshotCounts { newest: held.newest.unwrap_or(0), ..SnapshotCounts::default() };
        let due = interval / members * (member + 1);
        // A crash may have come between a snapshot and what it allows to drop.
        let base = held.previous.unwrap_or(0);
        let compact = held.previous;
        Self { held, newest_step, base, due: due.max(1), compact, counts, ..Self::default() }
    }

    /// The machine lacks what the log no longer has.
    pub(super) fn starve(&mut self) {
        self.starving = true;
    }

    pub(super) fn is_starving(&self) -> bool {
        self.starving
    }

    /// An entry was handed to the machine.
    pub(super) fn note_entry(&mut self, bytes: usize) {
        self.since += bytes as u64;
    }

    /// The oldest snapshot that somebody fetches: it and the log after it are kept.
    fn pinned(&self) -> Option<u64> {
        self.fetchers.values().map(|(index, _)| *index).min()
    }

    /// Whether one is due when `agreed` is the newest step that a majority agreed on.
    fn is_due(&self, agreed: u64) -> bool {
        let by_itself = self.since >= self.due && self.newest_step <= agreed;
        !self.busy && !self.starving && (self.wanted || by_itself)
    }

    /// What follows the newest is too much for a peer: it needs a newer one, agreed on or not.
    pub(super) fn want_if_long_ago(&mut self) {
        self.wanted |= self.since >= self.due;
    }

    /// Puts out a job that is not about snapshots of this replica's own accord.
    pub(super) fn add_job(&mut self, job: Job) {
        self.jobs.push_back(job);
    }
}

impl<E: Engine> Replica<E> {
    /// A snapshot is due now, whatever the log's length.
    pub fn want_snapshot(&mut self) {
        self.snapshots.wanted = true;
    }

    /// The next job for whoever keeps the files.
    pub fn poll_job(&mut self) -> Option<Job> {
        self.snapshots.jobs.pop_front()
    }

    /// Counts for operators.
    pub fn snapshot_counts(&self) -> SnapshotCounts {
        self.snapshots.counts
    }

    /// Whether this replica waits for a snapshot from a peer.
    pub fn is_behind(&self) -> bool {
        self.snapshots.starving || self.snapshots.fetch.is_some()
    }

    /// A job has ended.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn handle_done(&mut self, done: Done) -> Result<(), ReplicaError> {
        let Some(done) = self.put_aside(done) else {
            return Ok(());
        };
        match done {
            Done::Written(Ok((head, bytes))) => {
                self.snapshots.busy = false;
                self.snapshots.failed = false;
                self.snapshots.counts.written += 1;
                self.snapshots.counts.bytes = bytes;
                self.hold(head.index, head.step);
            }
            Done::Written(Err(error)) => {
                tracing::error!(%error, "a snapshot could not be written; the log is kept");
                self.snapshots.busy = false;
                self.snapshots.failed = true;
                self.snapshots.counts.failed += 1;
                // The next attempt comes after some more log, not at once.
                self.snapshots.since = 0;
            }
            Done::Piece { reader: Reader::Peer(peer), index, offset, result } => {
                self.piece_read(peer, index, offset, result);
            }
            Done::Piece { reader: Reader::Client(id), result, .. } => {
                let result = result.map_err(|error| error.to_string());
                self.outputs.push_back(Output::Piece { id: ReadId(id), result });
            }
            Done::Fetched { index, result } => self.fetched(index, result),
            Done::Evidence { step, result } => self.evidence_kept(step, result),
            // Whoever is about to stop begins nothing new.
            Done::Finished { .. } if self.has_diverged() => {}
            Done::Finished { index, result } => match result {
                Ok(loaded) => self.install(*loaded)?,
                Err(error) => {
                    tracing::warn!(%error, "a snapshot that was fetched is refused");
                    self.snapshots.fetch.take_if(|fetch| fetch.index == index);
                }
            },
        }
        Ok(())
    }

    /// A newer snapshot is durable.
    fn hold(&mut self, index: u64, step: u64) {
        let held = &mut self.snapshots.held;
        if held.newest.is_none_or(|newest| newest < index) {
            *held = Held { newest: Some(index), previous: held.newest };
            self.snapshots.newest_step = step;
        }
        self.snapshots.counts.newest = index;
        self.snapshots.compact = held.previous;
    }

    /// Asks the machine for a snapshot if one is due, and takes the one that it made.
    pub(super) fn snapshot_if_due(&mut self) {
        let agreed = self.machine.agreed_step().map_or(0, |step| step.0);
        if self.snapshots.newest_step <= agreed {
            self.snapshots.base = self.snapshots.held.newest.unwrap_or(0);
        }
        if self.snapshots.is_due(agreed) && !self.has_diverged() {
            self.snapshots.busy = true;
            self.snapshots.wanted = false;
            self.machine.request_snapshot();
        }
        let Some((snapshot, waiting)) = self.machine.poll_snapshot() else {
            return;
        };
        if self.has_diverged() {
            // It was asked for before. What is wrong is out of the way already, and this came after.
            return;
        }
        let skipped = u64::from(self.has_planted(PlantedBug::SnapshotSkipsEntry));
        let index = self.applied - waiting as u64 + skipped;
        self.snapshots.since = 0;
        self.snapshots.due = self.settings.snapshot_bytes;
        if self.snapshots.held.newest.is_some_and(|newest| newest >= index) {
            self.snapshots.busy = false;
            return;
        }
        let newest = self.snapshots.held.newest.unwrap_or(0).min(self.snapshots.base);
        let keep_from = self.snapshots.pinned().map_or(newest, |pinned| pinned.min(newest));
        self.snapshots.jobs.push_back(Job::Write { index, snapshot, keep_from });
    }

    /// Drops what no restart needs from the log, once that is possible.
    pub(super) fn compact_log(&mut self) -> Result<(), ReplicaError> {
        let Some(wanted) = self.snapshots.compact.filter(|_| !self.has_diverged()) else {
            return Ok(());
        };
        // What the machine has yet to apply, and what a fetcher will need next, is kept.
        let needed = self.snapshots.pinned().unwrap_or(u64::MAX);
        let too_far = self.has_planted(PlantedBug::TrimTooFar);
        let most = if too_far { u64::MAX } else { wanted.min(self.snapshots.base) };
        let index = most.min(self.applied).min(self.node.decided_index()).min(needed);
        if self.node.compact(index)? && index == wanted {
            self.snapshots.compact = None;
        }
        Ok(())
    }

    /// Whether a snapshot is being taken or written.
    pub(super) fn snapshot_is_under_way(&self) -> bool {
        self.snapshots.busy
    }

    /// A snapshot that could not be written is due again, although no log has come since.
    pub(super) fn try_a_failed_snapshot_again(&mut self) {
        self.snapshots.wanted |= self.snapshots.failed;
    }

    /// Goes on from a snapshot that was fetched.
    fn install(&mut self, loaded: Loaded) -> Result<(), ReplicaError> {
        let index = loaded.head.index;
        self.snapshots.fetch = None;
        let first = self.node.first_index();
        if index <= self.applied || index < first {
            return Ok(());
        }
        let needed = self.snapshots.starving || index > self.node.decided_index();
        if !needed {
            // The log came along meanwhile. The file is one more snapshot that restarts can use.
            self.hold(index, loaded.head.step);
            return Ok(());
        }
        self.machine.replace(loaded.snapshot)?;
        if index > self.node.decided_index() {
            self.node.install(index, paxos_ballot(self.machine.ballot()))?;
        }
        self.applied = index;
        self.counting = self.machine.ballot();
        self.snapshots.starving = false;
        self.snapshots.busy = false;
        self.snapshots.since = 0;
        self.snapshots.counts.installed += 1;
        self.hold(index, loaded.head.step);
        self.outstanding.resend_all();
        self.outputs.push_back(Output::Replaced);
        self.compile_what_is_missing();
        tracing::info!(index, step = loaded.head.step, "a snapshot of a peer is installed");
        Ok(())
    }

    /// Asks for code that the state needs and this replica's engine does not have.
    pub(super) fn compile_what_is_missing(&mut self) {
        for (class, code) in self.machine.code_to_compile(self.node.config().replica) {
            self.outputs.push_back(Output::Effect(Effect::Compile { class, code }));
        }
    }
}
