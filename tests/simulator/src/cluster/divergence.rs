//! A replica that computes wrongly now and then: one of them, so that it is a minority.
//!
//! From then on its state is not compared with that of others, and clients do not hear what it says;
//! its log still is, and it takes part in everything. It must find out by itself, by the votes, and
//! stop; its next life begins with a state from before, or with that of a peer.
//! Not here: how it finds out (`gesmas::replica`).

use gesmas::{
    replica::Diverged,
    snapshot::{Evidence, Job},
};
use gesmas_machine::{RecordName, Step};

use super::{Cluster, process::Process};
use crate::{
    schedule::SECOND,
    verdict::{Checked, Violation, demand},
};

/// A stop of all replicas may be felt for so long: they linger, come back and elect.
const DISTURBED: u64 = 20 * SECOND;

/// What went wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrong {
    /// When everything below this index of the log was applied.
    index: u64,
    /// After this step.
    step: Step,
}

impl Cluster {
    /// The processor of a host computes wrongly, if its replica can be wrong about something.
    pub(super) fn miscompute(&mut self, host: usize) {
        // Until all may vote, nobody can do without one of them.
        let founded = self.hosts.iter().all(|host| host.admitted);
        let at = &mut self.hosts[host];
        let free = founded && at.wrong.is_none();
        let Some(process) = at.process.as_mut().filter(|_| free) else { return };
        if !process.replica.machine().is_idle() {
            return;
        }
        let (index, choice) = (process.replica.applied(), self.prng.below(1 << 32));
        let machine = process.replica.machine_mut();
        let step = machine.step();
        let Some(object) = machine.miscompute(choice) else { return };
        self.trace.tell(self.schedule.now(), || {
            format!("replica {} has a wrong value in {object} from step {step} on", host + 1)
        });
        process.wrong = true;
        at.miscomputed = true;
        at.wrong = Some(Wrong { index, step });
        self.counts.miscomputations += 1;
    }

    /// A replica that has set aside what may be wrong writes nothing of it any more.
    pub(super) fn check_job(&mut self, host: usize, job: &Job) -> Checked {
        let at = &mut self.hosts[host];
        match job {
            Job::Evidence(Evidence { own: Some(_), .. }) => at.set_aside = Some(at.life),
            Job::Write { index, .. } if at.set_aside == Some(at.life) => {
                let message = format!(
                    "replica {} knows that it has diverged, and writes a snapshot at {index}",
                    host + 1
                );
                return Err(Violation::new("divergence", message));
            }
            _ => {}
        }
        Ok(())
    }

    /// A life that begins with a state from before is right.
    pub(super) fn begin_right_or_wrong(&mut self, host: usize, process: &mut Process) {
        let wrong = &mut self.hosts[host].wrong;
        wrong.take_if(|wrong| process.replica.applied() < wrong.index);
        process.wrong = wrong.is_some();
    }

    /// A replica has stopped since its state was not the group's.
    pub(super) fn stopped_wrong(&mut self, host: usize, known: &Diverged) -> Checked {
        self.trace.tell(self.schedule.now(), || known.to_string());
        if known.agreed.is_none() {
            // Nobody can tell who is right, so everybody stops.
            let any = self.hosts.iter().any(|host| host.miscomputed);
            demand(any, "divergence", || format!("nobody computed wrongly: {known}"))?;
            self.counts.stops_without_majority += 1;
            self.disturbed = self.schedule.now() + DISTURBED;
            self.crash(host);
            return Ok(());
        }
        if self.hosts[host].wrong.is_none() {
            let message = format!("a replica that computed rightly stopped: {known}");
            return Err(Violation::new("divergence", message));
        }
        self.counts.divergences += 1;
        if let Some(first) = &known.first {
            self.counts.divergences_named += 1;
            let found = self.first_difference(host, known.step).unwrap_or_else(|| first.clone());
            demand(found == *first, "divergence", || format!("it was {found}, and {known}"))?;
        }
        self.crash(host);
        Ok(())
    }

    /// The first record of a replica that differs after a step from that of a right one, by what they
    /// hold and not by their sums, if both still have their states.
    fn first_difference(&self, host: usize, step: Step) -> Option<RecordName> {
        let state = |host: &super::Host| {
            host.process.as_ref()?.replica.machine().state_after(step).cloned()
        };
        let own = state(&self.hosts[host])?;
        let others = self.hosts.iter().filter(|other| other.wrong.is_none());
        let other = others.into_iter().find_map(state)?;
        own.differences(&other, 1).first().map(|found| found.record.clone())
    }

    /// A leader that is wrong and cannot know it yet gives no snapshots here, and nobody but the leader tells
    /// a replica that it is behind: so another one takes the lead, as operators could let it.
    pub(super) fn relieve_wrong_leader(&mut self) {
        let leads = |host: &super::Host| {
            let leads = |process: &Process| process.replica.is_leading();
            host.wrong.is_some() && host.process.as_ref().is_some_and(leads)
        };
        if !self.hosts.iter().any(leads) {
            return;
        }
        let length = self.history.length();
        let can_lead = |host: &&mut super::Host| {
            let up_to_date =
                |process: &Process| !process.is_closing() && process.replica.applied() == length;
            host.wrong.is_none() && host.process.as_ref().is_some_and(up_to_date)
        };
        let Some(host) = self.hosts.iter_mut().find(can_lead) else { return };
        let replica = host.id;
        let asked = host.process.as_mut().map(|process| process.replica.handle_take_lead());
        self.trace.tell(self.schedule.now(), || format!("{replica} is to lead: {asked:?}"));
    }

    /// A replica that is wrong knows it as soon as it sees what others agreed on.
    pub(super) fn check_wrong(&mut self, host: usize) -> Checked {
        if self.options.outside {
            return Ok(());
        }
        let at = &self.hosts[host];
        let (Some(wrong), Some(process)) = (&at.wrong, &at.process) else { return Ok(()) };
        let machine = process.replica.machine();
        if !machine.is_between_entries() {
            // What a step says comes when it is over.
            return Ok(());
        }
        let Some(agreed) = machine.agreed_step().filter(|agreed| *agreed > wrong.step) else {
            return Ok(());
        };
        let own = machine.hash_after(agreed);
        let others = machine.votes(agreed).filter(|(id, _)| *id != at.id);
        let same = own.is_none_or(|own| others.into_iter().any(|(_, vote)| vote == own));
        demand(same || process.replica.has_diverged(), "divergence", || {
            let step = wrong.step;
            format!("replica {} is wrong since step {step} and does not know after {agreed}", at.id)
        })
    }
}
