//! What a driver does while another thread makes the log durable: the kernel works, sockets are read,
//! and what lets a leader reply at once is taken.
//!
//! Invariant: nothing that is taken overtakes what came before it from the same peer, or what says that
//! a connection came or went.
//! Not here: which inputs a leader can take then (`gesmas::replica`, `handle_meanwhile`).

use super::{Driver, TURN_INPUTS, send};
use crate::{
    log::LogError,
    paxos::{self, SharedLog},
    replica::ReplicaError,
    shell::input::{Input, Inputs},
};

impl Driver {
    /// Lets another thread make the log durable, and does what can be done meanwhile. The outer error is
    /// that of the core.
    pub(super) async fn sync_beside(
        &mut self,
        log: &SharedLog,
        inputs: &mut Inputs,
    ) -> Result<Result<(), LogError>, ReplicaError> {
        let syncing = match paxos::begin_sync(log) {
            Ok(Some(syncing)) => syncing,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        };
        let mut done = self.syncer.begin(syncing);
        self.work();
        let mut arrived = std::mem::take(&mut self.arrived);
        let mut more = true;
        let ended = loop {
            let room = TURN_INPUTS.saturating_sub(self.later.len());
            tokio::select! {
                biased;
                synced = &mut done => {
                    let synced = synced.expect("the thread that makes the log durable does not panic");
                    break paxos::end_sync(log, synced);
                }
                count = inputs.recv_many(&mut arrived, room), if more && room > 0 => {
                    more = count > 0;
                    self.take_meanwhile(&mut arrived)?;
                }
            }
        };
        self.arrived = arrived;
        Ok(ended)
    }

    /// Takes what a leader can take while its log is made durable; the rest waits for the next turn, in
    /// its order.
    fn take_meanwhile(&mut self, arrived: &mut Vec<Input>) -> Result<(), ReplicaError> {
        let mut taken = 0;
        for input in arrived.drain(..) {
            if self.is_taken_meanwhile(&input)? {
                taken += 1;
            } else {
                self.later.push(input);
            }
        }
        if taken > 0 {
            self.inputs += taken;
            self.work();
        }
        Ok(())
    }

    fn is_taken_meanwhile(&mut self, input: &Input) -> Result<bool, ReplicaError> {
        let Input::Peer { peer, connection, body } = input else { return Ok(false) };
        let current = self.links.get(peer).is_some_and(|link| link.connection == *connection);
        // Nothing of a peer overtakes what came from it or about it.
        let overtakes = self.later.iter().any(|other| match other {
            Input::Client(..) | Input::Tick => false,
            Input::Peer { peer: other, .. } => other == peer,
            _ => true,
        });
        if overtakes || !current {
            return Ok(false);
        }
        let links = &mut self.links;
        self.replica.handle_meanwhile(*peer, body, &mut |peer, frame| send(links, peer, &frame))
    }
}
