//! Who may vote: a replica that lost its disk may not.
//!
//! ```text
//! empty disk: Introduce{disk} to all ─► each notes it durably: Consent ─► all consent: Admitted
//!                                     └ knows another disk of this replica: Stranger ─► stop
//! ```
//!
//! A replica whose log is new draws a number for its disk and asks all other members. Each notes it
//! before it answers, for good. So whoever has ever voted is known with its disk by every other
//! member, and cannot come back with an empty one: what it promised and accepted would be forgotten,
//! and two values could be decided in one place of the log.
//! Until it is admitted, a replica takes no part in Paxos. A cluster is founded when all members have
//! seen each other once; from then on a majority is enough, as always.
//! Not here: getting a lost replica back, for which docs/operations.md has the ways.

use std::collections::BTreeSet;

use gesmas_machine::Engine;

use super::{Replica, ReplicaError, peer::PeerMessage};
use crate::{
    log::{Call, LogError},
    paxos::SharedLog,
};

/// How far this replica is with being admitted.
#[derive(Debug, Default)]
pub(super) struct Admission {
    admitted: bool,
    disk: u128,
    consents: BTreeSet<u64>,
}

impl Admission {
    /// Reads from the log whether this replica may vote, and notes `disk` in a new one.
    pub(super) fn read(
        log: &SharedLog,
        config: &crate::paxos::NodeConfig,
        disk: u128,
    ) -> Result<Self, LogError> {
        let instance = config.instance();
        let mut log = crate::paxos::lock(log);
        if let Some(disk) = log.disk(instance, config.replica) {
            let admitted = log.is_admitted(instance);
            return Ok(Self { admitted, disk, consents: BTreeSet::new() });
        }
        log.record(instance, &Call::Disk { replica: config.replica, disk })?;
        Ok(Self { admitted: false, disk, consents: BTreeSet::new() })
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.admitted
    }
}

impl<E: Engine> Replica<E> {
    /// Whether this replica may vote, which all other members have to agree to once.
    pub fn is_admitted(&self) -> bool {
        self.admission.is_admitted()
    }

    /// Asks those who have not consented yet.
    pub(super) fn introduce(&mut self) {
        if self.admission.admitted {
            return;
        }
        let disk = self.admission.disk;
        for peer in self.peers() {
            if !self.admission.consents.contains(&peer) {
                // Not before the number is durable here: after a crash it would be another one, and
                // whoever has noted this one would refuse that for good.
                self.late_outgoing.push((peer, PeerMessage::Introduce { disk }));
            }
        }
    }

    /// A member with a new log asks. The answer waits until what it says is durable.
    pub(super) fn introduced(&mut self, from: u64, disk: u128) -> Result<(), ReplicaError> {
        let instance = self.node.config().instance();
        let mut log = crate::paxos::lock(&self.log);
        let answer = match log.disk(instance, from) {
            Some(known) if known != disk => PeerMessage::Stranger { disk },
            Some(_) => PeerMessage::Consent { disk },
            None => {
                log.record(instance, &Call::Disk { replica: from, disk })?;
                PeerMessage::Consent { disk }
            }
        };
        drop(log);
        self.late_outgoing.push((from, answer));
        Ok(())
    }

    /// A member knows this disk now.
    pub(super) fn consented(&mut self, from: u64, disk: u128) -> Result<(), ReplicaError> {
        if self.admission.admitted || disk != self.admission.disk {
            return Ok(());
        }
        self.admission.consents.insert(from);
        let peers = self.peers();
        if peers.iter().all(|peer| self.admission.consents.contains(peer)) {
            let instance = self.node.config().instance();
            crate::paxos::lock(&self.log).record(instance, &Call::Admitted)?;
            self.admission.admitted = true;
            for peer in peers {
                self.node.reconnected(peer)?;
            }
        }
        Ok(())
    }

    /// A member knows this replica with another disk.
    pub(super) fn refused(&mut self, from: u64, disk: u128) -> Result<(), ReplicaError> {
        if self.admission.admitted || disk != self.admission.disk {
            return Ok(());
        }
        Err(ReplicaError::LostDisk { replica: self.node.config().replica, peer: from })
    }
}
