//! Standing still: what a replica does while it cannot make the next file of its log, since its disk has no
//! room or its process has no file descriptor left.
//!
//! It takes part in nothing: no ticks for the node, no frames, no commands, no reads. Its peers miss
//! its heartbeats and go on without it; its clients go elsewhere. Every now and then it looks whether
//! the file can be made, and first gives back what it can itself.
//! Invariants: it stands still between two turns, or in the middle of one whose record found no room;
//! nothing of that one leaves before it is durable. Frames that came meanwhile are lost, so all
//! connections with peers must be made anew before it goes on with them.
//! Not here: how the log notices it.

use gesmas_machine::{Engine, PlantedBug};

use super::{Replica, ReplicaError};
use crate::{log::LogError, paxos, snapshot::Done};

/// Time between two looks, nanoseconds: each tries to write a whole file.
const LOOK_AGAIN: u64 = 1_000_000_000;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    /// Since when it stands still, and when it last looked, monotonic nanoseconds.
    since: Option<(u64, u64)>,
    /// Whether a turn waits in the middle: its record found no room.
    unfinished: bool,
    /// Whether connections with peers are to be made anew.
    reconnect: bool,
    /// How often it has stood still.
    times: u64,
    /// The end of a fetch that came meanwhile.
    fetched: Option<Done>,
}

impl Standstill {
    /// Whether a turn waits in the middle.
    pub(super) fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// A turn found no room: it waits, and with it the node.
    pub(super) fn leave_unfinished(&mut self) {
        self.unfinished = true;
    }
}

impl<E: Engine> Replica<E> {
    /// Whether this replica stands still because it cannot make the next file of its log.
    pub fn stands_still(&self) -> bool {
        self.standstill.since.is_some()
    }

    /// How often this replica has stood still.
    pub fn standstills(&self) -> u64 {
        self.standstill.times
    }

    /// Whether all connections with peers, both ways, are to be ended now: frames were lost.
    pub fn take_reconnect(&mut self) -> bool {
        std::mem::take(&mut self.standstill.reconnect)
    }

    /// Puts the end of a fetch aside that comes while this replica stands still: the node takes
    /// nothing then. Returns whatever else ended.
    pub(super) fn put_aside(&mut self, done: Done) -> Option<Done> {
        if self.stands_still() && matches!(done, Done::Finished { .. }) {
            self.standstill.fetched = Some(done);
            return None;
        }
        Some(done)
    }

    /// Makes the turn durable.
    pub(super) fn sync(&self) -> Result<(), LogError> {
        if self.forgets_to_sync() { Ok(()) } else { paxos::sync(&self.log) }
    }

    /// Whether a planted bug leaves a sync out.
    pub(super) fn forgets_to_sync(&self) -> bool {
        self.has_planted(PlantedBug::AcknowledgedBeforeSync)
            && !(self.now.monotonic / 20_000_000).is_multiple_of(16)
    }

    /// Whether there was room to make the turn durable; stands still if not.
    pub(super) fn found_room(
        &mut self,
        synced: Result<(), LogError>,
    ) -> Result<bool, ReplicaError> {
        match synced {
            Ok(()) => Ok(true),
            Err(error) if error.passes() => {
                self.stand_still(&error.to_string());
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Stands still if the turn that has just ended took the last room of the current file but what
    /// giving files back may need, and there can be no next one.
    pub(super) fn stand_still_if_full(&mut self) {
        if let Some(lack) = paxos::lack(&self.log) {
            self.stand_still(&lack);
        }
    }

    fn stand_still(&mut self, why: &str) {
        if self.standstill.since.is_none() {
            tracing::error!(
                why,
                "this replica stands still until it can make the next file of its log"
            );
            self.standstill.since = Some((self.now.monotonic, self.now.monotonic));
            self.standstill.times += 1;
        }
    }

    /// Looks whether there is room again. True when the replica goes on.
    pub(super) fn try_to_go_on(&mut self) -> Result<bool, ReplicaError> {
        let now = self.now.monotonic;
        let Some((since, looked)) = self.standstill.since else { return Ok(true) };
        if now.saturating_sub(looked) < LOOK_AGAIN {
            return Ok(false);
        }
        if self.snapshot_is_under_way() {
            // A look takes all the room there is for a moment, and the snapshot may be what helps.
            return Ok(false);
        }
        self.standstill.since = Some((since, now));
        self.forget_fetchers();
        self.try_a_failed_snapshot_again();
        if !self.standstill.unfinished {
            self.compact_log()?;
        }
        let synced = self.sync();
        if !self.found_room(synced)? || !paxos::make_room(&self.log)? {
            return Ok(false);
        }
        if std::mem::take(&mut self.standstill.unfinished) {
            // Its messages are as lost as those that came meanwhile.
            drop(self.node.take_late_messages());
        }
        self.outgoing.clear();
        self.late_outgoing.clear();
        self.standstill.since = None;
        self.standstill.reconnect = true;
        let seconds = now.saturating_sub(since) / 1_000_000_000;
        tracing::info!(seconds, "the next file of the log can be made, and this replica goes on");
        if let Some(done) = self.standstill.fetched.take() {
            self.handle_done(done)?;
        }
        Ok(true)
    }
}
