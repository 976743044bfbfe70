//! Jobs: clients put jobs, take them under leases, and acknowledge them, give them back, or forget them.
//!
//! A job is delivered again only after its lease is over, with one delivery more, and never once it was
//! acknowledged; who acknowledges it has had it last. One that was given back with a delay is delivered again
//! that long after it was delivered at the earliest: both times are of the cluster's clock. In the end every job that was put was acknowledged
//! or is there, except that it may have been acknowledged where that is not known.

use std::{collections::BTreeMap, time::Duration};

use gesmas_abi::value::{Bytes, Time, to_bytes};
use gesmas_machine::{CallError, Machine, Step};
use gesmas_work_queue::Delivery;

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    schedule::MILLISECOND,
    verdict::{Checked, Violation, demand},
};

const CHECKER: &str = "work queue";
/// What items begin with, so that they are known among the values of the object.
const MARK: &[u8] = b"a job ";
/// Keys and values of the object that are looked at in the end.
const ALL_ENTRIES: usize = 10_000;

#[derive(Debug, Default)]
struct Job {
    put: bool,
    given_up: bool,
    /// Deliveries by their steps.
    deliveries: BTreeMap<Step, Had>,
    /// Delays with which it was given back, by leases.
    delays: BTreeMap<u64, Duration>,
    acknowledged: Option<Step>,
    maybe_acknowledged: bool,
}

/// One delivery of a job.
#[derive(Clone, Copy, Debug)]
struct Had {
    deliveries: u32,
    lease: u64,
    at: Time,
}

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Waiting { lease: Duration },
    Working { job: u64, lease: u64, until: u64 },
    Finishing { job: u64, lease: u64, delay: Option<Duration> },
}

pub(super) struct Jobs {
    jobs: BTreeMap<u64, Job>,
    stages: BTreeMap<usize, Stage>,
    next_key: u64,
}

fn item_bytes(key: u64) -> Vec<u8> {
    [MARK, &key.to_le_bytes()].concat()
}

impl Jobs {
    pub(super) fn new() -> Self {
        Self { jobs: BTreeMap::new(), stages: BTreeMap::new(), next_key: 0 }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Vec<Call> {
        let object = object("WorkQueue", "mail");
        vec![Call { object, method, arguments, key: self.next_key, time_left: None }]
    }

    fn delivered(
        &mut self,
        client: usize,
        (delivery, lasts): (&Delivery, Duration),
        step: Step,
        facts: &Facts<'_>,
    ) -> Checked {
        let key = delivery.item.strip_prefix(MARK).and_then(|key| key.try_into().ok());
        let key = key.map(u64::from_le_bytes);
        let job = key.and_then(|key| self.jobs.get_mut(&key));
        let (Some(key), Some(job)) = (key, job) else {
            return Err(Violation::new(CHECKER, format!("{delivery:?} was never put")));
        };
        let gone = job.given_up || job.acknowledged.is_some_and(|done| done <= step);
        demand(!gone, CHECKER, || format!("{delivery:?} at {step} is of {job:?}"))?;
        let before = job.deliveries.range(..step).next_back();
        let after = job.deliveries.range(step..).next();
        let counts = before.is_none_or(|(_, other)| other.deliveries < delivery.deliveries)
            && after.is_none_or(|(_, other)| other.deliveries > delivery.deliveries);
        demand(counts, CHECKER, || format!("{delivery:?} at {step} is out of order in {job:?}"))?;
        let Delivery { deliveries, lease, ends, .. } = *delivery;
        job.deliveries.insert(step, Had { deliveries, lease, at: ends - lasts });
        Self::check_acknowledgement(job)?;
        Self::check_delays(job)?;
        let until = facts.now + (delivery.lease * 37 % 400) * MILLISECOND;
        self.stages.insert(client, Stage::Working { job: key, lease: delivery.lease, until });
        Ok(())
    }

    /// Nobody has had the job after it was acknowledged. Deliveries and acknowledgements are heard of in
    /// any order.
    fn check_acknowledgement(job: &Job) -> Checked {
        let Some(done) = job.acknowledged else { return Ok(()) };
        let late = job.deliveries.range(done..).next();
        demand(late.is_none(), CHECKER, || format!("it was delivered after its end: {job:?}"))
    }

    /// A job that was given back with a delay has waited for it. Deliveries of which nobody heard may lie
    /// between those that are known, and only make it longer.
    fn check_delays(job: &Job) -> Checked {
        let known: Vec<_> = job.deliveries.values().collect();
        for pair in known.windows(2) {
            let delay = job.delays.get(&pair[0].lease).copied().unwrap_or_default();
            let waited = pair[1].at.since(pair[0].at);
            demand(waited >= delay, CHECKER, || {
                format!("a delay of {delay:?} was over after {waited:?}: {job:?}")
            })?;
        }
        Ok(())
    }

    fn finished(
        &mut self,
        (job, lease, delay): (u64, u64, Option<Duration>),
        call: &Call,
        ended: &Ended<'_>,
    ) -> Checked {
        let job = self.jobs.get_mut(&job).expect("it was delivered");
        let acknowledges = call.method == "ack";
        match ended {
            Ended::Reply { step, outcome: Ok(_), .. } => {
                let last = job.deliveries.range(..*step).next_back();
                let is_last = last.is_some_and(|(_, last)| last.lease == lease);
                demand(is_last, CHECKER, || {
                    format!("{} of lease {lease} at {step} succeeded on {job:?}", call.method)
                })?;
                if acknowledges {
                    job.acknowledged = Some(*step);
                } else {
                    // Without one it waits for a second at least.
                    job.delays.insert(lease, delay.unwrap_or(Duration::from_secs(1)));
                }
                Self::check_acknowledgement(job)?;
                Self::check_delays(job)
            }
            // Too late: the lease is over.
            Ended::Reply { outcome: Err(CallError::Failed(_)), .. } => Ok(()),
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => Ok(()),
            Ended::Unknown => {
                job.maybe_acknowledged |= acknowledges;
                Ok(())
            }
            Ended::Reply { outcome: Err(error), .. } => Err(unexpected(CHECKER, call, error)),
        }
    }
}

impl Workload for Jobs {
    fn class(&self) -> &'static str {
        "WorkQueue"
    }

    fn creation(&self) -> Option<Call> {
        let (object, arguments) = (object("WorkQueue", "mail"), to_bytes(&u32::MAX));
        Some(Call { object, method: "init", arguments, key: 0, time_left: None })
    }

    fn may_starve(&self, call: &Call) -> bool {
        call.method == "take"
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, facts: &Facts<'_>) -> Vec<Call> {
        let stage = *self.stages.entry(worker.client).or_insert(Stage::Idle);
        match stage {
            Stage::Working { job, lease, until } if until <= facts.now => {
                if prng.permille(200) {
                    // It is forgotten, and comes again when the lease is over.
                    self.stages.insert(worker.client, Stage::Idle);
                    return Vec::new();
                }
                let gives_back = prng.permille(250);
                let delay = Some(Duration::from_millis(prng.below(3) * 400));
                let delay = delay.filter(|_| gives_back && prng.permille(700));
                self.stages.insert(worker.client, Stage::Finishing { job, lease, delay });
                if gives_back {
                    return self.call("nack", to_bytes(&(lease, delay)));
                }
                self.call("ack", to_bytes(&lease))
            }
            Stage::Idle if worker.open == 0 && !worker.draining && prng.permille(500) => {
                let lease = Duration::from_millis(prng.between(100, 1_500));
                self.stages.insert(worker.client, Stage::Waiting { lease });
                self.next_key += 1;
                if prng.permille(500) {
                    self.jobs.insert(self.next_key, Job::default());
                    let delay = Some(Duration::from_millis(prng.below(3) * 200));
                    let delay = delay.filter(|_| prng.permille(500));
                    return self.call("put", to_bytes(&(Bytes(item_bytes(self.next_key)), delay)));
                }
                self.call("take", to_bytes(&lease))
            }
            _ => Vec::new(),
        }
    }

    fn ended(
        &mut self,
        client: usize,
        call: &Call,
        ended: &Ended<'_>,
        facts: &Facts<'_>,
    ) -> Checked {
        let stage = self.stages.insert(client, Stage::Idle);
        if let (Some(Stage::Finishing { job, lease, delay }), "ack" | "nack") = (stage, call.method)
        {
            return self.finished((job, lease, delay), call, ended);
        }
        match ended {
            Ended::Unknown => Ok(()),
            Ended::Reply { step, outcome: Ok(bytes), .. } if call.method == "take" => {
                let delivery: Delivery = decode(CHECKER, bytes)?;
                let Some(Stage::Waiting { lease }) = stage else {
                    panic!("{client} takes and is at {stage:?}")
                };
                self.delivered(client, (&delivery, lease), *step, facts)
            }
            Ended::Reply { outcome: Ok(_), .. } => {
                self.jobs.get_mut(&call.key).expect("it was planned").put = true;
                Ok(())
            }
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => {
                if let ("put", Some(job)) = (call.method, self.jobs.get_mut(&call.key)) {
                    job.given_up = true;
                    let shown = !job.deliveries.is_empty();
                    return demand(!shown, CHECKER, || format!("it was given up: {job:?}"));
                }
                Ok(())
            }
            Ended::Reply { outcome: Err(error), .. } => Err(unexpected(CHECKER, call, error)),
        }
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, _catalog: &Catalog) -> Checked {
        let view = machine.object(&object("WorkQueue", "mail"), ALL_ENTRIES);
        let entries = view.map(|view| view.entries).unwrap_or_default();
        for (key, job) in &self.jobs {
            let item = item_bytes(*key);
            let holds = |value: &[u8]| value.windows(item.len()).any(|window| window == item);
            let there = entries.iter().filter(|(_, value)| holds(value)).count();
            let gone = job.given_up || job.acknowledged.is_some();
            demand(there == 0 || !gone, CHECKER, || format!("job {key} is there: {job:?}"))?;
            let wanted = job.put && !gone && !job.maybe_acknowledged;
            demand(there <= 1 && (there == 1 || !wanted), CHECKER, || {
                format!("job {key} is there {there} times: {job:?}")
            })?;
        }
        Ok(())
    }
}
