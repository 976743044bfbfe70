//! Taking the lead from a leader whose process is gone, well before its heartbeats are missed.
//!
//! The shell hears that a peer is gone when the peer's host says that nobody listens there. A member
//! alone in knowing so disturbs nobody but a dead leader; all of them at once would depose each other,
//! so each waits for those with lower ids.
//! Whoever could not lead at once leaves it to the next.
//! Invariant: only a leader that this replica follows is taken over from, and once for each ballot.
//! Not here: leaders that fall silent, which the election of omnipaxos misses by itself.

use gesmas_machine::Engine;

use super::{Replica, ReplicaError};
use crate::paxos::Ballot;

/// Ticks that a member waits for each one before it: enough to be heard of as the leader.
const TICKS: u64 = 5;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    /// The ballot of the leader that is to be taken over from, and in how many ticks.
    next: Option<(Ballot, u64)>,
    /// How often this replica has tried.
    times: u64,
}

impl<E: Engine> Replica<E> {
    /// A peer's process is gone: its host is there, and nobody listens.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn handle_gone(&mut self, peer: u64) -> Result<(), ReplicaError> {
        if self.stands_still() || !self.is_admitted() {
            return Ok(());
        }
        let Some(leader) = self.node.leader().filter(|leader| leader.replica == peer) else {
            return Ok(());
        };
        let own = self.node.config().replica;
        let before = self.peers().into_iter().filter(|other| *other != peer && *other < own);
        self.takeover.next = Some((leader.ballot, before.count() as u64 * TICKS));
        self.take_over_when_due()
    }

    /// How often this replica has taken over from a leader whose process was gone, or tried to.
    pub fn takeovers(&self) -> u64 {
        self.takeover.times
    }

    /// Lets a tick pass.
    pub(super) fn takeover_tick(&mut self) -> Result<(), ReplicaError> {
        if let Some((_, ticks)) = &mut self.takeover.next {
            *ticks = ticks.saturating_sub(1);
        }
        self.take_over_when_due()
    }

    fn take_over_when_due(&mut self) -> Result<(), ReplicaError> {
        let Some((ballot, ticks)) = self.takeover.next else { return Ok(()) };
        if self.node.promised_ballot() != ballot {
            // Somebody else was faster.
            self.takeover.next = None;
        } else if ticks == 0 {
            self.takeover.next = None;
            if self.is_behind() || self.has_diverged() {
                // It would keep all others waiting; one of them is next.
                return Ok(());
            }
            self.takeover.times += 1;
            tracing::info!(leader = ballot.replica, "the leader's process is gone: taking over");
            self.node.take_lead()?;
        }
        Ok(())
    }
}
