//! Jobs: clients put jobs, take them under leases, and acknowledge them, give them back, or forget them.
//!
//! A job is delivered again only after its lease is over, with one delivery more, and never once it was
//! acknowledged; who acknowledges it has had it last. In the end every job that was put was acknowledged
//! or is there, except that it may have been acknowledged where that is not known.

use std::{collections::BTreeMap, time::Duration};

use gesmas_abi::value::{Bytes, to_bytes};
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
    /// Deliveries by their steps, with their leases.
    deliveries: BTreeMap<Step, (u32, u64)>,
    acknowledged: Option<Step>,
    maybe_acknowledged: bool,
}

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Waiting,
    Working { job: u64, lease: u64, until: u64 },
    Finishing { job: u64, lease: u64 },
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
        delivery: &Delivery,
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
        let counts = before.is_none_or(|(_, (other, _))| *other < delivery.deliveries)
            && after.is_none_or(|(_, (other, _))| *other > delivery.deliveries);
        demand(counts, CHECKER, || format!("{delivery:?} at {step} is out of order in {job:?}"))?;
        job.deliveries.insert(step, (delivery.deliveries, delivery.lease));
        Self::check_acknowledgement(job)?;
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

    fn finished(&mut self, (job, lease): (u64, u64), call: &Call, ended: &Ended<'_>) -> Checked {
        let job = self.jobs.get_mut(&job).expect("it was delivered");
        let acknowledges = call.method == "ack";
        match ended {
            Ended::Reply { step, outcome: Ok(_), .. } => {
                let last = job.deliveries.range(..*step).next_back();
                let is_last = last.is_some_and(|(_, (_, last))| *last == lease);
                demand(is_last, CHECKER, || {
                    format!("{} of lease {lease} at {step} succeeded on {job:?}", call.method)
                })?;
                if acknowledges {
                    job.acknowledged = Some(*step);
                }
                Self::check_acknowledgement(job)
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
        let (object, arguments) = (object("WorkQueue", "mail"), to_bytes(&0_u32));
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
                self.stages.insert(worker.client, Stage::Finishing { job, lease });
                let method = if prng.permille(250) { "nack" } else { "ack" };
                self.call(method, to_bytes(&lease))
            }
            Stage::Idle if worker.open == 0 && !worker.draining && prng.permille(500) => {
                self.stages.insert(worker.client, Stage::Waiting);
                self.next_key += 1;
                if prng.permille(500) {
                    self.jobs.insert(self.next_key, Job::default());
                    return self.call("put", to_bytes(&Bytes(item_bytes(self.next_key))));
                }
                let lease = Duration::from_millis(prng.between(100, 1_500));
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
        if let (Some(Stage::Finishing { job, lease }), "ack" | "nack") = (stage, call.method) {
            return self.finished((job, lease), call, ended);
        }
        match ended {
            Ended::Unknown => Ok(()),
            Ended::Reply { step, outcome: Ok(bytes), .. } if call.method == "take" => {
                let delivery: Delivery = decode(CHECKER, bytes)?;
                self.delivered(client, &delivery, *step, facts)
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
