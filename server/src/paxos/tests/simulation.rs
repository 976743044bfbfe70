//! Random runs: lost messages, connections made anew, splits, power cuts at every point of a turn.
//!
//! Each seed replays. A run is bad if the checker complains, if the replicas do not agree in the
//! end where they have to, or if omnipaxos runs into one of its own assertions.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ::bytes::Bytes;

use omnipaxos::ballot_leader_election::Ballot as PaxosBallot;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::{BLEMessage, HeartbeatMsg, HeartbeatReply};
use omnipaxos::messages::sequence_paxos::{
    NotAccepted, PaxosMessage, PaxosMsg, Prepare, PrepareReq,
};

use super::super::{AppendError, NodeError, PeerPaxosMessage, Workarounds};
use super::cluster::{CONFIGURATION, Choices, Cluster, GROUP, Setup};

#[derive(Clone, Copy, Debug)]
struct Faults {
    /// Single messages that vanish, which a transport must never do, per mille.
    lost_messages: u64,
    /// Connections made anew, per mille of turns.
    reconnections: u64,
    /// Pairs of replicas that lose touch or find each other again, per mille of steps.
    splits: u64,
    /// Power cuts, per mille of turns.
    crashes: u64,
    /// Replicas that are asked to lead, per mille of turns.
    transfers: u64,
    /// Syncs that take longer than a turn of others, per mille.
    slow_syncs: u64,
    /// Messages of a broken peer, whose ballots are far beyond all that there were, per mille of turns.
    absurd_ballots: u64,
    /// The replicas must agree once the faults stop.
    must_settle: bool,
}

const LOSSY: Faults = Faults {
    lost_messages: 30,
    reconnections: 0,
    splits: 0,
    crashes: 0,
    transfers: 0,
    slow_syncs: 0,
    absurd_ballots: 0,
    must_settle: false,
};
const CRASHES: Faults = Faults {
    lost_messages: 0,
    reconnections: 15,
    splits: 8,
    crashes: 8,
    transfers: 0,
    slow_syncs: 0,
    absurd_ballots: 0,
    must_settle: true,
};
const TRANSFERS: Faults = Faults { transfers: 10, ..CRASHES };
const ABSURD: Faults = Faults { absurd_ballots: 20, ..TRANSFERS };
const SLOW_DISKS: Faults = Faults { slow_syncs: 700, ..TRANSFERS };

/// What happened in one run or many.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    decided: usize,
    crashes: u64,
    /// Messages that were handled while a log was made durable.
    settled: u64,
    /// Messages of broken peers that were refused.
    refused: u64,
}

struct Run<'a> {
    cluster: Cluster,
    choices: Choices,
    faults: &'a Faults,
    next: u64,
    total: Total,
    /// Pairs that are out of touch, the lower first.
    split: BTreeSet<(usize, usize)>,
}

impl Run<'_> {
    fn append_some(&mut self, at: usize, most: u64) {
        for _ in 0..self.choices.below(most + 1) {
            let length = usize::try_from(self.choices.below(120)).unwrap();
            let mut entry = self.next.to_le_bytes().to_vec();
            entry.resize(8 + length, 7);
            self.next += 1;
            let node = &mut self.cluster.running(at).unwrap().node;
            match node.append(Bytes::from(entry)) {
                Ok(index) => assert_eq!(index + 1, node.accepted_index()),
                Err(AppendError::NotLeading) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The inputs of one turn.
    fn inputs(&mut self, at: usize) {
        if self.choices.chance(400) {
            self.cluster.running(at).unwrap().node.tick().unwrap();
        }
        if self.faults.transfers > 0 && self.choices.chance(self.faults.transfers) {
            self.cluster.running(at).unwrap().node.take_lead().unwrap();
        }
        if self.faults.absurd_ballots > 0 && self.choices.chance(self.faults.absurd_ballots) {
            self.say_absurd(at);
        }
        self.append_some(at, 2);
        for from in 0..self.cluster.replicas.len() {
            for _ in 0..self.choices.below(4) {
                let Some(message) = self.cluster.links[from][at].pop_front() else { break };
                if self.choices.chance(self.faults.lost_messages) {
                    continue;
                }
                self.cluster.running(at).unwrap().node.handle_message(message).unwrap();
                if self.choices.chance(300) {
                    self.append_some(at, 1);
                }
            }
        }
        self.append_some(at, 2);
    }

    /// A peer is broken for a moment: it has a ballot that so many elections cannot have led to.
    fn say_absurd(&mut self, to: usize) {
        let from = (to + 1 + usize::from(self.choices.chance(500))) % self.cluster.replicas.len();
        let (to, from) = (to as u64 + 1, from as u64 + 1);
        let n = match self.choices.below(3) {
            0 => (1 << 31) - 1,
            1 => u32::MAX,
            _ => u32::try_from((1 << 22) + self.choices.below(1 << 30)).unwrap(),
        };
        let n = PaxosBallot { config_id: CONFIGURATION, n, priority: 0, pid: from };
        let none = PaxosBallot::default();
        let paxos = |msg| Message::SequencePaxos(PaxosMessage { from, to, msg });
        let message = match self.choices.below(5) {
            0 => paxos(PaxosMsg::Prepare(Prepare {
                n,
                decided_idx: 0,
                n_accepted: none,
                accepted_idx: 0,
            })),
            1 => paxos(PaxosMsg::PrepareReq(PrepareReq { n })),
            2 => paxos(PaxosMsg::NotAccepted(NotAccepted { n })),
            3 => paxos(PaxosMsg::Prepare(Prepare {
                n: PaxosBallot { n: 2, ..n },
                decided_idx: 0,
                n_accepted: n,
                accepted_idx: 0,
            })),
            _ => {
                let reply = HeartbeatReply { round: 1, ballot: n, leader: n, happy: true };
                Message::BLE(BLEMessage { from, to, msg: HeartbeatMsg::Reply(reply) })
            }
        };
        let message = PeerPaxosMessage { group: GROUP, configuration: CONFIGURATION, message };
        let at = usize::try_from(to - 1).unwrap();
        match self.cluster.running(at).unwrap().node.handle_message(message) {
            Err(NodeError::Peer(_)) => self.total.refused += 1,
            other => assert!(other.is_ok(), "{other:?}"),
        }
    }

    /// One turn, in which the power may fail before or after the early messages have left, at the
    /// write or at the sync.
    fn turn(&mut self, at: usize) {
        if self.cluster.is_closing(at) {
            self.settle_some(at);
            if self.choices.chance(self.faults.crashes) {
                return self.lose_power(at);
            }
        } else {
            self.inputs(at);
            if self.choices.chance(self.faults.crashes) {
                return self.lose_power_in_turn(at);
            }
            self.cluster.close_turn(at);
        }
        let is_slow = self.faults.slow_syncs > 0 && self.choices.chance(self.faults.slow_syncs);
        if !is_slow || !self.cluster.is_closing(at) {
            self.cluster.open_turn(at);
        }
    }

    /// Handles what can be handled while the log is made durable; the rest waits, in its order.
    fn settle_some(&mut self, at: usize) {
        for from in 0..self.cluster.replicas.len() {
            while let Some(message) = self.cluster.links[from][at].pop_front() {
                let node = &mut self.cluster.running(at).unwrap().node;
                if !node.can_settle(&message) {
                    self.cluster.links[from][at].push_front(message);
                    break;
                }
                let early = node.settle(message).unwrap();
                self.total.settled += 1;
                self.cluster.send(early);
            }
        }
    }

    fn lose_power_in_turn(&mut self, at: usize) {
        let early = self.cluster.running(at).unwrap().node.take_early_messages();
        if self.choices.chance(700) {
            self.cluster.send(early);
        }
        if self.choices.chance(700) {
            let steps = self.choices.below(3);
            self.cluster.replicas[at].disk.fail_after(steps);
            // It may also succeed: then the power fails before the late messages leave.
            drop(super::super::sync(&self.cluster.running(at).unwrap().log));
        }
        self.lose_power(at);
    }

    fn lose_power(&mut self, at: usize) {
        self.total.crashes += 1;
        self.cluster.crash(at, &mut self.choices);
        for peer in 0..self.cluster.replicas.len() {
            self.cluster.links[peer][at].clear();
            // What has left may still arrive, all of it or a beginning.
            let kept = self.choices.below(12);
            self.cluster.links[at][peer].truncate(usize::try_from(kept).unwrap());
        }
    }

    /// Lets a pair of replicas lose touch, or find each other again.
    fn split_or_heal(&mut self, pair: (usize, usize)) {
        if !self.split.insert(pair) {
            self.split.remove(&pair);
            self.cluster.reconnect(pair.0, pair.1);
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let members = self.cluster.replicas.len() as u64;
        let at = usize::try_from(self.choices.below(members)).unwrap();
        if self.cluster.running(at).is_some() {
            self.turn(at);
        } else if self.choices.chance(200) {
            self.cluster.start(at);
            for peer in (0..self.cluster.replicas.len()).filter(|peer| *peer != at) {
                self.cluster.reconnect(at, peer);
            }
        }
        let peer = usize::try_from(self.choices.below(members)).unwrap();
        if peer != at && self.choices.chance(self.faults.reconnections) {
            self.cluster.reconnect(at, peer);
        }
        if peer != at && self.choices.chance(self.faults.splits) {
            self.split_or_heal((at.min(peer), at.max(peer)));
        }
        for (a, b) in &self.split {
            self.cluster.links[*a][*b].clear();
            self.cluster.links[*b][*a].clear();
        }
        self.cluster.check(at)
    }
}

/// Runs one seed.
fn run(seed: u64, steps: u64, setup: Setup, faults: &Faults) -> Result<Total, String> {
    let mut run = Run {
        cluster: Cluster::new(setup),
        choices: Choices::new(seed),
        faults,
        next: 1,
        total: Total::default(),
        split: BTreeSet::new(),
    };
    for _ in 0..steps {
        run.step()?;
    }
    for pair in run.split.clone() {
        run.split_or_heal(pair);
    }
    if faults.must_settle {
        run.cluster.settle()?;
        for id in 1..=run.cluster.replicas.len() as u64 {
            let promised = run.cluster.node(id).promised_ballot().number;
            if promised > 100_000 {
                return Err(format!("replica {id} promised ballot {promised}"));
            }
        }
    }
    Ok(Total { decided: run.cluster.decided.len(), ..run.total })
}

/// The complaint of the first bad seed, if any of them is bad.
fn first_bad(
    seeds: std::ops::Range<u64>,
    steps: u64,
    setup: Setup,
    faults: &Faults,
) -> Result<Total, String> {
    let mut total = Total::default();
    for seed in seeds {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, steps, setup, faults)));
        let outcome = outcome.unwrap_or_else(|_| Err("a panic".into()));
        let one = outcome.map_err(|complaint| format!("seed {seed}: {complaint}"))?;
        total.decided += one.decided;
        total.crashes += one.crashes;
        total.settled += one.settled;
        total.refused += one.refused;
    }
    Ok(total)
}

#[test]
fn lost_messages_and_repeated_promises_do_not_make_logs_diverge() {
    let Total { decided, .. } = first_bad(1..101, 3000, Setup::PLAIN, &LOSSY).unwrap();
    assert!(decided > 10_000, "only {decided} entries were decided");
}

#[test]
fn they_do_without_taking_messages_around_promises() {
    let workarounds = Workarounds { drain_around_promises: false, ..Workarounds::ALL };
    let setup = Setup { workarounds, ..Setup::PLAIN };
    let complaint = first_bad(1..101, 3000, setup, &LOSSY).unwrap_err();
    assert!(complaint.contains("entry") || complaint.contains("panic"), "{complaint}");
}

#[test]
fn early_messages_and_power_cuts_lose_nothing_that_was_decided() {
    let total = first_bad(1..301, 2000, Setup::PLAIN, &CRASHES).unwrap();
    assert!(total.decided > 10_000 && total.crashes > 1000, "{total:?}");
}

#[test]
fn nor_do_replicas_that_are_asked_to_lead() {
    let total = first_bad(1..301, 2000, Setup::PLAIN, &TRANSFERS).unwrap();
    assert!(total.decided > 10_000 && total.crashes > 1000, "{total:?}");
}

/// There are leaders as before, with ballots as before: the replicas agree in the end, and each has only
/// promised what elections led to.
#[test]
fn nor_do_broken_peers_use_up_the_ballots() {
    let total = first_bad(1..101, 2000, Setup::PLAIN, &ABSURD).unwrap();
    assert!(total.decided > 3_000 && total.refused > 1_000, "{total:?}");
}

#[test]
fn nor_do_leaders_that_take_votes_while_they_sync() {
    let total = first_bad(1..501, 2000, Setup::PLAIN, &SLOW_DISKS).unwrap();
    assert!(total.decided > 10_000 && total.crashes > 1000, "{total:?}");
    assert!(total.settled > 10_000, "{total:?}");
}

#[test]
fn they_do_if_they_count_their_own_before_it_is_durable() {
    let workarounds = Workarounds { settle_only_durable: false, ..Workarounds::ALL };
    let setup = Setup { workarounds, ..Setup::PLAIN };
    let complaint = first_bad(1..1001, 2000, setup, &SLOW_DISKS).unwrap_err();
    assert!(complaint.contains("entry"), "{complaint}");
}

#[test]
fn a_replica_that_never_syncs_is_caught() {
    let setup = Setup { lying_disks: true, ..Setup::PLAIN };
    let complaint = first_bad(1..301, 2000, setup, &CRASHES).unwrap_err();
    assert!(complaint.contains("entry"), "{complaint}");
}
