//! Three nodes on modelled disks, for scripts and for simulations.
//!
//! Every message passes through its bytes. A checker keeps the list of all decided entries for
//! ever, and complains when a node decides another entry at an index that is taken.

use std::collections::VecDeque;

use ::bytes::Bytes;

use super::super::{
    Node, NodeConfig, PeerPaxosMessage, SharedLog, Workarounds, begin_sync, decode, encode,
    end_sync, share,
};
use crate::log::repo::{Fault, FaultyRepo, MemDisk, Operation};
use crate::log::{Identity, Log, LogSettings, Syncing};

pub(super) const GROUP: u32 = 4;
pub(super) const CONFIGURATION: u32 = 1;
pub(super) const MEMBERS: u64 = 3;

/// A source of choices that replays from its seed.
pub(super) struct Choices(u64);

impl Choices {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// One of `0..n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// True in so many of a thousand cases.
    pub(super) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// What runs while a replica is up.
pub(super) struct Running {
    pub(super) node: Node,
    pub(super) log: SharedLog,
    /// Decided entries up to here have been compared with the others'.
    checked: u64,
    /// What makes the log durable, while the turn is closed.
    closing: Option<Syncing>,
}

/// One replica: its disk, and what runs on it.
pub(super) struct Replica {
    pub(super) disk: MemDisk,
    pub(super) running: Option<Running>,
}

/// How the replicas are set up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) workarounds: Workarounds,
    pub(super) resend_ticks: u64,
    /// The disks report syncs that they did not do.
    pub(super) lying_disks: bool,
}

impl Setup {
    pub(super) const PLAIN: Self =
        Self { workarounds: Workarounds::ALL, resend_ticks: 3, lying_disks: false };
}

pub(super) struct Cluster {
    pub(super) setup: Setup,
    pub(super) replicas: Vec<Replica>,
    /// `links[from][to]`, by index, not by id.
    pub(super) links: Vec<Vec<VecDeque<PeerPaxosMessage>>>,
    /// Every entry that was ever decided anywhere.
    pub(super) decided: Vec<Bytes>,
}

pub(super) fn config(replica: u64, setup: &Setup) -> NodeConfig {
    NodeConfig {
        election_ticks: 5,
        resend_ticks: setup.resend_ticks,
        // Scripts rely on who is elected first.
        priority: u32::from(replica == 1),
        workarounds: setup.workarounds,
        ..NodeConfig::new(GROUP, CONFIGURATION, replica, (1..=MEMBERS).collect())
    }
}

impl Cluster {
    pub(super) fn new(setup: Setup) -> Self {
        let replicas = || (0..MEMBERS).map(|_| Replica { disk: MemDisk::new(), running: None });
        let links = (0..MEMBERS).map(|_| (0..MEMBERS).map(|_| VecDeque::new()).collect());
        let mut cluster = Self {
            setup,
            replicas: replicas().collect(),
            links: links.collect(),
            decided: Vec::new(),
        };
        for at in 0..cluster.replicas.len() {
            cluster.start(at);
        }
        cluster
    }

    /// Starts a replica, from its disk if it has run before.
    pub(super) fn start(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        assert!(replica.running.is_none(), "a replica runs once");
        let id = at as u64 + 1;
        let settings = LogSettings {
            identity: Identity { cluster: 1, replica: id },
            file_bytes: 4096,
            cache_bytes: 512,
            salt: id,
        };
        let lies = self.setup.lying_disks;
        let repo = FaultyRepo::new(replica.disk.open().unwrap(), move |operation: Operation| {
            let sync = operation.action == crate::log::repo::Action::Sync;
            if sync && lies { Fault::Ignored } else { Fault::None }
        });
        let is_new = replica.disk.files().is_empty();
        let open = if is_new { Log::create } else { Log::open };
        let log = share(open(Box::new(repo), settings).unwrap());
        let node = Node::recover(config(id, &self.setup), &log).unwrap();
        replica.running = Some(Running { node, log, checked: 0, closing: None });
    }

    /// Cuts the power of a replica in the middle of whatever it does.
    pub(super) fn crash(&mut self, at: usize, choices: &mut Choices) {
        self.replicas[at].running = None;
        let all_kept = choices.chance(300);
        // A disk that never syncs has all of it to lose; any part of it would be refused as corrupt.
        let all_lost = self.setup.lying_disks;
        let mut choose = |n| match (all_lost, all_kept) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => choices.below(n),
        };
        self.replicas[at].disk.cut_power(&mut choose);
    }

    pub(super) fn node(&mut self, id: u64) -> &mut Node {
        &mut self.replicas[usize::try_from(id - 1).unwrap()].running.as_mut().unwrap().node
    }

    pub(super) fn running(&mut self, at: usize) -> Option<&mut Running> {
        self.replicas[at].running.as_mut()
    }

    /// Puts messages on their links, through their bytes.
    pub(super) fn send(&mut self, messages: Vec<PeerPaxosMessage>) {
        for message in messages {
            let mut frame = Vec::new();
            encode(message, &mut frame).unwrap();
            let message = decode(frame.clone().into()).unwrap();
            let mut again = Vec::new();
            encode(message.clone(), &mut again).unwrap();
            assert_eq!(again, frame);
            let place = |id: u64| usize::try_from(id - 1).unwrap();
            self.links[place(message.from())][place(message.to())].push_back(message);
        }
    }

    /// Ends the turn of a replica as a driver does.
    pub(super) fn end_turn(&mut self, at: usize) {
        self.close_turn(at);
        self.open_turn(at);
    }

    /// Ends the inputs of a turn, whose log begins to become durable.
    pub(super) fn close_turn(&mut self, at: usize) {
        let running = self.replicas[at].running.as_mut().unwrap();
        let early = running.node.take_early_messages();
        running.closing = begin_sync(&running.log).unwrap();
        self.send(early);
    }

    /// Whether the log of a replica that runs is being made durable.
    pub(super) fn is_closing(&self, at: usize) -> bool {
        self.replicas[at].running.as_ref().is_some_and(|running| running.closing.is_some())
    }

    /// Its log is durable, and its next turn begins.
    pub(super) fn open_turn(&mut self, at: usize) {
        let running = self.replicas[at].running.as_mut().unwrap();
        if let Some(syncing) = running.closing.take() {
            end_sync(&running.log, syncing.run()).unwrap();
        }
        let late = running.node.take_late_messages();
        self.send(late);
    }

    /// Loses what is under way between two replicas and tells those of both that run.
    pub(super) fn reconnect(&mut self, a: usize, b: usize) {
        self.links[a][b].clear();
        self.links[b][a].clear();
        for (this, peer) in [(a, b), (b, a)] {
            if self.is_closing(this) {
                self.open_turn(this);
                self.links[this][peer].clear();
            }
            if let Some(running) = self.running(this) {
                running.node.reconnected(peer as u64 + 1).unwrap();
            }
        }
    }

    /// Compares what a replica has newly decided with what was decided before.
    pub(super) fn check(&mut self, at: usize) -> Result<(), String> {
        let Some(running) = self.replicas[at].running.as_mut() else { return Ok(()) };
        let decided = running.node.decided_index();
        while running.checked < decided {
            let entries = running.node.read_decided(running.checked, 100, 1000).unwrap();
            if entries.is_empty() {
                return Err(format!("replica {} decided more than it has", at + 1));
            }
            for (index, bytes) in entries {
                running.checked = index + 1;
                let index = usize::try_from(index).unwrap();
                match self.decided.get(index) {
                    Some(before) if *before == bytes => {}
                    Some(before) => {
                        return Err(format!("entry {index}: {before:?} and {bytes:?}"));
                    }
                    None => self.decided.push(bytes),
                }
            }
        }
        Ok(())
    }

    /// Runs everybody without faults until all have decided the same, for a bounded time.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        for at in 0..self.replicas.len() {
            if self.is_closing(at) {
                self.open_turn(at);
            }
        }
        for _ in 0..600 {
            for at in 0..self.replicas.len() {
                if self.replicas[at].running.is_none() {
                    self.start(at);
                    (0..self.replicas.len())
                        .filter(|peer| *peer != at)
                        .for_each(|peer| self.reconnect(at, peer));
                }
                self.running(at).unwrap().node.tick().unwrap();
                for from in 0..self.replicas.len() {
                    while let Some(message) = self.links[from][at].pop_front() {
                        self.running(at).unwrap().node.handle_message(message).unwrap();
                    }
                }
                self.end_turn(at);
                self.check(at)?;
            }
        }
        let all = self.decided.len() as u64;
        for id in 1..=MEMBERS {
            let decided = self.node(id).decided_index();
            if decided != all {
                return Err(format!("replica {id} decided {decided} of {all}"));
            }
        }
        Ok(())
    }
}
