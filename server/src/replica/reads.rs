//! Linearizable reads without an entry in the log.
//!
//! A read waits for a *read point*: the end of the leader's log when the question reached it,
//! given out only after a majority has confirmed that no later ballot was promised before. Then
//! the read waits until this replica has applied everything below it. Many reads share a question,
//! and many questions a confirmation. Read points are of one configuration, like all indices.
//! Invariant: every update that was acknowledged before the read came lies below its read point.
//! Stale reads skip all this, unless their client has seen more than this replica has: they wait for a
//! read point as well, and then this replica has all that anybody can have seen. So no read waits for a
//! step that never comes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gesmas_machine::{Ballot, Position, Read, SessionId};

/// Names a read for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadId(pub u64);

/// What waits for a recent enough state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The read; none when only the wait itself matters.
    pub read: Option<Read>,
    /// Where in the history the client has seen the state already: it must not be answered from before.
    /// A later epoch is later than all of an earlier one.
    pub seen: Position,
    /// Whether to take the state as it is here, if it is recent enough for what the client has seen.
    pub stale: bool,
    /// The session that the leader has heard of when this is answered, unless the answer takes longer than
    /// the session's timeout.
    pub alive: Option<SessionId>,
}

/// Reads of this replica's clients.
#[derive(Debug, Default)]
pub(super) struct LocalReads {
    /// Reads that have no question yet.
    fresh: Vec<(ReadId, Question)>,
    /// Reads by the question that they wait for, with the time at which it was asked.
    asked: BTreeMap<u64, (u64, Vec<(ReadId, Question)>)>,
    /// Reads that wait until everything below an index is applied.
    waiting: VecDeque<(u64, ReadId, Question)>,
    /// Until when a question that is asked again names its session. Later its answer is worth nothing to
    /// the client, which counts from when it asked; and a session must not outlive a client that is gone
    /// because a question of it is not answered.
    named_until: BTreeMap<ReadId, u64>,
    next_round: u64,
}

impl LocalReads {
    /// No reads yet; questions are numbered from `round` on. Each life of a replica uses other
    /// numbers, so that the answer to a question of an earlier life is never taken for one to a
    /// question of this one, which it would be too old for.
    pub(super) fn starting_at(round: u64) -> Self {
        Self { next_round: round, ..Self::default() }
    }

    /// A read came; should it have to be asked for again, it names its session until a time.
    pub(super) fn add(&mut self, id: ReadId, question: Question, named_until: u64) {
        if question.alive.is_some() {
            self.named_until.insert(id, named_until);
        }
        if question.stale {
            self.waiting.push_back((0, id, question));
        } else {
            self.fresh.push((id, question));
        }
    }

    /// A stale read whose client has seen more than there is here: it waits for a read point.
    pub(super) fn ask_first(&mut self, id: ReadId, question: Question) {
        self.fresh.push((id, Question { stale: false, ..question }));
    }

    /// A read is served again later, because what it follows is not applied.
    pub(super) fn put_back(&mut self, id: ReadId, question: Question) {
        self.waiting.push_back((0, id, question));
    }

    /// How many reads there are.
    pub(super) fn len(&self) -> usize {
        let asked: usize = self.asked.values().map(|(_, reads)| reads.len()).sum();
        self.fresh.len() + asked + self.waiting.len()
    }

    /// The client no longer waits.
    pub(super) fn forget(&mut self, id: ReadId) {
        self.fresh.retain(|(read, _)| *read != id);
        self.asked.values_mut().for_each(|(_, reads)| reads.retain(|(read, _)| *read != id));
        self.waiting.retain(|(_, read, _)| *read != id);
        self.named_until.remove(&id);
    }

    /// Questions asked before a time were lost, or all of them: their reads ask again.
    pub(super) fn ask_again(&mut self, before: u64) {
        let lost: Vec<_> = self
            .asked
            .iter()
            .filter(|(_, (at, _))| *at < before)
            .map(|(round, _)| *round)
            .collect();
        for round in lost {
            let (_, reads) = self.asked.remove(&round).expect("it was just found");
            self.fresh.extend(reads);
        }
    }

    /// Whether there is something to ask.
    pub(super) fn has_question(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// The sessions that the leader is to hear of with the next question: again, when an earlier one
    /// was lost.
    pub(super) fn alive(&self, now: u64) -> impl Iterator<Item = SessionId> {
        let in_time = move |id| self.named_until.get(id).is_some_and(|until| now <= *until);
        let fresh = self.fresh.iter().filter(move |(id, _)| in_time(id));
        fresh.filter_map(|(_, question)| question.alive)
    }

    /// The next question, if there is something to ask.
    pub(super) fn take_question(&mut self, now: u64) -> Option<u64> {
        if self.fresh.is_empty() {
            return None;
        }
        self.next_round += 1;
        self.asked.insert(self.next_round, (now, std::mem::take(&mut self.fresh)));
        Some(self.next_round)
    }

    /// The leader's answer.
    pub(super) fn answered(&mut self, round: u64, index: u64) {
        if let Some((_, reads)) = self.asked.remove(&round) {
            self.waiting.extend(reads.into_iter().map(|(id, read)| (index, id, read)));
        }
    }

    /// Takes the reads that may be served when everything below `applied` is.
    pub(super) fn take_ready(&mut self, applied: u64) -> Vec<(ReadId, Question)> {
        if self.waiting.iter().all(|(index, ..)| *index > applied) {
            return Vec::new();
        }
        let (ready, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(index, ..)| *index <= applied);
        self.waiting = waiting.into();
        for (_, id, _) in &ready {
            self.named_until.remove(id);
        }
        ready.into_iter().map(|(_, id, read)| (id, read)).collect()
    }
}

/// Questions to a leader that wait for a majority to confirm its ballot.
#[derive(Debug, Default)]
pub(super) struct ReadPoints {
    /// Number of the confirmation that is under way or was last.
    number: u64,
    /// Questions that the next confirmation will cover: who asks, its round, the read point.
    fresh: Vec<(u64, u64, u64)>,
    /// Questions covered by the confirmation that is under way.
    confirming: Vec<(u64, u64, u64)>,
    confirmed_by: BTreeSet<u64>,
}

impl ReadPoints {
    /// A replica asks; `index` is the end of the leader's log now.
    pub(super) fn ask(&mut self, from: u64, round: u64, index: u64) {
        self.fresh.push((from, round, index));
    }

    /// Begins a confirmation, if there is something to confirm and none is under way.
    pub(super) fn begin(&mut self) -> Option<u64> {
        if self.fresh.is_empty() || !self.confirming.is_empty() {
            return None;
        }
        self.confirming = std::mem::take(&mut self.fresh);
        self.confirmed_by.clear();
        self.number += 1;
        Some(self.number)
    }

    /// The number under way is asked for again, should it have been lost.
    pub(super) fn under_way(&self) -> Option<u64> {
        (!self.confirming.is_empty()).then_some(self.number)
    }

    /// A peer confirms. Some with the questions to answer when a majority has, the leader included.
    pub(super) fn confirmed(
        &mut self,
        peer: u64,
        number: u64,
        majority: usize,
    ) -> Option<Vec<(u64, u64, u64)>> {
        if number != self.number || self.confirming.is_empty() {
            return None;
        }
        self.confirmed_by.insert(peer);
        let enough = self.confirmed_by.len() + 1 >= majority;
        enough.then(|| std::mem::take(&mut self.confirming))
    }

    /// This replica leads no more, or with another ballot.
    pub(super) fn clear(&mut self) {
        self.fresh.clear();
        self.confirming.clear();
        self.confirmed_by.clear();
    }
}

/// Whether a replica that has promised `promised` may confirm a leader's ballot.
pub(super) fn confirms(promised: Ballot, asked: Ballot) -> bool {
    promised == asked
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SessionId = SessionId(1);

    /// The leader hears of a session with the question that answers its keep-alive. A question that is
    /// lost is asked again, and the report that went with it is as lost.
    #[test]
    fn a_question_that_is_asked_again_names_its_session_again() {
        let mut reads = LocalReads::starting_at(7);
        reads.add(
            ReadId(1),
            Question { read: None, seen: Position::default(), stale: false, alive: Some(ONE) },
            15,
        );
        assert_eq!(reads.alive(10).collect::<Vec<_>>(), [ONE]);
        let lost = reads.take_question(10).unwrap();
        assert_eq!(reads.alive(10).count(), 0, "nothing waits to be asked");
        reads.ask_again(11);
        assert_eq!(reads.alive(15).collect::<Vec<_>>(), [ONE]);
        assert_eq!(reads.alive(16).count(), 0, "nobody was heard of for a timeout");
        let asked = reads.take_question(20).unwrap();
        reads.answered(lost, 0);
        assert!(reads.take_ready(100).is_empty(), "the answer to the lost question is too old");
        reads.answered(asked, 5);
        assert_eq!(reads.take_ready(5).len(), 1);
        assert!(reads.named_until.is_empty(), "nothing is kept of what is answered");
    }
}
