//! Ballots, as the rest of the program sees them.
//!
//! Invariant: ballots of one configuration are ordered as omnipaxos orders them: by number, then
//! priority, then replica. Ballots of different configurations must not be compared.

use omnipaxos::ballot_leader_election::Ballot as PaxosBallot;

use crate::log::RecordedBallot;

/// What a leader is elected with. Number, priority and replica decide, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// Rises with every election.
    pub number: u32,
    /// Prefers some replicas over others.
    pub priority: u32,
    /// Whose ballot it is.
    pub replica: u64,
    /// The configuration in which it was drawn.
    pub configuration: u32,
}

impl From<PaxosBallot> for Ballot {
    fn from(ballot: PaxosBallot) -> Self {
        Self {
            number: ballot.n,
            priority: ballot.priority,
            replica: ballot.pid,
            configuration: ballot.config_id,
        }
    }
}

impl From<RecordedBallot> for Ballot {
    fn from(ballot: RecordedBallot) -> Self {
        from_record(ballot).into()
    }
}

impl From<Ballot> for RecordedBallot {
    fn from(ballot: Ballot) -> Self {
        Self {
            configuration: ballot.configuration,
            number: ballot.number,
            priority: ballot.priority,
            replica: ballot.replica,
        }
    }
}

pub(crate) fn to_record(ballot: PaxosBallot) -> RecordedBallot {
    RecordedBallot {
        configuration: ballot.config_id,
        number: ballot.n,
        priority: ballot.priority,
        replica: ballot.pid,
    }
}

pub(crate) fn from_record(ballot: RecordedBallot) -> PaxosBallot {
    PaxosBallot {
        config_id: ballot.configuration,
        n: ballot.number,
        priority: ballot.priority,
        pid: ballot.replica,
    }
}
