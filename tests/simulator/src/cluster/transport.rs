//! What travels: frames between replicas on links that break, messages between clients and replicas
//! that are lost and doubled.
//!
//! Not here: faults of links (`nemesis.rs`), and what a link promises (`network.rs`).

use super::{Cluster, Event, process::Input, router::Connection, stage::Stage};
use crate::{
    messages::{Ask, Tell},
    network::Flight,
    schedule::{MICROSECOND, MILLISECOND},
};

impl Cluster {
    pub(super) fn frame_delay(&mut self) -> u64 {
        let most = self.profile.delay / MICROSECOND;
        self.prng.between(30, 50 + most) * MICROSECOND
    }

    pub(super) fn dial(&mut self, from: usize, to: usize) {
        let again = self.prng.between(30, 80) * MILLISECOND;
        self.schedule.after(again, Event::Dial { from, to });
        let link = &mut self.links[from][to];
        let closed = link.forbidden || link.held || self.hosts[from].process.is_none();
        if link.is_connected() || closed {
            return;
        }
        if self.hosts[to].process.is_none() {
            // The host is up, whatever became of the process: it refuses.
            if !link.refuse() {
                return;
            }
            return self.input(from, Input::PeerGone(to as u64 + 1));
        }
        self.next_connection += 1;
        let connection = self.next_connection;
        let arrival = self.schedule.now() + self.frame_delay();
        self.links[from][to].connect(connection, arrival);
        self.trace.tell(self.schedule.now(), || {
            format!("connection {connection} from {} to {}", from + 1, to + 1)
        });
        self.input(from, Input::PeerUp { peer: to as u64 + 1, connection });
        self.pump(from, to);
    }

    pub(super) fn pump(&mut self, from: usize, to: usize) {
        let link = &mut self.links[from][to];
        if let (Some(arrival), false) = (link.next_arrival(), link.scheduled) {
            link.scheduled = true;
            self.schedule.at(arrival, Event::Deliver { from, to });
        }
    }

    pub(super) fn deliver(&mut self, from: usize, to: usize) {
        let now = self.schedule.now();
        self.links[from][to].scheduled = false;
        let peer = from as u64 + 1;
        while let Some(flight) = self.links[from][to].take(now) {
            self.input(
                to,
                match flight {
                    Flight::Connected(connection) => Input::PeerConnected { peer, connection },
                    Flight::Frame(connection, frame) => Input::Peer { peer, connection, frame },
                },
            );
        }
        self.pump(from, to);
    }

    pub(super) fn send_to_client(&mut self, connection: Connection, tell: &Tell) {
        for delay in self.message_delays() {
            self.schedule.after(delay, Event::ToClient { connection, tell: tell.clone() });
        }
    }

    pub(super) fn send_to_replica(&mut self, client: usize, ask: &Ask) {
        let replica = self.clients[client].replica;
        let connection = (client, self.clients[client].connection);
        for delay in self.message_delays() {
            let ask = ask.clone();
            self.schedule.after(delay, Event::ToReplica { replica, connection, ask });
        }
    }

    /// When the copies of a message arrive: none when it is lost.
    fn message_delays(&mut self) -> Vec<u64> {
        let faulty = matches!(self.stage, Stage::Faults { .. });
        if faulty && self.prng.permille(self.profile.lost) {
            self.counts.lost_messages += 1;
            return Vec::new();
        }
        let doubled = faulty && self.prng.permille(self.profile.doubled);
        self.counts.doubled_messages += u64::from(doubled);
        (0..1 + u64::from(doubled))
            .map(|_| {
                let late = if faulty && self.prng.permille(20) { 1_500_000 } else { 3_000 };
                self.prng.between(50, late) * MICROSECOND
            })
            .collect()
    }
}
