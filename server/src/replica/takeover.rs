//! Taking the lead from a leader: when its process is gone, well before its heartbeats are missed, and
//! when an operator asks a replica to.
//!
//! The shell hears that a peer is gone when the peer's host says that nobody listens there. A member
//! alone in knowing so disturbs nobody but a dead leader; all of them at once would depose each other,
//! so each waits for those with lower ids.
//! Whoever could not lead at once leaves it to the next; so does whoever hears of no majority, since a
//! ballot that nobody hears of shuts its replica out from those who elect another leader.
//! A leader that lives learns of the higher ballot, steps down and follows; what it had ordered and not
//! decided is ordered again by those who wait for it.
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

/// Decided entries that a replica which is asked to lead may still have to apply.
const BACKLOG_MAX: u64 = 1_000;

/// Why a replica does not take the lead that it is asked to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTakingLead {
    /// It has it.
    #[error("this replica leads already")]
    Leads,
    /// Nobody has it.
    #[error("there is no leader to take over from: one is being elected")]
    NoLeader,
    /// It would keep all others waiting until it has caught up.
    #[error("this replica is behind")]
    Behind,
    /// Its disk is full, or its state is not the group's.
    #[error("this replica turns its clients away")]
    TurnsAway,
    /// The others have not let it vote yet.
    #[error("this replica is not admitted yet")]
    NotAdmitted,
    /// Nobody would follow it.
    #[error("this replica hears of no majority")]
    NoMajority,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Takeover {
    /// The ballot of the leader that is to be taken over from, and in how many ticks.
    next: Option<(Ballot, u64)>,
    /// How often this replica has tried because a leader was gone.
    times: u64,
    /// How often because it was asked to.
    transfers: u64,
    /// Whether the next is one that was asked for.
    asked: bool,
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
            self.asked = false;
        }
    }

    /// An operator asks for it: at the next tick.
    fn ask(&mut self, ballot: Ballot) {
        self.next = Some((ballot, 0));
        self.asked = true;
    }

    /// Lets a tick pass.
    fn tick(&mut self) {
        self.now += 1;
        if let Some((_, ticks)) = &mut self.next {
            *ticks = ticks.saturating_sub(1);
        }
    }

    /// How many peers are there.
    fn peers(&self) -> usize {
        self.heard.values().filter(|heard| **heard + RECENT >= self.now).count()
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
        self.takeover.asked = false;
        self.takeover.wait(leader.ballot, before.count() as u64 * TICKS);
        self.take_over_when_due()
    }

    /// Takes the lead at the next tick, because an operator asks for it. Whether it comes to that shows
    /// in who leads then.
    ///
    /// # Errors
    /// [`NotTakingLead`] says why it would be of no use, or harm.
    pub fn handle_take_lead(&mut self) -> Result<(), NotTakingLead> {
        let backlog = self.node.decided_index().saturating_sub(self.applied());
        if self.turns_away() {
            return Err(NotTakingLead::TurnsAway);
        }
        if !self.is_admitted() {
            return Err(NotTakingLead::NotAdmitted);
        }
        if self.takeover.peers() + 1 < self.majority() {
            return Err(NotTakingLead::NoMajority);
        }
        let leader = self.node.leader().ok_or(NotTakingLead::NoLeader)?;
        if leader.replica == self.node.config().replica {
            let leads = self.is_leading();
            return Err(if leads { NotTakingLead::Leads } else { NotTakingLead::NoLeader });
        }
        if self.is_behind() || backlog > BACKLOG_MAX {
            return Err(NotTakingLead::Behind);
        }
        self.takeover.ask(leader.ballot);
        Ok(())
    }

    /// How often this replica has tried to take the lead because it was asked to.
    pub fn transfers(&self) -> u64 {
        self.takeover.transfers
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
            let asked = self.takeover.asked;
            let peers = if asked {
                self.takeover.peers()
            } else {
                self.takeover.peers_besides(ballot.replica)
            };
            let majority = peers + 1 >= self.majority();
            if self.is_behind() || self.has_diverged() || !majority {
                // It would keep all others waiting; one of them is next.
                return Ok(());
            }
            if asked {
                self.takeover.transfers += 1;
                tracing::info!(leader = ballot.replica, "taking the lead, as an operator asked");
            } else {
                self.takeover.times += 1;
                tracing::info!(
                    leader = ballot.replica,
                    "the leader's process is gone: taking over"
                );
            }
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
