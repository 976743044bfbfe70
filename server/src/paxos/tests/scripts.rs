//! Short scripts, message by message, for what a random run would rarely hit or not explain.

use ::bytes::Bytes;

use super::super::{AppendError, MessageKind, Node, PeerPaxosMessage, Workarounds};
use super::cluster::{Choices, Cluster, Setup};

const SLOW: Setup = Setup { resend_ticks: 40, ..Setup::PLAIN };

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

impl Cluster {
    fn end_turns(&mut self) {
        (0..self.replicas.len()).for_each(|at| self.end_turn(at));
    }

    /// Takes the first message of a kind off a link, with all before it.
    fn take(&mut self, from: u64, to: u64, kind: MessageKind) -> PeerPaxosMessage {
        let place = |id: u64| usize::try_from(id - 1).unwrap();
        let link = &mut self.links[place(from)][place(to)];
        while let Some(message) = link.pop_front() {
            if message.kind() == kind {
                return message;
            }
        }
        panic!("no {kind:?} from {from} to {to}");
    }

    fn deliver(&mut self, from: u64, to: u64, kind: MessageKind) {
        let message = self.take(from, to, kind);
        self.node(to).handle_message(message).unwrap();
        self.end_turn(usize::try_from(to - 1).unwrap());
    }

    /// Delivers everything but what a replica that is cut off sends or would get.
    fn deliver_all(&mut self, cut_off: Option<u64>) {
        self.end_turns();
        loop {
            let mut quiet = true;
            for from in 0..self.replicas.len() {
                for to in 0..self.replicas.len() {
                    let ids = [from as u64 + 1, to as u64 + 1];
                    let lost = cut_off.is_some_and(|id| ids.contains(&id));
                    while let Some(message) = self.links[from][to].pop_front() {
                        if !lost {
                            quiet = false;
                            self.node(ids[1]).handle_message(message).unwrap();
                        }
                    }
                }
            }
            self.end_turns();
            if quiet {
                return;
            }
        }
    }

    /// Lets time pass until replica 1 asks to be followed; its requests are under way then.
    fn until_replica_1_prepares(&mut self) {
        for _ in 0..100 {
            for id in 1..=3 {
                self.node(id).tick().unwrap();
            }
            self.end_turns();
            let prepares = |link: &std::collections::VecDeque<PeerPaxosMessage>| {
                link.iter().any(|message| message.kind() == MessageKind::Prepare)
            };
            if prepares(&self.links[0][1]) && prepares(&self.links[0][2]) {
                return;
            }
            self.deliver_all(None);
        }
        panic!("replica 1 was not elected");
    }

    fn elected(setup: Setup) -> Self {
        let mut cluster = Self::new(setup);
        cluster.until_replica_1_prepares();
        cluster.deliver_all(None);
        assert!(cluster.node(1).is_leading());
        cluster
    }
}

fn decided(node: &Node) -> Vec<Bytes> {
    let entries = node.read_decided(0, 100, u64::MAX).unwrap();
    entries.into_iter().map(|(_, bytes)| bytes).collect()
}

/// An AcceptSync to replica 3 is lost and replica 3 repeats its Promise. In one turn the leader
/// appends, handles that Promise, and appends again. Returns the leader's and replica 3's log when
/// replica 3's votes have decided.
fn lost_accept_sync_and_repeated_promise(workarounds: Workarounds) -> (Vec<Bytes>, Vec<Bytes>) {
    let mut cluster = Cluster::new(Setup { workarounds, ..SLOW });
    cluster.until_replica_1_prepares();
    cluster.deliver(1, 2, MessageKind::Prepare);
    cluster.deliver(1, 3, MessageKind::Prepare);
    cluster.deliver(2, 1, MessageKind::Promise);
    cluster.deliver(1, 2, MessageKind::AcceptSync);
    cluster.deliver(2, 1, MessageKind::Accepted);
    cluster.deliver(3, 1, MessageKind::Promise);
    let _lost = cluster.take(1, 3, MessageKind::AcceptSync);
    for _ in 0..40 {
        cluster.node(3).tick().unwrap();
    }
    cluster.end_turn(2);
    let repeated = cluster.take(3, 1, MessageKind::Promise);
    assert_eq!(cluster.node(1).append(text("one")).unwrap(), 0);
    cluster.node(1).handle_message(repeated).unwrap();
    assert_eq!(cluster.node(1).append(text("two")).unwrap(), 1);
    cluster.end_turn(0);
    assert_eq!(cluster.node(1).append(text("three")).unwrap(), 2);
    cluster.end_turn(0);
    cluster.deliver_all(Some(2));
    cluster.deliver_all(Some(2));
    (decided(cluster.node(1)), decided(cluster.node(3)))
}

#[test]
fn a_lost_accept_sync_and_a_repeated_promise_leave_logs_equal() {
    let (leader, follower) = lost_accept_sync_and_repeated_promise(Workarounds::ALL);
    assert_eq!(leader, [text("one"), text("two"), text("three")]);
    assert_eq!(follower, leader);
}

#[test]
fn without_taking_messages_around_promises_they_differ() {
    let workarounds = Workarounds { drain_around_promises: false, ..Workarounds::ALL };
    let (leader, follower) = lost_accept_sync_and_repeated_promise(workarounds);
    let common = leader.len().min(follower.len());
    assert!(common > 0, "nothing was decided");
    assert_ne!(leader[..common], follower[..common]);
}

#[test]
fn a_lost_last_entry_is_sent_again_when_both_ends_reconnect_and_never_otherwise() {
    let mut cluster = Cluster::elected(SLOW);
    cluster.node(1).append(text("lost")).unwrap();
    cluster.end_turn(0);
    let _lost = [2, 3].map(|to| cluster.take(1, to, MessageKind::AcceptDecide));
    for _ in 0..500 {
        (1..=3).for_each(|id| cluster.node(id).tick().unwrap());
        cluster.deliver_all(None);
    }
    assert!(cluster.node(1).is_leading());
    assert_eq!(cluster.node(1).decided_index(), 0, "nobody noticed that it was lost");
    cluster.reconnect(0, 1);
    cluster.end_turns();
    cluster.deliver_all(None);
    assert_eq!(decided(cluster.node(1)), [text("lost")]);
    assert_eq!(decided(cluster.node(2)), [text("lost")]);
}

/// Whom messages are for, and what they are.
fn kinds(messages: &[PeerPaxosMessage]) -> Vec<(u64, MessageKind)> {
    messages.iter().map(|message| (message.to(), message.kind())).collect()
}

#[test]
fn a_leader_takes_votes_while_it_syncs_for_what_was_durable_before() {
    let mut cluster = Cluster::elected(SLOW);
    cluster.node(1).append(text("one")).unwrap();
    cluster.end_turn(0);
    cluster.deliver(1, 2, MessageKind::AcceptDecide);
    let first = cluster.take(2, 1, MessageKind::Accepted);
    assert!(!cluster.node(1).can_settle(&first), "between turns it is a message like others");

    cluster.node(1).append(text("two")).unwrap();
    cluster.close_turn(0);
    cluster.deliver(1, 2, MessageKind::AcceptDecide);
    let second = cluster.take(2, 1, MessageKind::Accepted);
    assert!(!cluster.node(1).can_settle(&second), "its own vote is not durable");
    assert!(cluster.node(1).can_settle(&first));
    let early = cluster.node(1).settle(first).unwrap();
    assert_eq!(kinds(&early), [(2, MessageKind::Decide), (3, MessageKind::Decide)]);
    assert_eq!(decided(cluster.node(1)), [text("one")]);

    cluster.open_turn(0);
    cluster.node(1).handle_message(second).unwrap();
    assert_eq!(decided(cluster.node(1)), [text("one"), text("two")]);
}

#[test]
fn a_leader_that_has_just_begun_takes_none_while_it_syncs() {
    let mut cluster = Cluster::new(SLOW);
    cluster.until_replica_1_prepares();
    cluster.deliver(1, 2, MessageKind::Prepare);
    let promise = cluster.take(2, 1, MessageKind::Promise);
    cluster.node(1).handle_message(promise).unwrap();
    assert!(cluster.node(1).is_leading());
    cluster.close_turn(0);
    cluster.deliver(1, 2, MessageKind::AcceptSync);
    let accepted = cluster.take(2, 1, MessageKind::Accepted);
    // All entries are durable, which are none; under which ballot they were accepted is not.
    assert!(!cluster.node(1).can_settle(&accepted));
    cluster.open_turn(0);
    cluster.node(1).handle_message(accepted).unwrap();
}

/// Replica 1 is cut off. Replicas 2 and 3 want to lead with ballots of the same number; replica 3,
/// whose is the higher one, loses power before anybody hears of it. Returns the cluster some time
/// after everybody is back.
fn a_promise_that_nobody_heard_of(workarounds: Workarounds) -> Cluster {
    let mut cluster = Cluster::elected(Setup { workarounds, ..Setup::PLAIN });
    for _ in 0..100 {
        (2..=3).for_each(|id| cluster.node(id).tick().unwrap());
        cluster.end_turns();
        if cluster.node(3).promised_ballot().replica == 3 {
            break;
        }
        cluster.deliver_all(Some(1));
    }
    assert_eq!(cluster.node(2).promised_ballot().replica, 2);
    assert_eq!(cluster.node(3).promised_ballot().replica, 3);
    cluster.crash(2, &mut Choices::new(1));
    cluster.start(2);
    cluster.reconnect(0, 1);
    for tick in 0..60 {
        cluster.node(2).tick().unwrap();
        // It would compete with replica 2 if it looked before that one hears it again.
        if tick >= 20 {
            cluster.node(1).tick().unwrap();
        }
        cluster.deliver_all(Some(3));
    }
    cluster.reconnect(0, 2);
    cluster.reconnect(1, 2);
    assert!(cluster.node(2).is_leading());
    assert!(cluster.node(3).promised_ballot() > cluster.node(2).promised_ballot());
    for _ in 0..400 {
        (1..=3).for_each(|id| cluster.node(id).tick().unwrap());
        cluster.deliver_all(None);
    }
    cluster
}

/// A leader that took its place from a living one is followed by the election too: nobody deposes it,
/// although the former leader lives and comes first otherwise, and it is missed when it is gone.
#[test]
fn a_leader_that_was_asked_to_lead_keeps_the_lead_until_it_is_gone() {
    let mut cluster = Cluster::elected(Setup::PLAIN);
    let rounds = |cluster: &mut Cluster, ticks: u64, gone: Option<u64>| {
        for _ in 0..ticks {
            for id in (1..=3).filter(|id| Some(*id) != gone) {
                cluster.node(id).tick().unwrap();
            }
            cluster.deliver_all(gone);
        }
    };
    rounds(&mut cluster, 20, None);
    cluster.node(2).take_lead().unwrap();
    cluster.deliver_all(None);
    assert!(cluster.node(2).is_leading() && !cluster.node(1).is_leading());
    let ballot = cluster.node(2).promised_ballot();
    cluster.node(2).append(text("one")).unwrap();
    rounds(&mut cluster, 1_000, None);
    for id in 1..=3 {
        assert_eq!(cluster.node(id).promised_ballot(), ballot, "replica {id} follows");
        assert_eq!(decided(cluster.node(id)), [text("one")]);
    }
    // Three rounds of five ticks to miss it and one to elect another, as with any leader.
    rounds(&mut cluster, 20, Some(2));
    let next = if cluster.node(1).is_leading() { 1 } else { 3 };
    assert!(cluster.node(next).is_leading());
    cluster.node(next).append(text("two")).unwrap();
    cluster.deliver_all(Some(2));
    assert_eq!(decided(cluster.node(4 - next)), [text("one"), text("two")]);
}

fn is_accepting(node: &Node) -> bool {
    node.leader().is_some_and(|leader| leader.accepting)
}

#[test]
fn a_replica_with_a_promise_that_nobody_heard_of_comes_back_as_leader() {
    let mut cluster = a_promise_that_nobody_heard_of(Workarounds::ALL);
    assert!(cluster.node(3).is_leading());
    let ballot = cluster.node(3).promised_ballot();
    for _ in 0..1_000 {
        (1..=3).for_each(|id| cluster.node(id).tick().unwrap());
        cluster.deliver_all(None);
    }
    assert_eq!(cluster.node(3).promised_ballot(), ballot, "one change of leader is enough");
    assert!((1..=3).all(|id| is_accepting(cluster.node(id))));
}

#[test]
fn without_taking_the_lead_it_stays_outside() {
    let workarounds = Workarounds { return_from_outside: false, ..Workarounds::ALL };
    let mut cluster = a_promise_that_nobody_heard_of(workarounds);
    assert!(cluster.node(2).is_leading());
    assert!(!is_accepting(cluster.node(3)));
}

/// Replica 3 asks replica 1 three times to begin anew, as after lost connections, so that its promise
/// and the second and third question come to the leader in one turn, in which it appends. Replica 2 is
/// cut off. Returns the cluster a long time after.
fn questions_around_a_promise(workarounds: Workarounds) -> Cluster {
    let mut cluster = Cluster::elected(Setup { workarounds, ..SLOW });
    let ask = |cluster: &mut Cluster| {
        cluster.node(3).reconnected(1).unwrap();
        cluster.end_turn(2);
    };
    ask(&mut cluster);
    cluster.deliver(3, 1, MessageKind::PrepareRequest);
    ask(&mut cluster);
    cluster.deliver(1, 3, MessageKind::Prepare);
    ask(&mut cluster);
    for kind in [MessageKind::PrepareRequest, MessageKind::Promise, MessageKind::PrepareRequest] {
        let message = cluster.take(3, 1, kind);
        cluster.node(1).handle_message(message).unwrap();
    }
    cluster.node(1).append(text("one")).unwrap();
    cluster.end_turn(0);
    for _ in 0..500 {
        [1, 3].into_iter().for_each(|id| cluster.node(id).tick().unwrap());
        cluster.deliver_all(Some(2));
    }
    assert!(cluster.node(1).is_leading());
    cluster
}

#[test]
fn a_follower_that_gets_the_log_twice_misses_nothing() {
    let mut cluster = questions_around_a_promise(Workarounds::ALL);
    assert_eq!(decided(cluster.node(1)), [text("one")]);
    assert_eq!(decided(cluster.node(3)), [text("one")]);
}

#[test]
fn without_asking_again_it_waits_for_the_next_entry() {
    let workarounds = Workarounds { answer_second_syncs: false, ..Workarounds::ALL };
    let mut cluster = questions_around_a_promise(workarounds);
    assert_eq!(cluster.node(3).accepted_index(), 0);
    assert_eq!(cluster.node(1).decided_index(), 0);
    cluster.node(1).append(text("two")).unwrap();
    cluster.deliver_all(Some(2));
    assert_eq!(decided(cluster.node(3)), [text("one"), text("two")]);
}

#[test]
fn only_a_leader_that_accepts_appends() {
    let mut cluster = Cluster::new(SLOW);
    let refused = cluster.node(1).append(text("too early"));
    assert!(matches!(refused, Err(AppendError::NotLeading)));
    cluster.until_replica_1_prepares();
    assert!(!cluster.node(1).is_leading());
    assert_eq!(
        cluster.node(1).leader().map(|leader| (leader.replica, leader.accepting)),
        Some((1, false))
    );
    let refused = cluster.node(1).append(text("too early"));
    assert!(matches!(refused, Err(AppendError::NotLeading)));
    cluster.deliver_all(None);
    let refused = cluster.node(2).append(text("not the leader"));
    assert!(matches!(refused, Err(AppendError::NotLeading)));
    assert_eq!(cluster.node(1).append(text("first")).unwrap(), 0);
    assert_eq!(cluster.node(1).append(text("second")).unwrap(), 1);
    cluster.deliver_all(None);
    assert_eq!(decided(cluster.node(3)), [text("first"), text("second")]);
}

#[test]
fn otherwise_an_entry_is_decided_at_another_index_than_its_caller_was_told() {
    let workarounds = Workarounds { append_only_while_leading: false, ..Workarounds::ALL };
    let mut cluster = Cluster::elected(Setup { workarounds, ..SLOW });
    assert_eq!(cluster.node(1).append(text("first")).unwrap(), 0);
    // Replica 2 forwards it, unseen by its caller; both callers were told the same index.
    assert_eq!(cluster.node(2).append(text("second")).unwrap(), 0);
    cluster.end_turns();
    let forward = cluster.take(2, 1, MessageKind::ProposalForward);
    let refused = cluster.node(1).handle_message(forward);
    assert!(refused.unwrap_err().to_string().contains("ProposalForward"));
}

#[test]
fn a_follower_that_was_away_gets_what_it_missed() {
    let mut cluster = Cluster::elected(SLOW);
    let entries = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(text);
    for entry in &entries[..5] {
        cluster.node(1).append(entry.clone()).unwrap();
    }
    cluster.deliver_all(None);
    assert_eq!(cluster.node(3).decided_index(), 5);
    for entry in &entries[5..] {
        cluster.node(1).append(entry.clone()).unwrap();
    }
    cluster.end_turn(0);
    cluster.deliver_all(Some(3));
    assert_eq!(cluster.node(1).decided_index(), 10);
    cluster.reconnect(0, 2);
    cluster.end_turns();
    cluster.deliver_all(None);
    assert_eq!(decided(cluster.node(3)), entries);
}

#[test]
fn a_cluster_that_lost_power_decides_again_what_it_had_decided() {
    let mut cluster = Cluster::elected(Setup::PLAIN);
    for entry in ["a", "b", "c"] {
        cluster.node(1).append(text(entry)).unwrap();
        cluster.deliver_all(None);
    }
    (0..3).for_each(|at| cluster.check(at).unwrap());
    let mut choices = Choices::new(1);
    (0..3).for_each(|at| cluster.crash(at, &mut choices));
    (0..3).for_each(|at| cluster.start(at));
    // The decided index did not cost a sync, so it may lag; the entries are all there.
    assert!((1..=3).any(|id| cluster.node(id).decided_index() < 3));
    assert_eq!(cluster.node(1).accepted_index(), 3);
    cluster.settle().unwrap();
    assert_eq!(decided(cluster.node(2)), [text("a"), text("b"), text("c")]);
}

#[test]
fn early_messages_do_not_overtake_and_promises_wait() {
    let mut cluster = Cluster::elected(SLOW);
    cluster.node(1).append(text("a")).unwrap();
    let early = cluster.node(1).take_early_messages();
    let kinds: Vec<_> = early.iter().map(|message| (message.to(), message.kind())).collect();
    assert_eq!(kinds, [(2, MessageKind::AcceptDecide), (3, MessageKind::AcceptDecide)]);
    super::super::sync(&cluster.running(0).unwrap().log).unwrap();
    assert!(cluster.node(1).take_late_messages().is_empty());
    // A Prepare to replica 2 must wait, and so must what follows it to the same replica.
    cluster.node(1).reconnected(2).unwrap();
    cluster.node(1).append(text("b")).unwrap();
    let early = cluster.node(1).take_early_messages();
    assert_eq!(early.iter().map(PeerPaxosMessage::to).collect::<Vec<_>>(), [3]);
    super::super::sync(&cluster.running(0).unwrap().log).unwrap();
    let late = cluster.node(1).take_late_messages();
    let kinds: Vec<_> = late.iter().map(|message| (message.to(), message.kind())).collect();
    assert_eq!(kinds, [(2, MessageKind::PrepareRequest), (2, MessageKind::AcceptDecide)]);
}

#[test]
#[should_panic(expected = "late messages wait until the log is durable")]
fn late_messages_cannot_leave_before_the_sync() {
    let mut cluster = Cluster::elected(SLOW);
    cluster.node(1).append(text("a")).unwrap();
    cluster.node(1).take_early_messages();
    cluster.node(1).take_late_messages();
}

#[test]
#[should_panic(expected = "no input until the log is durable")]
fn no_input_is_taken_between_early_and_late_messages() {
    let mut cluster = Cluster::elected(SLOW);
    cluster.node(1).take_early_messages();
    drop(cluster.node(1).tick());
}
