//! Taking the lead from a leader whose process is gone, well before its heartbeats are missed.
//!
//! The shell hears that a peer is gone when the peer's host says that nobody listens there. A member
//! alone in knowing so disturbs nobody but a dead leader; all of them at once would depose each other,
//! so each waits for those with lower ids.
//! Whoever could not lead at once leaves it to the next; so does whoever hears of no majority, since a
//! ballot that nobody hears of shuts its replica out from those who elect another leader.
//! Invariant: only a leader that this replica follows is taken over from, and once for each ballot.
//! Not here: leaders that fall silent, which the election of omnipaxos misses by itself.

use std::collections::BTreeMap;

use gesmas_machine::Engine;

use super::{Replica, ReplicaError};
use crate::paxos::Ballot;

/// Ticks that a member waits for each one before it: enough to be heard of as the leader.
const TICKS: u64 = 5;
/// Ticks for which a peer that said something counts as there; it says something at every tick.
const RECENT: u64 = 4;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    /// The ballot of the leader that is to be taken over from, and in how many ticks.
    next: Option<(Ballot, u64)>,
    /// How often this replica has tried.
    times: u64,
    /// Ticks that have passed.
    now: u64,
    /// When peers were heard of last, in ticks.
    heard: BTreeMap<u64, u64>,
}

impl Takeover {
    /// A peer says something.
    pub(super) fn hear(&mut self, peer: u64) {
        self.heard.insert(peer, self.now);
    }

    /// Begins to wait until the leader with this ballot may be taken over from. Who is told twice
    /// does not begin anew.
    fn wait(&mut self, ballot: Ballot, ticks: u64) {
        if self.next.is_none_or(|(known, _)| known != ballot) {
            self.next = Some((ballot, ticks));
        }
    }

    /// Lets a tick pass.
    fn tick(&mut self) {
        self.now += 1;
        if let Some((_, ticks)) = &mut self.next {
            *ticks = ticks.saturating_sub(1);
        }
    }

    /// How many peers besides one are there, as far as this replica has heard.
    fn peers_besides(&self, gone: u64) -> usize {
        let there = |(peer, heard): &(&u64, &u64)| **peer != gone && **heard + RECENT >= self.now;
        self.heard.iter().filter(there).count()
    }
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
        self.takeover.wait(leader.ballot, before.count() as u64 * TICKS);
        self.take_over_when_due()
    }

    /// How often this replica has taken over from a leader whose process was gone, or tried to.
    pub fn takeovers(&self) -> u64 {
        self.takeover.times
    }

    /// Lets a tick pass.
    pub(super) fn takeover_tick(&mut self) -> Result<(), ReplicaError> {
        self.takeover.tick();
        self.take_over_when_due()
    }

    fn take_over_when_due(&mut self) -> Result<(), ReplicaError> {
        let Some((ballot, ticks)) = self.takeover.next else { return Ok(()) };
        if self.node.promised_ballot() != ballot {
            // Somebody else was faster.
            self.takeover.next = None;
        } else if ticks == 0 {
            self.takeover.next = None;
            let majority = self.takeover.peers_besides(ballot.replica) + 1 >= self.majority();
            if self.is_behind() || self.has_diverged() || !majority {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ballot(number: u32) -> Ballot {
        Ballot { configuration: 1, number, priority: 0, replica: 3 }
    }

    #[test]
    fn who_is_told_twice_waits_no_longer() {
        let mut takeover = Takeover::default();
        takeover.wait(ballot(1), 2);
        takeover.tick();
        takeover.wait(ballot(1), 2);
        takeover.tick();
        assert_eq!(takeover.next, Some((ballot(1), 0)));
        takeover.wait(ballot(2), 2);
        assert_eq!(takeover.next, Some((ballot(2), 2)), "this is another leader");
    }

    #[test]
    fn only_peers_that_spoke_lately_count() {
        let mut takeover = Takeover::default();
        assert_eq!(takeover.peers_besides(3), 0, "it has heard of nobody yet");
        takeover.hear(2);
        takeover.hear(3);
        assert_eq!(takeover.peers_besides(3), 1, "the one that is gone does not vote");
        (0..RECENT).for_each(|_| takeover.tick());
        assert_eq!(takeover.peers_besides(3), 1);
        takeover.tick();
        assert_eq!(takeover.peers_besides(3), 0);
        takeover.hear(1);
        assert_eq!(takeover.peers_besides(3), 1);
    }
}
