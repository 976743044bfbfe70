//! What is decided reaches the machine, and what the machine does reaches the outputs.
//!
//! Invariants: entries are handed over in order, each once; a read is served only when everything below
//! its read point is applied.
//! Not here: what comes before an entry is decided (`mod.rs`, `leadership.rs`).

use gesmas_machine::{Effect, Engine, LogEntry, Progress, Refusal};

use super::{Output, Replica, ReplicaError};

/// Entries handed to the machine that it has not begun; more wait in the log.
const BACKLOG: usize = 64;
/// Bytes of entries read from the log at once.
const READ_BYTES: u64 = 8 << 20;

impl<E: Engine> Replica<E> {
    /// Lets the machine work for about `budget` segments, hands it what is decided when it is idle, and
    /// serves reads when it is idle then.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn apply(&mut self, budget: u32) -> Result<Progress, ReplicaError> {
        let progress = self.run_machine(budget);
        if progress == Progress::Idle {
            self.take_decided()?;
            if !self.machine.is_idle() {
                return Ok(Progress::More);
            }
            self.serve_reads();
        }
        Ok(progress)
    }

    /// Lets the machine work for about `budget` segments on what it has, and serves reads when it is
    /// idle: what may be done while the log is made durable.
    pub fn work(&mut self, budget: u32) -> Progress {
        let progress = self.run_machine(budget);
        if progress == Progress::Idle {
            self.serve_reads();
        }
        progress
    }

    fn run_machine(&mut self, budget: u32) -> Progress {
        let progress = self.machine.run(budget);
        self.snapshot_if_due();
        while let Some(effect) = self.machine.poll_effect() {
            if effect == Effect::BatchVoid {
                self.outstanding.resend_all();
            }
            self.compare(&effect);
            // What another state brings forth is for nobody.
            if !self.has_diverged() {
                self.outputs.push_back(Output::Effect(effect));
            }
        }
        progress
    }

    /// Hands the machine what was decided by what this turn has heard, before the turn ends: replies to
    /// it need not wait for the sync of what is ordered next. Only entries that were durable here
    /// before: those of this turn wait for its end. [`Replica::work`] or [`Replica::apply`] comes after
    /// it.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn take_decided_early(&mut self) -> Result<(), ReplicaError> {
        if self.stands_still() {
            return Ok(());
        }
        self.take_decided_below(self.node.durable_index())
    }

    /// Everything that was handed to the machine is applied.
    fn serve_reads(&mut self) {
        if self.snapshots.is_starving() || self.has_diverged() {
            return;
        }
        for (id, question) in self.local_reads.take_ready(self.applied) {
            if self.machine.position() < question.seen {
                // Whatever was acknowledged before the read came is applied, unless it took the state
                // as it is: then nobody can have seen more.
                if question.stale {
                    self.local_reads.ask_first(id, question);
                } else {
                    self.outputs.push_back(Output::NotSeen { id });
                }
                continue;
            }
            let Some(read) = &question.read else {
                self.outputs.push_back(Output::CaughtUp { id });
                continue;
            };
            match self.machine.read(read.clone()) {
                // What the read follows is on its way here.
                Err(Refusal::OutOfOrder { .. }) => self.local_reads.put_back(id, question),
                result => self.outputs.push_back(Output::Read { id, result }),
            }
        }
    }

    /// Hands decided entries to the machine while it has room.
    pub(super) fn take_decided(&mut self) -> Result<(), ReplicaError> {
        self.take_decided_below(u64::MAX)
    }

    fn take_decided_below(&mut self, end: u64) -> Result<(), ReplicaError> {
        // What is decided in a turn that is not durable yet waits for the end of the turn.
        if self.snapshots.is_starving() || self.standstill.is_unfinished() {
            return Ok(());
        }
        while self.machine.backlog() < BACKLOG {
            let most = end.saturating_sub(self.applied).min(BACKLOG as u64) as usize;
            let entries = self.node.read_decided(self.applied, most, READ_BYTES)?;
            if entries.is_empty() {
                break;
            }
            for (index, bytes) in entries {
                let entry = LogEntry::decode(&bytes)
                    .map_err(|error| ReplicaError::Entry { index, error })?;
                self.snapshots.note_entry(bytes.len());
                self.note_entry(&entry);
                self.machine.handle_entry(entry)?;
                self.applied = index + 1;
            }
        }
        Ok(())
    }

    /// Forgets commands that are in a batch that counts.
    fn note_entry(&mut self, entry: &LogEntry) {
        match entry {
            LogEntry::Genesis(_) => {}
            LogEntry::LeaderStart { ballot, .. } => self.counting = self.counting.max(*ballot),
            LogEntry::Batch(batch) if batch.ballot == self.counting => {
                self.note_applied(&batch.commands);
            }
            LogEntry::Batch(_) => {}
        }
    }
}
