//! Messages that no honest peer sends, and logs that fail below a node.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ::bytes::Bytes;
use omnipaxos::ballot_leader_election::Ballot as PaxosBallot;
use omnipaxos::messages::Message;
use omnipaxos::messages::sequence_paxos::{
    Accepted, Compaction, Decide, PaxosMessage, PaxosMsg, PrepareReq,
};
use omnipaxos::util::SequenceNumber;

use super::super::{
    AppendError, ConfigError, LogEntry, MAX_ENTRY_BYTES, Node, NodeConfig, NodeError, PeerFault,
    PeerPaxosMessage, Workarounds, share, sync,
};
use super::cluster::{CONFIGURATION, Cluster, GROUP, Setup, config};
use crate::log::repo::{Action, Fault, FaultyRepo, MemDisk};
use crate::log::{Identity, Log, LogSettings};

fn leading(workarounds: Workarounds) -> Cluster {
    let mut cluster = Cluster::new(Setup { workarounds, ..Setup::PLAIN });
    cluster.settle().unwrap();
    assert!(cluster.node(1).is_leading());
    cluster
}

fn message(from: u64, msg: PaxosMsg<LogEntry>) -> PeerPaxosMessage {
    let message = Message::SequencePaxos(PaxosMessage { from, to: 1, msg });
    PeerPaxosMessage { group: GROUP, configuration: CONFIGURATION, message }
}

fn ballot(cluster: &mut Cluster) -> PaxosBallot {
    let ballot = cluster.node(1).promised_ballot();
    PaxosBallot {
        config_id: ballot.configuration,
        n: ballot.number,
        priority: ballot.priority,
        pid: ballot.replica,
    }
}

fn fault(cluster: &mut Cluster, message: PeerPaxosMessage) -> PeerFault {
    match cluster.node(1).handle_message(message) {
        Err(NodeError::Peer(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_of_strangers_and_of_other_instances_are_refused() {
    let mut cluster = leading(Workarounds::ALL);
    let n = ballot(&mut cluster);
    let request = |from| message(from, PaxosMsg::PrepareReq(PrepareReq { n }));
    assert_eq!(fault(&mut cluster, request(9)), PeerFault::UnknownSender { from: 9 });
    assert_eq!(fault(&mut cluster, request(1)), PeerFault::UnknownSender { from: 1 });
    let other_group = PeerPaxosMessage { group: 5, ..request(2) };
    assert!(matches!(fault(&mut cluster, other_group), PeerFault::WrongInstance { group: 5, .. }));
    let other = PeerPaxosMessage { configuration: 2, ..request(2) };
    let refused = fault(&mut cluster, other);
    assert!(matches!(refused, PeerFault::WrongInstance { configuration: 2, .. }));
    let Message::SequencePaxos(mut inner) = request(2).message else { unreachable!() };
    inner.to = 3;
    let misrouted = PeerPaxosMessage { message: Message::SequencePaxos(inner), ..request(2) };
    assert_eq!(fault(&mut cluster, misrouted), PeerFault::WrongReceiver { from: 2, to: 3 });
    // The node goes on.
    cluster.node(1).append(Bytes::from_static(b"a")).unwrap();
    cluster.end_turn(0);
    cluster.settle().unwrap();
    assert_eq!(cluster.node(1).decided_index(), 1);
}

#[test]
fn without_the_check_a_stranger_makes_a_leader_panic() {
    let mut cluster = leading(Workarounds { check_messages: false, ..Workarounds::ALL });
    let n = ballot(&mut cluster);
    let stranger = message(9, PaxosMsg::PrepareReq(PrepareReq { n }));
    let node = AssertUnwindSafe(|| cluster.node(1).handle_message(stranger));
    assert!(catch_unwind(node).is_err());
}

#[test]
fn impossible_ballots_and_indices_are_refused() {
    let mut cluster = leading(Workarounds::ALL);
    let n = ballot(&mut cluster);
    let seq_num = SequenceNumber { session: 1, counter: 1 };
    let impossible = [
        PaxosMsg::Accepted(Accepted { n, accepted_idx: 5 }),
        PaxosMsg::Decide(Decide { n, seq_num, decided_idx: 5 }),
        PaxosMsg::PrepareReq(PrepareReq { n: PaxosBallot { pid: 9, ..n } }),
        PaxosMsg::PrepareReq(PrepareReq { n: PaxosBallot { config_id: 2, ..n } }),
        PaxosMsg::PrepareReq(PrepareReq { n: PaxosBallot { n: u32::MAX, ..n } }),
        PaxosMsg::PrepareReq(PrepareReq { n: PaxosBallot { n: n.n + (2 << 20), ..n } }),
    ];
    for msg in impossible {
        let refused = fault(&mut cluster, message(2, msg));
        assert!(matches!(refused, PeerFault::Impossible { from: 2, .. }), "{refused}");
    }
}

#[test]
fn without_the_check_a_false_vote_decides_what_is_not_there() {
    let mut cluster = leading(Workarounds { check_messages: false, ..Workarounds::ALL });
    let n = ballot(&mut cluster);
    for from in [2, 3] {
        let vote = message(from, PaxosMsg::Accepted(Accepted { n, accepted_idx: 5 }));
        cluster.node(1).handle_message(vote).unwrap();
    }
    assert_eq!((cluster.node(1).decided_index(), cluster.node(1).accepted_index()), (5, 0));
}

/// What is beyond the bound at first is within it some day: as many elections as that may have been held
/// meanwhile.
#[test]
fn ballots_may_rise_with_time() {
    let mut cluster = leading(Workarounds::ALL);
    let n = ballot(&mut cluster);
    // The cluster has settled for 600 ticks: 120 rounds, in which three members may draw one number each.
    let high = PaxosBallot { n: n.n + (1 << 20) + 400, ..n };
    let request = || message(2, PaxosMsg::PrepareReq(PrepareReq { n: high }));
    let ticks = (0..).find(|_| {
        let taken = cluster.node(1).handle_message(request()).is_ok();
        if !taken {
            cluster.node(1).tick().unwrap();
        }
        taken
    });
    assert!(ticks.is_some_and(|ticks| (1..200).contains(&ticks)), "{ticks:?}");
}

fn foreign() -> [PaxosMsg<LogEntry>; 2] {
    let entry = LogEntry(Bytes::from_static(b"smuggled"));
    [PaxosMsg::ProposalForward(vec![entry]), PaxosMsg::Compaction(Compaction::Trim(0))]
}

#[test]
fn forwarded_proposals_and_compactions_are_refused() {
    let mut cluster = leading(Workarounds::ALL);
    for msg in foreign() {
        let refused = fault(&mut cluster, message(2, msg));
        assert!(matches!(refused, PeerFault::RefusedKind { from: 2, .. }), "{refused}");
    }
    assert_eq!(cluster.node(1).accepted_index(), 0);
}

#[test]
fn without_the_refusal_a_forwarded_proposal_enters_the_log() {
    let mut cluster = leading(Workarounds { refuse_foreign_proposals: false, ..Workarounds::ALL });
    let [forward, _] = foreign();
    cluster.node(1).handle_message(message(2, forward)).unwrap();
    assert_eq!(cluster.node(1).accepted_index(), 1);
}

#[test]
fn entries_and_turns_are_bounded() {
    let mut cluster = leading(Workarounds::ALL);
    let large = Bytes::from(vec![0; MAX_ENTRY_BYTES]);
    let larger = Bytes::from(vec![0; MAX_ENTRY_BYTES + 1]);
    let refused = cluster.node(1).append(larger);
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })));
    cluster.node(1).append(large.clone()).unwrap();
    cluster.node(1).append(large.clone()).unwrap();
    let refused = cluster.node(1).append(Bytes::from_static(b"x"));
    assert!(matches!(refused, Err(AppendError::TurnFull)));
    // The next turn has room, and the frames of this one can be sent.
    cluster.end_turn(0);
    assert_eq!(cluster.node(1).append(Bytes::from_static(b"x")).unwrap(), 2);
}

#[test]
fn configurations_that_would_panic_later_are_refused() {
    let refused = |members: &[u64], replica| {
        NodeConfig::new(1, 1, replica, members.to_vec()).check().unwrap_err()
    };
    assert!(matches!(refused(&[1], 1), ConfigError::Members { .. }));
    assert!(matches!(refused(&[1, 2, 2], 1), ConfigError::Members { .. }));
    assert!(matches!(refused(&[0, 1], 1), ConfigError::ReplicaId { replica: 0 }));
    assert!(matches!(refused(&[1, 65], 1), ConfigError::ReplicaId { replica: 65 }));
    assert!(matches!(refused(&[1, 2], 3), ConfigError::NotAMember { replica: 3, .. }));
    assert_eq!(NodeConfig::new(1, 0, 1, vec![1, 2]).check(), Err(ConfigError::Zero));
}

#[test]
fn a_failing_log_stops_its_node_with_the_error_of_the_log() {
    let disk = MemDisk::new();
    let faulty = FaultyRepo::new(disk.open().unwrap(), |operation| {
        let sync = operation.action == Action::Sync;
        if sync { Fault::Error(ErrorKind::Other) } else { Fault::None }
    });
    let identity = Identity { cluster: 1, replica: 2 };
    let settings = LogSettings { identity, file_bytes: 4096, cache_bytes: 0, salt: 1 };
    let log = share(Log::create(Box::new(faulty), settings).unwrap());
    let mut node = Node::recover(config(2, &Setup::PLAIN), &log).unwrap();
    assert!(sync(&log).is_err());
    // The next write reaches the poisoned log from inside of omnipaxos.
    let n = PaxosBallot { config_id: CONFIGURATION, n: 3, priority: 0, pid: 1 };
    let prepare = omnipaxos::messages::sequence_paxos::Prepare {
        n,
        decided_idx: 0,
        n_accepted: PaxosBallot::default(),
        accepted_idx: 0,
    };
    let inner = PaxosMessage { from: 1, to: 2, msg: PaxosMsg::Prepare(prepare) };
    let message = PeerPaxosMessage {
        group: GROUP,
        configuration: CONFIGURATION,
        message: Message::SequencePaxos(inner),
    };
    assert!(matches!(node.handle_message(message), Err(NodeError::Log(_))));
    assert!(matches!(node.tick(), Err(NodeError::Stopped)));
}

#[test]
fn a_node_and_its_log_can_be_moved_into_a_thread() {
    fn is_send<T: Send>() {}
    is_send::<Node>();
    is_send::<Log>();
}
