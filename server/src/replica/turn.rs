//! The end of a turn: what was decided is ordered and sent, the log is made durable, and the next begins.
//!
//! ```text
//! close_turn ─► sync ──────────────────────────────────────► open_turn
//!            └► handle_meanwhile, work, handle_meanwhile, … ─┘
//! ```
//!
//! Making the log durable may take place on another thread. Meanwhile the machine may work on what it
//! has: entries that were decided and durable before. And a leader takes one kind of input: a follower
//! has accepted entries that were durable here before. So a reply never waits for the sync of what was
//! ordered after it.
//! Invariants: between `close_turn` and `open_turn` nothing else touches the node (which asserts it) or
//! the log; late messages leave only when the log is durable.
//! Not here: what a turn takes in (`mod.rs`), and which thread does what.

use bytes::Bytes;
use gesmas_machine::Engine;

use super::{Replica, ReplicaError, peer};
use crate::{
    log::LogError,
    paxos::{self, SharedLog},
};

impl<E: Engine> Replica<E> {
    /// Ends the inputs of the turn, orders what waits and sends what need not be durable. False if the
    /// replica stands still; otherwise the log must be made durable, and [`Replica::open_turn`] told.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn close_turn(&mut self, send: &mut dyn FnMut(u64, Bytes)) -> Result<bool, ReplicaError> {
        if self.stands_still() {
            return Ok(false);
        }
        self.follow_leader();
        self.dispatch_outstanding();
        self.dispatch_reads();
        self.lead()?;
        let early = self.node.take_early_messages();
        self.send_paxos(early, send);
        for (peer, message) in std::mem::take(&mut self.outgoing) {
            send(peer, peer::encode(&self.node, peer, &message));
        }
        Ok(true)
    }

    /// What has to be made durable between two turns, by [`paxos::sync`]; none if there is nothing.
    pub fn unsynced_log(&self) -> Option<SharedLog> {
        (paxos::needs_sync(&self.log) && !self.forgets_to_sync()).then(|| self.log.clone())
    }

    /// Takes the frame of a peer while the log is made durable, if that is possible, and hands the
    /// machine what is decided by it. False if the frame has to wait for the next turn, with all that
    /// come after it from this peer.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn handle_meanwhile(
        &mut self,
        from: u64,
        body: &Bytes,
        send: &mut dyn FnMut(u64, Bytes),
    ) -> Result<bool, ReplicaError> {
        if self.stands_still() || !self.is_admitted() || !self.is_leading() {
            return Ok(false);
        }
        let Some(message) = peer::decode_short_paxos(body) else { return Ok(false) };
        if message.from() != from || !self.node.can_settle(&message) {
            return Ok(false);
        }
        let early = self.node.settle(message)?;
        self.send_paxos(early, send);
        self.take_decided_early()?;
        Ok(true)
    }

    /// Begins the next turn, once the log is durable or could not be made so: sends what had to wait
    /// for that, and hands decided entries to the machine.
    ///
    /// # Errors
    /// When the replica must stop.
    pub fn open_turn(
        &mut self,
        synced: Result<(), LogError>,
        send: &mut dyn FnMut(u64, Bytes),
    ) -> Result<(), ReplicaError> {
        if !self.found_room(synced)? {
            self.standstill.leave_unfinished();
            return Ok(());
        }
        for (peer, message) in std::mem::take(&mut self.late_outgoing) {
            send(peer, peer::encode(&self.node, peer, &message));
        }
        let late = self.node.take_late_messages();
        self.send_paxos(late, send);
        self.stand_still_if_full();
        self.take_decided()
    }

    fn send_paxos(
        &mut self,
        messages: Vec<paxos::PeerPaxosMessage>,
        send: &mut dyn FnMut(u64, Bytes),
    ) {
        for message in messages {
            let to = message.to();
            match peer::encode_paxos(message) {
                Ok(body) => send(to, body),
                // What it lacks does not fit into a frame: it has to catch up by a snapshot.
                Err(error) => {
                    tracing::info!(replica = to, %error, "a peer gets a snapshot instead");
                    self.snapshots.want_if_long_ago();
                    self.peer_is_behind(to);
                }
            }
        }
    }
}
