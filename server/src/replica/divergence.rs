//! Divergence: replicas compare their states by votes, and one whose state is another stops.
//!
//! ```text
//! Checkpoint ─► vote ─► Agreed: same ─► go on
//!                    ├► Agreed: another ─┐     evidence is kept, clients go elsewhere,
//!                    └► NoAgreement ─────┴──►  peers tell their sums ─► first difference ─► stop
//! ```
//!
//! The replica that stops names the first record that differs: it asks somebody who voted otherwise
//! for the sums of its records, page by page. It stays for a while after that, since others may ask
//! it. Both sides keep their state of that step as evidence; whoever stops also sets its snapshots
//! aside that are younger than the last agreement, so that its next life goes on from an older one
//! and the log, or from a peer's.
//! Invariants: a replica that knows of its divergence answers no client, gives nobody a snapshot and
//! writes none; it stops whether or not it can name what differs.
//! Not here: how votes are judged (the machine), and files (`crate::snapshot`).
//! Source: design of gesmas, section 4, point 13.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_machine::{
    Ballot, Command, Effect, Engine, PlantedBug, RecordName, Snapshot, Step, Sum, Sums,
};

use super::{Replica, ReplicaError, peer::PeerMessage};
use crate::snapshot::{Evidence, Job, OwnDivergence, SnapshotError};

/// Records whose sums travel in one message: a name has at most 320 bytes.
const PAGE: usize = 1_024;
/// A replica that cannot name what differs stops after this long, nanoseconds.
const PATIENCE: u64 = 10_000_000_000;
/// It stays for so long after somebody asked it, nanoseconds.
const LINGER: u64 = 2_000_000_000;
/// States of the past that are kept for replicas that have diverged.
const KEPT: usize = 2;

/// Why a replica has diverged, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diverged {
    /// The replica.
    pub replica: u64,
    /// The step after which states were compared.
    pub step: Step,
    /// Hash of its own state then, if it is known.
    pub own: Option<Sum>,
    /// Hash of the majority's state; none without a majority.
    pub agreed: Option<Sum>,
    /// The first record that differs from somebody else's, if it was found.
    pub first: Option<RecordName>,
    /// Whether its state of that step is kept as evidence.
    pub evidence: bool,
}

impl std::fmt::Display for Diverged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { replica, step, own, agreed, first, evidence } = self;
        write!(f, "replica {replica} has diverged: after step {step} its state was ")?;
        match own {
            Some(own) => write!(f, "{own}")?,
            None => f.write_str("one that it no longer knows")?,
        }
        match agreed {
            Some(agreed) => write!(f, ", that of a majority was {agreed}")?,
            None => f.write_str(", and no majority had the same")?,
        }
        match first {
            Some(first) => write!(f, "; the first that differs is {first}")?,
            None => f.write_str("; what differs first could not be found")?,
        }
        if *evidence {
            write!(f, "; its state then is kept as snapshots/{step:016}.snapshot.evidence")?;
        }
        f.write_str(". Follow \"A replica has diverged\" in docs/operations.md")
    }
}

/// What a replica knows of divergence.
#[derive(Debug, Default)]
pub(super) struct Divergence {
    /// Ballot promised when this life began.
    born: Ballot,
    /// Own states of the past that somebody may ask for.
    kept: BTreeMap<Step, Snapshot>,
    /// Steps whose evidence was or is being written.
    evidence: BTreeSet<Step>,
    /// This replica's own, if it has diverged.
    own: Option<Case>,
    /// Replicas that were found to have diverged.
    others: u64,
}

/// The divergence of this replica.
#[derive(Debug)]
struct Case {
    known: Diverged,
    /// When it was noticed, monotonic nanoseconds.
    since: u64,
    /// Who can be asked, in turn.
    peers: Vec<u64>,
    /// Who was asked last, and when.
    asked: Option<(u64, u64)>,
    /// The last record that was compared.
    after: Option<RecordName>,
    /// Whether nobody needs to be asked any more.
    settled: bool,
    /// Whether evidence is kept, or cannot be.
    kept: bool,
    /// When somebody last asked this replica.
    heard: Option<u64>,
}

impl Divergence {
    /// `born` is the ballot that the replica has promised before this life.
    pub(super) fn new(born: Ballot) -> Self {
        Self { born, ..Self::default() }
    }

    pub(super) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    fn keep(&mut self, step: Step, state: &Snapshot) {
        self.kept.entry(step).or_insert_with(|| state.clone());
        while self.kept.len() > KEPT {
            self.kept.pop_first();
        }
    }
}

impl<E: Engine> Replica<E> {
    /// Whether this replica has found that its state is not the group's, and is about to stop.
    pub fn has_diverged(&self) -> bool {
        self.divergence.is_own()
    }

    /// Replicas that this one has seen diverge.
    pub fn divergences(&self) -> u64 {
        self.divergence.others
    }

    /// Takes part in the comparison of states.
    pub(super) fn compare(&mut self, effect: &Effect) {
        let replica = self.node.config().replica;
        match *effect {
            Effect::Checkpoint { step, hash } => {
                self.outstanding.add(Command::Vote { replica, step, hash }.into());
            }
            Effect::Agreed { step, hash } => {
                let own = self.machine.hash_after(step);
                let ignored = self.has_planted(PlantedBug::DivergenceIgnored);
                if own.is_some_and(|own| own != hash) && !ignored {
                    self.diverged(step, Some(hash));
                }
            }
            // A reign that had begun before this life judged an earlier one: operators have started
            // the replicas again since.
            Effect::NoAgreement { step } if self.machine.ballot() > self.divergence.born => {
                self.diverged(step, None);
            }
            Effect::VotedOtherwise { step, replica: other } if other != replica => {
                tracing::error!(replica = other, %step, "a replica had another state than the majority");
                self.divergence.others += 1;
                self.keep_state_after(step);
            }
            _ => {}
        }
    }

    /// This replica's state is not the group's. A later comparison counts while nothing is found.
    fn diverged(&mut self, step: Step, agreed: Option<Sum>) {
        let replica = self.node.config().replica;
        let own = self.machine.hash_after(step);
        let first_time = self.divergence.own.is_none();
        let of_use = self.machine.state_after(step).is_some();
        if self.divergence.own.as_ref().is_some_and(|case| case.settled || !of_use) {
            return;
        }
        tracing::error!(%step, "this replica has diverged: it serves nobody any more, and stops");
        let votes: Vec<_> = self.machine.votes(step).collect();
        let others = votes.iter().filter(|(peer, vote)| {
            let right = match agreed {
                Some(agreed) => *vote == agreed,
                None => Some(*vote) != own,
            };
            *peer != replica && right
        });
        let peers = others.map(|(peer, _)| *peer).collect();
        let known = Diverged { replica, step, own, agreed, first: None, evidence: false };
        let since = self.divergence.own.as_ref().map_or(self.now.monotonic, |case| case.since);
        self.divergence.own = Some(Case {
            known,
            since,
            peers,
            asked: None,
            after: None,
            settled: false,
            kept: false,
            // Where nobody agrees, everybody asks everybody.
            heard: agreed.is_none().then_some(self.now.monotonic),
        });
        self.keep_state_after(step);
        if first_time {
            let last_agreed = self.machine.agreed_with(replica).unwrap_or(Step(0)).0;
            let leave_one = agreed.is_none();
            self.keep_evidence(step, Some(OwnDivergence { last_agreed, leave_one }));
        } else {
            self.keep_evidence(step, None);
        }
        self.ask_sums();
    }

    fn keep_state_after(&mut self, step: Step) {
        if let Some(state) = self.machine.state_after(step) {
            self.divergence.keep(step, state);
        }
    }

    fn keep_evidence(&mut self, step: Step, own: Option<OwnDivergence>) {
        if self.divergence.evidence.insert(step) || own.is_some() {
            let state = self.divergence.kept.get(&step).cloned().map(Box::new);
            self.snapshots.add_job(Job::Evidence(Evidence { step: step.0, state, own }));
        }
    }

    /// Evidence is kept, or cannot be.
    pub(super) fn evidence_kept(&mut self, step: u64, result: Result<bool, SnapshotError>) {
        let kept = result.unwrap_or_else(|error| {
            tracing::error!(%error, step, "the evidence of a divergence cannot be kept");
            false
        });
        let case = self.divergence.own.as_mut().filter(|case| case.known.step.0 == step);
        if let Some(case) = case {
            case.kept = true;
            case.known.evidence = kept;
        }
    }

    /// Asks the next peer, or the same one for the next page.
    fn ask_sums(&mut self) {
        let now = self.now.monotonic;
        let Some(case) = self.divergence.own.as_mut().filter(|case| !case.settled) else { return };
        let Some(&peer) = case.peers.first() else { return };
        case.asked = Some((peer, now));
        let ask = PeerMessage::AskSums { step: case.known.step, after: case.after.clone() };
        self.outgoing.push((peer, ask));
    }

    /// Goes on with another peer, from the beginning.
    fn ask_another(&mut self) {
        if let Some(case) = &mut self.divergence.own
            && !case.peers.is_empty()
        {
            case.peers.rotate_left(1);
            case.after = None;
            self.ask_sums();
        }
    }

    /// A peer that has diverged, or sees that nobody agrees, asks for sums.
    pub(super) fn asked_sums(&mut self, from: u64, step: Step, after: Option<RecordName>) {
        self.keep_state_after(step);
        if let Some(case) = &mut self.divergence.own {
            case.heard = Some(self.now.monotonic);
        }
        let Some(state) = self.divergence.kept.get(&step) else {
            return self.outgoing.push((from, PeerMessage::NoSums { step }));
        };
        let sums = state.sums(after.as_ref(), PAGE);
        self.outgoing.push((from, PeerMessage::Sums { step, after, sums }));
        self.keep_evidence(step, None);
    }

    /// A peer has told the sums of its records.
    pub(super) fn sums_came(
        &mut self,
        from: u64,
        step: Step,
        after: Option<RecordName>,
        sums: &Sums,
    ) {
        let Some(case) = &mut self.divergence.own else { return };
        let expected = case.asked.is_some_and(|(peer, _)| peer == from);
        if case.settled || !expected || case.known.step != step || case.after != after {
            return;
        }
        let Some(own) = self.divergence.kept.get(&step) else { return };
        if let Some(first) = own.first_difference(after.as_ref(), sums) {
            tracing::error!(%step, peer = from, %first, "the first difference");
            case.known.first = Some(first);
            case.settled = true;
        } else if let Some((last, _)) = sums.last() {
            case.after = Some(last.clone());
            self.ask_sums();
        } else {
            self.ask_another();
        }
    }

    /// A peer does not have its state of that step any more.
    pub(super) fn no_sums(&mut self, from: u64, step: Step) {
        let asked = self.divergence.own.as_ref().and_then(|case| Some((case.asked?.0, case)));
        if asked.is_some_and(|(peer, case)| peer == from && case.known.step == step) {
            // Not at once: should nobody have it, the next comparison may still help.
            if let Some(case) = &mut self.divergence.own {
                case.peers.rotate_left(1);
                case.after = None;
            }
        }
    }

    /// What a tick brings: questions again, and the end.
    ///
    /// # Errors
    /// When the replica must stop because it has diverged.
    pub(super) fn divergence_tick(&mut self) -> Result<(), ReplicaError> {
        let now = self.now.monotonic;
        let Some(case) = &mut self.divergence.own else { return Ok(()) };
        if now.saturating_sub(case.since) >= PATIENCE {
            case.settled = true;
            case.kept = true;
        }
        let lingers = case.heard.is_some_and(|heard| now.saturating_sub(heard) < LINGER);
        if case.settled && case.kept && !lingers {
            return Err(ReplicaError::Diverged(Box::new(case.known.clone())));
        }
        let silent =
            case.asked.is_none_or(|(_, at)| now.saturating_sub(at) >= self.settings.resend_after);
        if silent {
            self.ask_another();
        }
        Ok(())
    }
}
