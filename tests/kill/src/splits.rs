//! Splits of the network between replicas, as sets of directions that are cut.
//!
//! The last three are the cases of partial connectivity that OmniPaxos claims to survive: each
//! leaves a replica that reaches a majority both ways, so calls must go on.
//! Invariant: a split leaves such a replica; the tests look for it.
//! Not here: how a direction is cut (`network.rs`), for how long (`nemesis.rs`).

use std::collections::BTreeSet;

/// From one replica to another.
pub(crate) type Direction = (usize, usize);

/// A kind of split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Split {
    /// One replica, not the leader, has no peers.
    Follower,
    /// The leader has no peers.
    Leader,
    /// What the leader sends to one peer is lost; what that one sends arrives.
    OneWay,
    /// One replica reaches all others, and they reach only it; the leader is one of the others.
    QuorumLoss,
    /// The replicas form a chain, with the leader at one end.
    Chained,
    /// One replica has missed the last entries; then the leader is alone, and the others reach only
    /// that one.
    Constrained,
}

impl Split {
    /// All kinds.
    pub(crate) const ALL: [Self; 6] = [
        Self::Follower,
        Self::Leader,
        Self::OneWay,
        Self::QuorumLoss,
        Self::Chained,
        Self::Constrained,
    ];

    /// Its name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Follower => "follower isolated",
            Self::Leader => "leader isolated",
            Self::OneWay => "one way",
            Self::QuorumLoss => "quorum loss",
            Self::Chained => "chained",
            Self::Constrained => "constrained election",
        }
    }

    /// What is cut before the split proper: the replica that is to be behind hears nobody.
    pub(crate) fn before(self, order: &[usize]) -> BTreeSet<Direction> {
        match self {
            Self::Constrained => isolate(order[1], order),
            _ => BTreeSet::new(),
        }
    }

    /// What is cut, among replicas of which the first is the leader.
    pub(crate) fn directions(self, order: &[usize]) -> BTreeSet<Direction> {
        let (leader, hub) = (order[0], order[1]);
        match self {
            Self::Follower => isolate(hub, order),
            Self::Leader => isolate(leader, order),
            Self::OneWay => BTreeSet::from([(leader, hub)]),
            Self::QuorumLoss => all_but(order, |a, b| a == hub || b == hub),
            Self::Chained => {
                let place = |replica| order.iter().position(|other| *other == replica);
                let chained =
                    |a, b| place(a).zip(place(b)).is_some_and(|(a, b)| usize::abs_diff(a, b) == 1);
                all_but(order, chained)
            }
            Self::Constrained => {
                all_but(order, |a, b| (a == hub || b == hub) && a != leader && b != leader)
            }
        }
    }
}

fn isolate(alone: usize, order: &[usize]) -> BTreeSet<Direction> {
    all_but(order, |a, b| a != alone && b != alone)
}

/// All directions but those that stay.
fn all_but(order: &[usize], stays: impl Fn(usize, usize) -> bool) -> BTreeSet<Direction> {
    let all = order.iter().flat_map(|a| order.iter().map(|b| (*a, *b)));
    all.filter(|(a, b)| a != b && !stays(*a, *b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_leaves_a_replica_that_reaches_a_majority() {
        for order in [vec![2, 0, 1], vec![4, 1, 3, 0, 2]] {
            for split in Split::ALL {
                let cut = split.directions(&order);
                assert!(!cut.is_empty(), "{split:?} cuts something");
                let reaches =
                    |a: usize, b: usize| a == b || !cut.contains(&(a, b)) && !cut.contains(&(b, a));
                let majority = order
                    .iter()
                    .any(|a| order.iter().filter(|b| reaches(*a, **b)).count() > order.len() / 2);
                assert!(majority, "{split:?} leaves nobody");
            }
        }
    }

    #[test]
    fn the_leader_of_five_loses_its_quorum() {
        let order = [0, 1, 2, 3, 4];
        let cut = Split::QuorumLoss.directions(&order);
        let left = (1..5).filter(|peer| !cut.contains(&(0, *peer))).count();
        assert_eq!(left, 1);
        assert_eq!(
            Split::Constrained.directions(&order).iter().filter(|cut| cut.0 == 0).count(),
            4
        );
    }
}
