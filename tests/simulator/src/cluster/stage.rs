//! The stages of a run, and what must hold at their ends.
//!
//! Liveness is demanded in virtual time: with a majority in order there is a leader after ten
//! election timeouts, and everything that is pending ends before the bound; what nobody would ever
//! let go on is given up by its clients first.

use std::collections::BTreeSet;

use gesmas_machine::Machine;

use super::{Cluster, ELECTION_TICKS, Event, TICK, quiet::PASSING};
use crate::{
    engine::SimulatedEngine,
    schedule::{MILLISECOND, SECOND},
    verdict::{Checked, Violation, demand},
    workloads::Facts,
};

/// Every run orders at least so many commands.
const COMMANDS_LEAST: u64 = 1_000;
/// Of which so many block.
const BLOCKED_LEAST: u64 = 100;
/// As long as faults last no longer than this for it.
const FAULTS_LONGER: u64 = 120 * SECOND;
/// A majority in order has a leader by then: ten election timeouts.
const LEADER_BOUND: u64 = 10 * ELECTION_TICKS * TICK;
/// How long nothing is pending before a run goes on.
const CALM: u64 = 2 * SECOND;
/// Entries that may be ordered in that time: votes, acknowledgements, and what was set to come later.
const CALM_ENTRIES: u64 = 200;
/// Clients give up what may starve.
const GIVE_UP: u64 = 5 * SECOND;
/// So long before that it is looked which calls wait.
const STUCK_BEFORE: u64 = 200 * MILLISECOND;
/// If no reply has come for so long.
const QUIET: u64 = 500 * MILLISECOND;
/// If all were in order for so long.
const STUCK_AFTER: u64 = 4 * SECOND;
/// How long a replica whose power is to fail has to promise itself a ballot.
const UNHEARD: u64 = 100 * MILLISECOND;
/// The least length of the drain, longer than the timeout of any session.
const DRAIN_LEAST: u64 = 9 * SECOND;
/// Nothing is pending by then.
const DRAIN_BOUND: u64 = 45 * SECOND;
/// All replicas are equal by then.
const CONVERGE_BOUND: u64 = 20 * SECOND;
/// From then on the sessions of living clients must live: they had time to reach a replica, and
/// no end of a session that was ordered before is on its way any more.
const SETTLED: u64 = 4 * SECOND;

/// The same when all are back: a replica that had promised more than the others takes a while to
/// return, and its clients may try it more than once.
const BACK: u64 = 10 * SECOND;

/// Time between two looks at the stage.
const CHECK: u64 = 50 * MILLISECOND;
/// Looks between two at whether the leader is wrong.
const RELIEF: u64 = 20;

/// The stages.
#[derive(Debug)]
pub(super) enum Stage {
    /// Everything happens.
    Faults { until: u64 },
    /// Only these replicas are in order, and nothing new happens.
    /// With a hub, they reach each other through it only.
    Drain { since: u64, core: Vec<usize>, hub: Option<usize> },
    /// All replicas are in order.
    Converge { since: u64, settled: u64 },
    /// Nothing is left to happen.
    Done,
}

impl Stage {
    pub(super) fn is_draining(&self) -> bool {
        !matches!(self, Self::Faults { .. })
    }

    /// Whether clients give up what may starve.
    pub(super) fn gives_up(&self, now: u64) -> bool {
        match self {
            Self::Faults { .. } => false,
            Self::Drain { since, .. } => now > since + GIVE_UP,
            Self::Converge { .. } | Self::Done => true,
        }
    }

    /// Whether the stage itself keeps two replicas from each other.
    pub(super) fn keeps_apart(&self, from: usize, to: usize) -> bool {
        match self {
            Self::Drain { core, hub, .. } => {
                let through_hub = hub.is_none_or(|hub| from == hub || to == hub);
                !(core.contains(&from) && core.contains(&to) && through_hub)
            }
            _ => false,
        }
    }
}

impl Cluster {
    /// Whether the cluster has been in order for long enough to demand everything of it.
    pub(super) fn is_in_order(&self) -> bool {
        if self.schedule.now() < self.disturbed {
            return false;
        }
        match self.stage {
            Stage::Faults { .. } => false,
            Stage::Drain { since, .. } => self.schedule.now() > since + SETTLED,
            Stage::Converge { settled, .. } => self.schedule.now() > settled,
            Stage::Done => true,
        }
    }

    /// Since when what is due by itself comes in time, if it does.
    pub(super) fn in_order_since(&self) -> Option<u64> {
        match self.stage {
            Stage::Drain { since, .. } => {
                Some(since.max(self.behind).max(self.disturbed) + LEADER_BOUND)
            }
            _ => None,
        }
    }

    /// Replicas that clients may try.
    pub(super) fn replicas_for_clients(&self) -> Vec<usize> {
        match &self.stage {
            // Another one may reach the leader through the hub only, which forwards for nobody.
            Stage::Drain { hub: Some(hub), .. } => vec![*hub],
            Stage::Drain { core, .. } => core.clone(),
            _ => (0..self.hosts.len()).collect(),
        }
    }

    /// Goes on to the next stage when this one is over.
    pub(super) fn check(&mut self) -> Checked {
        let now = self.schedule.now();
        self.schedule.after(CHECK, Event::Check);
        match &self.stage {
            Stage::Faults { until } if *until <= now && self.has_worked_enough(*until) => {
                self.begin_drain();
            }
            Stage::Drain { since, .. } => {
                let since = *since;
                self.check_drain(since)?;
            }
            Stage::Converge { since, .. } => {
                let since = *since;
                if self.are_equal() {
                    self.stage = Stage::Done;
                } else if (now - since) / CHECK % RELIEF == RELIEF - 1 {
                    self.relieve_wrong_leader();
                }
                let applied: Vec<_> = self
                    .hosts
                    .iter()
                    .filter_map(|host| host.process.as_ref())
                    .map(|process| process.replica.applied())
                    .collect();
                if self.options.outside && now >= since + CONVERGE_BOUND {
                    self.stage = Stage::Done;
                    return Ok(());
                }
                demand(now < since + CONVERGE_BOUND, "liveness", || {
                    let length = self.history.length();
                    format!("the replicas do not become equal: {applied:?} of {length}")
                })?;
            }
            Stage::Faults { .. } | Stage::Done => {}
        }
        Ok(())
    }

    /// Whether enough has been ordered and has blocked to stop the faults. A cluster that faults keep
    /// from its work for ever is let go.
    fn has_worked_enough(&self, until: u64) -> bool {
        let (commands, blocked) = self.history.work();
        let enough = commands >= COMMANDS_LEAST && blocked >= BLOCKED_LEAST;
        enough || self.schedule.now() > until + FAULTS_LONGER
    }

    /// Faults stop for a majority; the others stay down or cut off.
    fn begin_drain(&mut self) {
        let now = self.schedule.now();
        // Faults to come come now: what they do to a disk counts below.
        for host in 0..self.hosts.len() {
            if self.hosts[host].doomed {
                self.crash(host);
            }
        }
        let mut core: Vec<usize> = (0..self.hosts.len()).collect();
        core.retain(|host| !self.hosts[*host].wiped && self.hosts[*host].wrong.is_none());
        // A cluster is founded by all of its members.
        let founded = self.hosts.iter().all(|host| host.admitted);
        if founded && core.len() > self.profile.majority() {
            // Who has lost all its snapshots needs those of others, who may be behind: it is the
            // minority that a majority in order does without.
            core.retain(|host| Some(*host) != self.profile.rotten || !self.may_starve(*host));
        }
        let least = if founded { self.profile.majority() } else { core.len() };
        let size = self.prng.between(least as u64, core.len() as u64);
        while core.len() as u64 > size {
            core.remove(self.prng.index(core.len()));
        }
        self.trace.tell(now, || format!("faults stop, in order are {core:?} (from 0)"));
        for host in 0..self.hosts.len() {
            if core.contains(&host) {
                self.mend(host);
            } else if self.prng.permille(500) {
                self.hosts[host].kept_down = true;
                self.crash(host);
            }
        }
        // The partial connectivity that omnipaxos survives: one replica reaches a majority, the others
        // reach it alone.
        let star = founded && core.len() > 2 && self.prng.permille(300);
        let hub = star.then(|| core[self.prng.index(core.len())]);
        self.counts.stars += u64::from(star);
        self.stage = Stage::Drain { since: now, core, hub };
        for from in 0..self.hosts.len() {
            for to in (0..self.hosts.len()).filter(|to| *to != from) {
                let apart = self.stage.keeps_apart(from, to);
                self.links[from][to].held = apart;
                self.links[from][to].forbidden = apart;
                self.pump(from, to);
            }
        }
        self.clients.iter_mut().for_each(|client| client.fall_silent(now));
        self.hush_until = now;
        if self.prng.permille(400) {
            self.begin_quietly();
        }
        self.let_promise_unheard();
    }

    /// A replica that nobody hears takes the lead, and its power fails: it comes back with a promise
    /// above the ballot that its peers follow.
    fn let_promise_unheard(&mut self) {
        for host in 0..self.hosts.len() {
            let alone = matches!(&self.stage, Stage::Drain { core, .. } if !core.contains(&host));
            let process = self.hosts[host].process.as_mut().filter(|_| alone);
            let Some(process) = process else { continue };
            if !process.is_closing() && process.replica.handle_take_lead().is_ok() {
                self.counts.unheard_promises += 1;
                let life = self.hosts[host].life;
                self.schedule.after(UNHEARD, Event::Crash { host, life });
            }
        }
    }

    /// Whether a host may lack what its log no longer has.
    fn may_starve(&self, host: usize) -> bool {
        self.hosts[host].process.as_ref().is_none_or(|process| process.replica.is_behind())
    }

    /// A host is in order.
    fn mend(&mut self, host: usize) {
        let now = self.schedule.now();
        self.hosts[host].kept_down = false;
        self.hosts[host].set_lack(None);
        self.hosts[host].fail_sync(false);
        if std::mem::take(&mut self.hosts[host].read_badly) {
            self.hosts[host].disk.take_fails();
        }
        if self.hosts[host].paused_until > now {
            self.hosts[host].paused_until = now;
            self.schedule.at(now, Event::Turn(host));
        }
        self.schedule.at(now, Event::Start(host));
    }

    fn check_drain(&mut self, since: u64) -> Checked {
        let now = self.schedule.now();
        let Stage::Drain { core, .. } = &self.stage else { return Ok(()) };
        let core = core.clone();
        let processes = core.iter().filter_map(|host| self.hosts[*host].process.as_ref());
        if processes
            .into_iter()
            .any(|process| process.replica.is_behind() || process.replica.has_diverged())
        {
            // There may be no majority before it has caught up.
            self.behind = now;
        }
        // After a stop of all that found no agreement there is no majority for a while, either.
        let since_behind = since.max(self.behind).max(self.disturbed);
        let leader = core.iter().filter_map(|host| self.hosts[*host].process.as_ref());
        // One that was deposed may not have heard of it.
        let leaders = leader.map(|process| &process.replica).filter(|found| found.is_leading());
        let leader = leaders.max_by_key(|found| found.machine().ballot());
        let leads = leader.map(|leader| leader.node().config().replica);
        let led = leader.is_some() || self.options.outside;
        let passing = now < self.lead_passed + PASSING;
        demand(led || passing || now < since_behind + LEADER_BOUND, "liveness", || {
            let states: Vec<_> = core.iter().map(|host| self.hosts[*host].standing()).collect();
            format!("replicas in order have no leader: {states:#?}")
        })?;
        let living = |id: &_| self.clients.iter().any(|client| client.session() == Some(*id));
        let sessions = leader.into_iter().flat_map(|leader| leader.machine().sessions());
        let orphans: Vec<_> = sessions.map(|(id, _)| id).filter(|id| !living(id)).collect();
        let orphaned = leader.is_none() || !orphans.is_empty();
        if !self.looked_for_stuck && now + STUCK_BEFORE > since + GIVE_UP {
            self.looked_for_stuck = true;
            // Where replies still come, calls may be on their way to be ordered.
            let quiet = now > self.replied + QUIET;
            if let Some(leader) = leader
                && quiet
                && now > since_behind + STUCK_AFTER
            {
                self.check_stuck(leader.machine())?;
            }
        }
        let leads = leads.map(|id| usize::try_from(id).expect("ids are small") - 1);
        self.check_overdue(leads)?;
        self.lead_changes_in_time(leads);
        let at_rest = self.clients.iter().all(crate::clients::Client::is_at_rest);
        if at_rest && self.counts.drain_ms == 0 {
            self.counts.drain_ms = (now - since) / MILLISECOND;
        }
        if self.is_calm(at_rest && !orphaned)? && now > since + DRAIN_LEAST {
            self.begin_converge();
            return Ok(());
        }
        demand(now < since + DRAIN_BOUND, "liveness", || {
            let waiting = self.clients.iter().filter(|client| !client.is_at_rest());
            let waiting: Vec<_> = waiting.map(crate::clients::Client::waits_for).collect();
            format!("something is pending for ever, sessions {orphans:?}, {waiting:#?}")
        })
    }

    /// Whether nothing has been pending for a while. What is left of the load then falls to almost
    /// nothing: nothing outlasts its cause.
    fn is_calm(&mut self, at_rest: bool) -> Checked<bool> {
        let (now, length) = (self.schedule.now(), self.history.length());
        if !at_rest {
            self.rest = None;
            return Ok(false);
        }
        let (since, before) = *self.rest.get_or_insert((now, length));
        let entries = length - before;
        demand(entries <= CALM_ENTRIES || self.options.outside, "calm", || {
            format!(
                "{entries} entries were ordered in {} ms for nothing",
                (now - since) / MILLISECOND
            )
        })?;
        Ok(now > since + CALM)
    }

    /// Asks the workloads whether what waits may wait.
    ///
    /// A call counts that its client waits for and that is blocked in the leader's state, as an
    /// operator would see it listed: one that a slow cluster has yet to order does not, nor one whose
    /// reply is on its way.
    fn check_stuck(&self, machine: &Machine<SimulatedEngine>) -> Checked {
        if !machine.is_idle() {
            return Ok(());
        }
        let blocked = machine.invocations(usize::MAX);
        let blocked: BTreeSet<_> = blocked.iter().filter_map(|found| found.request).collect();
        for (number, workload) in self.workloads.iter().enumerate() {
            let clients = self.clients.iter().skip(number).step_by(self.workloads.len());
            let waiting = clients.flat_map(crate::clients::Client::waiting);
            let blocked = waiting.filter(|(request, _)| blocked.contains(request));
            let pending: Vec<_> = blocked.map(|(_, method)| method).collect();
            workload.stuck(&pending)?;
        }
        Ok(())
    }

    fn begin_converge(&mut self) {
        let now = self.schedule.now();
        self.trace.tell(now, || "all replicas come back".into());
        self.stage = Stage::Converge { since: now, settled: now + BACK };
        for from in 0..self.hosts.len() {
            self.mend(from);
            for to in (0..self.hosts.len()).filter(|to| *to != from) {
                self.links[from][to].held = false;
                self.links[from][to].forbidden = false;
                self.pump(from, to);
            }
        }
    }

    fn are_equal(&self) -> bool {
        let length = self.history.length();
        self.hosts.iter().all(|host| {
            if host.wiped {
                // Whoever lost its disk must notice.
                return host.refused;
            }
            if host.wrong.is_some() {
                // It may have been too late for a comparison.
                return true;
            }
            host.process.as_ref().is_some_and(|process| {
                let machine = process.replica.machine();
                let ready = machine.is_idle() && machine.waits_for_code().is_none();
                process.replica.applied() == length && ready
            })
        })
    }

    /// Closes the books on the state that all replicas have.
    pub(super) fn finish(&mut self) -> Checked {
        self.audit()?;
        let totals: Vec<_> = self
            .hosts
            .iter()
            .filter(|host| host.wrong.is_none())
            .filter_map(|host| host.process.as_ref())
            .map(|process| process.replica.machine().total())
            .collect();
        let equal = totals.windows(2).all(|pair| pair[0] == pair[1]) || self.options.outside;
        demand(equal, "one state", || format!("the replicas differ in the end: {totals:?}"))?;
        let total = totals[0].0;
        let in_order_since = self.in_order_since();
        self.trace.digest(&[total as u64, (total >> 64) as u64]);
        let right = self.hosts.iter_mut().filter(|host| host.wrong.is_none());
        let process = right.into_iter().find_map(|host| host.process.as_mut());
        let process = process.ok_or_else(|| Violation::new("availability", "no replica runs"))?;
        self.counts.leaders = u64::from(process.replica.machine().ballot().number);
        let facts = Facts {
            now: self.schedule.now(),
            in_order_since,
            over: self.sessions.over(),
            leader_times: &self.leader_times,
        };
        for workload in &mut self.workloads {
            workload.note_end(&facts);
            workload.finish(process.replica.machine_mut(), &self.catalog)?;
        }
        Ok(())
    }
}
