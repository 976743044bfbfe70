//! Clusters of which nobody asks anything: all that happens there happens by itself.
//!
//! Clients keep their sessions alive, which is not ordered, and say nothing else. What is due by then
//! (timers, deadlines, timed waits) must go off in its time, whichever replica leads: the lead passes
//! from one to the other just before something is due.
//! Not here: the lateness that clients see themselves (`workloads/yard.rs`).

use super::{Cluster, Event, stage::Stage};
use crate::{
    schedule::{MILLISECOND, SECOND},
    verdict::{Checked, demand},
};

/// Something that is due goes off within a round of messages, and some turns.
const OVERDUE_BOUND: u64 = SECOND;
/// The lead passes from one replica that is in order to another within this.
pub(super) const PASSING: u64 = SECOND;
/// Drains that begin with clients that ask for nothing do so for so long.
const HUSH: u64 = 12 * SECOND;
/// What is due before this, and not before the next look, is what a lead changes for.
const SOON: std::ops::Range<u64> = 50 * MILLISECOND..110 * MILLISECOND;
/// Delays of frames that a lead changes before something is due, at most.
const EARLIER: u64 = 6;

impl Cluster {
    /// Nobody asks for anything from now on. Another replica takes the lead, and at times somebody has
    /// just asked for very much.
    pub(super) fn begin_quietly(&mut self) {
        self.counts.quiet_drains += 1;
        self.hush_until = self.schedule.now() + HUSH;
        if let Some(host) = self.follower_in_order() {
            self.take_lead(host);
            if self.prng.permille(300) {
                self.flood(host);
            }
        }
    }

    fn follower_in_order(&mut self) -> Option<usize> {
        let Stage::Drain { core, .. } = &self.stage else { return None };
        let follows = |host: &&usize| {
            let process = self.hosts[**host].process.as_ref();
            process.is_some_and(|found| !found.replica.is_leading() && !found.is_closing())
        };
        core.iter().find(follows).copied()
    }

    /// A replica takes the lead in a cluster that is in order.
    pub(super) fn take_lead(&mut self, host: usize) {
        let process = self.hosts[host].process.as_mut().filter(|process| !process.is_closing());
        if process.is_some_and(|process| process.replica.handle_take_lead().is_ok()) {
            self.counts.quiet_transfers += 1;
            self.lead_passed = self.schedule.now();
            self.schedule_turn(host);
        }
    }

    /// Looks for the next that is due, and at times lets another replica lead just before it.
    pub(super) fn lead_changes_in_time(&mut self, leader: Option<usize>) {
        let hubless = matches!(self.stage, Stage::Drain { hub: None, .. });
        let settled = self.in_order_since().is_some_and(|since| since < self.schedule.now());
        if !hubless || !settled || self.schedule.now() > self.hush_until || self.prng.permille(300)
        {
            return;
        }
        let due = self.next_due(leader).and_then(|(due, now)| due.checked_sub(now));
        if let Some(due) = due.filter(|due| SOON.contains(due))
            && let Some(host) = self.follower_in_order()
        {
            let earlier = self.prng.below(EARLIER * self.profile.delay);
            self.schedule.after(due.saturating_sub(earlier), Event::TakeLead(host));
        }
    }

    /// When the next is due at a leader, and what its clock says.
    fn next_due(&mut self, leader: Option<usize>) -> Option<(u64, u64)> {
        let process = self.hosts[leader?].process.as_mut()?;
        let now = process.replica.leader_time()?;
        let due = process.replica.machine().next_due()?;
        Some((due.0, now.0))
    }

    /// With a leader and no faults nothing is overdue for long, whether or not anybody asks for
    /// anything.
    pub(super) fn check_overdue(&mut self, leader: Option<usize>) -> Checked {
        let now = self.schedule.now();
        let process = leader.and_then(|host| self.hosts[host].process.as_mut());
        if let Some(time) = process.and_then(|process| process.replica.leader_time()) {
            self.leader_times.note(time.0, now);
        }
        let since = self.in_order_since().filter(|since| *since < now);
        let (Some(since), Some((due, time))) = (since, self.next_due(leader)) else {
            return Ok(());
        };
        // A leader whose clock is ahead of the one before finds much overdue at once, and mends it.
        let reached = self.leader_times.reached(due).unwrap_or(now).max(since);
        let in_time = time < due + OVERDUE_BOUND || now < reached + OVERDUE_BOUND;
        demand(in_time || self.options.outside, "overdue", || {
            let state = self.hosts.iter().map(super::host::Host::standing).collect::<Vec<_>>();
            format!("something is due for {} ms: {state:#?}", (time - due) / MILLISECOND)
        })
    }
}
