//! Which sessions are alive, as their leader sees it.
//!
//! Every replica tells the leader which clients it has heard of; the leader orders the end of a
//! session that nobody has heard of for its timeout.
//! Invariant: after an election, after a stall of its own, and after a time in which it heard of no
//! majority or could have nothing decided, a leader first listens for a full timeout: nobody's session
//! expires because servers or the network between them failed. What a leader appends that is no leader
//! any more may be decided all the same, when another takes over its log.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use gesmas_machine::SessionId;

/// A replica that did nothing for this long has stalled, nanoseconds.
const STALL: u64 = 1_000_000_000;

/// What is known of the sessions' clients.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    /// Sessions heard of here since the last report to the leader.
    heard_here: BTreeSet<SessionId>,
    /// When sessions were heard of, monotonic nanoseconds; kept while this replica leads.
    heard: BTreeMap<SessionId, u64>,
    /// Sessions whose end is ordered, or about to be.
    ending: BTreeSet<SessionId>,
    last_tick: u64,
    /// When peers were last heard of.
    peers: BTreeMap<u64, u64>,
    /// How many entries were decided at the last tick, and when that was last true of all or more
    /// were than before.
    decided: (u64, u64),
}

impl Liveness {
    /// A client of this replica was heard of.
    pub(super) fn hear(&mut self, session: SessionId) {
        self.heard_here.insert(session);
    }

    /// Takes the sessions to report.
    pub(super) fn take_heard(&mut self) -> Vec<SessionId> {
        std::mem::take(&mut self.heard_here).into_iter().collect()
    }

    /// A replica reports sessions to this one, which leads. An end that is still to be ordered is
    /// called off: from now on the client may be told that its session lives.
    pub(super) fn report(&mut self, sessions: &[SessionId], now: u64) {
        for session in sessions {
            self.heard.insert(*session, now);
            self.ending.remove(session);
        }
    }

    /// Whether the end of a session stands.
    pub(super) fn is_ending(&self, session: SessionId) -> bool {
        self.ending.contains(&session)
    }

    /// This replica begins to lead.
    pub(super) fn begin_to_lead(&mut self) {
        self.heard.clear();
        self.ending.clear();
    }

    /// Ends of sessions that were ordered may be lost.
    pub(super) fn order_ends_again(&mut self) {
        self.ending.clear();
    }

    /// A peer was heard of; it says something at every tick.
    pub(super) fn hear_peer(&mut self, peer: u64, now: u64) {
        self.peers.insert(peer, now);
    }

    /// Notices a stall of this replica, that it is cut off from a majority, so that what its peers'
    /// clients say does not reach it, and that nothing is decided, so that others may follow another
    /// leader. Called at every tick, with the entries of the log that are not decided.
    pub(super) fn tick(&mut self, now: u64, majority: usize, undecided: Range<u64>) {
        let recent = self.peers.values().filter(|heard| now.saturating_sub(**heard) <= STALL);
        let cut_off = recent.count() + 1 < majority;
        if undecided.is_empty() || undecided.start != self.decided.0 {
            self.decided = (undecided.start, now);
        }
        let stuck = now.saturating_sub(self.decided.1) > STALL;
        if cut_off || stuck || now.saturating_sub(self.last_tick) > STALL {
            self.heard.clear();
            self.ending.clear();
        }
        self.last_tick = now;
    }

    /// Sessions that nobody has heard of for their timeout, each said once.
    pub(super) fn expired(
        &mut self,
        sessions: impl Iterator<Item = (SessionId, u64)>,
        now: u64,
    ) -> Vec<SessionId> {
        let mut known = BTreeMap::new();
        let mut expired = Vec::new();
        for (id, timeout) in sessions {
            let heard = self.heard.get(&id).copied().unwrap_or(now);
            known.insert(id, heard);
            if now.saturating_sub(heard) > timeout && self.ending.insert(id) {
                expired.push(id);
            }
        }
        self.ending.retain(|id| known.contains_key(id));
        self.heard = known;
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SessionId = SessionId(1);

    fn expired(liveness: &mut Liveness, now: u64) -> Vec<SessionId> {
        liveness.expired([(ONE, 100)].into_iter(), now)
    }

    #[test]
    fn a_silent_session_expires_once() {
        let mut liveness = Liveness::default();
        liveness.begin_to_lead();
        assert!(expired(&mut liveness, 1_000).is_empty(), "the leader listens first");
        assert!(expired(&mut liveness, 1_100).is_empty());
        assert_eq!(expired(&mut liveness, 1_101), [ONE]);
        assert!(expired(&mut liveness, 1_102).is_empty());
    }

    #[test]
    fn a_report_keeps_it_alive() {
        let mut liveness = Liveness::default();
        assert!(expired(&mut liveness, 0).is_empty());
        liveness.report(&[ONE], 90);
        assert!(expired(&mut liveness, 190).is_empty());
        assert_eq!(expired(&mut liveness, 191), [ONE]);
    }

    #[test]
    fn a_report_calls_an_end_off() {
        let mut liveness = Liveness::default();
        assert!(expired(&mut liveness, 0).is_empty());
        assert_eq!(expired(&mut liveness, 101), [ONE]);
        assert!(liveness.is_ending(ONE));
        liveness.report(&[ONE], 102);
        assert!(!liveness.is_ending(ONE), "the client was heard of before its end was ordered");
        assert!(expired(&mut liveness, 202).is_empty());
        assert_eq!(expired(&mut liveness, 203), [ONE], "it is silent once more");
    }

    #[test]
    fn a_stall_of_the_leader_is_not_held_against_clients() {
        let mut liveness = Liveness::default();
        liveness.hear_peer(2, 0);
        liveness.tick(0, 2, 0..0);
        assert!(expired(&mut liveness, 0).is_empty());
        liveness.hear_peer(2, 60_000_000_000);
        liveness.tick(60_000_000_000, 2, 0..0);
        assert!(expired(&mut liveness, 60_000_000_000).is_empty());
    }

    #[test]
    fn a_leader_that_gets_nothing_decided_listens_anew() {
        let mut liveness = Liveness::default();
        let tick = |liveness: &mut Liveness, undecided: Range<u64>, half: u64| {
            let at = half * STALL / 2;
            liveness.hear_peer(2, at);
            liveness.tick(at, 2, undecided);
            liveness.expired([(ONE, 3 * STALL)].into_iter(), at)
        };
        for half in 0..20 {
            let undecided = if half < 2 { half..half + 1 } else { 2..9 };
            assert!(tick(&mut liveness, undecided, half).is_empty(), "it is stuck at {half}");
        }
        for half in 20..26 {
            let ended = tick(&mut liveness, half..half + 1, half);
            assert!(ended.is_empty(), "it listens at {half}");
        }
        let ended = (26..30).any(|half| !tick(&mut liveness, 99..99, half).is_empty());
        assert!(ended, "a silent session expires in the end");
    }

    #[test]
    fn a_leader_that_hears_of_no_majority_listens_anew() {
        let mut liveness = Liveness::default();
        let tick = |liveness: &mut Liveness, heard: bool, at: u64| {
            if heard {
                liveness.hear_peer(2, at);
            }
            liveness.tick(at, 2, 0..0);
            liveness.expired([(ONE, 3 * STALL)].into_iter(), at)
        };
        // Every half of a stall's length a tick; from the second on the peer is silent for long.
        for half in 0..20 {
            let ended = tick(&mut liveness, half < 2, half * STALL / 2);
            assert!(ended.is_empty(), "it is cut off at {half}");
        }
        for half in 20..26 {
            assert!(tick(&mut liveness, true, half * STALL / 2).is_empty(), "it listens at {half}");
        }
        let ended = (26..30).any(|half| !tick(&mut liveness, true, half * STALL / 2).is_empty());
        assert!(ended, "a silent session expires in the end");
    }
}
