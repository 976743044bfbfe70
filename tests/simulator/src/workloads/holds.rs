//! Holds: clients take permits of a semaphore, or a lock for reading or writing, hold them for a while,
//! and give them back; some die with them.
//!
//! Each hold has a weight: its permits, or as a writer all there is. Tokens rise in the order of the steps
//! that gave them out. Whoever gets a hold while others believe to have so much that it would be too much,
//! does so because the session of one of them is over.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_abi::value::to_bytes;
use gesmas_machine::{CallError, Machine, SessionId, Step};
use gesmas_semaphore::Grants;

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, read, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    schedule::MILLISECOND,
    verdict::{Checked, demand},
};

/// Permits of the semaphore.
const PERMITS: u64 = 4;
/// The owner of every hold of a lock: each client has one at a time.
const OWNER: u64 = 1;
/// The weight of a writer: more than there are readers.
const WRITER: u64 = 1_000;

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Semaphore,
    RwLock,
}

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Asking { weight: u64 },
    Holding { session: SessionId, token: u64, weight: u64, until: u64 },
    GivingBack,
}

pub(super) struct Holds {
    kind: Kind,
    stages: BTreeMap<usize, Stage>,
    /// Tokens by the steps that gave them out, some of them several.
    tokens: BTreeSet<(Step, u64)>,
    next_key: u64,
}

impl Holds {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, stages: BTreeMap::new(), tokens: BTreeSet::new(), next_key: 0 }
    }

    const fn checker(&self) -> &'static str {
        match self.kind {
            Kind::Semaphore => "semaphore",
            Kind::RwLock => "rw lock",
        }
    }

    const fn total(&self) -> u64 {
        match self.kind {
            Kind::Semaphore => PERMITS,
            Kind::RwLock => WRITER,
        }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Vec<Call> {
        self.next_key += 1;
        let object = object(self.class(), "held");
        vec![Call { object, method, arguments, key: self.next_key, time_left: None }]
    }

    /// Asks for a hold: the call, and its weight.
    fn ask(&mut self, prng: &mut Prng) -> (Vec<Call>, u64) {
        match self.kind {
            Kind::Semaphore => {
                let permits = prng.between(1, PERMITS);
                let argument = to_bytes(&u32::try_from(permits).expect("it is small"));
                (self.call("acquire", argument), permits)
            }
            Kind::RwLock if prng.permille(400) => {
                (self.call("write_lock", to_bytes(&OWNER)), WRITER)
            }
            Kind::RwLock => (self.call("read_lock", to_bytes(&OWNER)), 1),
        }
    }

    fn taken(
        &mut self,
        client: usize,
        (session, token, step): (SessionId, u64, Step),
        facts: &Facts<'_>,
    ) -> Checked {
        let (checker, total) = (self.checker(), self.total());
        let Some(Stage::Asking { weight }) = self.stages.get(&client).copied() else {
            panic!("only who asks gets something");
        };
        let before = self.tokens.range(..(step, 0)).next_back();
        let after = self.tokens.range((Step(step.0 + 1), 0)..).next();
        let rises = before.is_none_or(|(_, other)| *other < token)
            && after.is_none_or(|(_, other)| *other > token);
        demand(rises, checker, || format!("token {token} of step {step} does not rise"))?;
        let is_new = self.tokens.insert((step, token));
        demand(is_new, checker, || format!("token {token} of step {step} was given out twice"))?;
        // How long it is held is drawn from the token, which is as good as any other number.
        let until = facts.now + (token * 37 % 400) * MILLISECOND;
        self.stages.insert(client, Stage::Holding { session, token, weight, until });
        let held = self.stages.values().filter_map(|stage| match stage {
            Stage::Holding { session, weight, .. } if !facts.over.contains_key(session) => {
                Some(*weight)
            }
            _ => None,
        });
        let held: u64 = held.sum();
        demand(held <= total, checker, || {
            let stages = &self.stages;
            format!("client {client} got {weight}, and now {held} of {total} are held: {stages:?}")
        })
    }
}

impl Workload for Holds {
    fn class(&self) -> &'static str {
        match self.kind {
            Kind::Semaphore => "Semaphore",
            Kind::RwLock => "RwLock",
        }
    }

    fn creation(&self) -> Option<Call> {
        let arguments = to_bytes(&u32::try_from(PERMITS).expect("it is small"));
        let object = object("Semaphore", "held");
        (self.kind == Kind::Semaphore).then_some(Call {
            object,
            method: "init",
            arguments,
            key: 0,
            time_left: None,
        })
    }

    fn may_starve(&self, _call: &Call) -> bool {
        false
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, facts: &Facts<'_>) -> Vec<Call> {
        let stage = *self.stages.entry(worker.client).or_insert(Stage::Idle);
        match stage {
            Stage::Holding { session, .. } if facts.over.contains_key(&session) => {
                self.stages.insert(worker.client, Stage::Idle);
                Vec::new()
            }
            // Whoever comes after a client that died knows nothing of its hold.
            Stage::Holding { session, token, until, .. }
                if until <= facts.now && session == worker.session =>
            {
                self.stages.insert(worker.client, Stage::GivingBack);
                let method = if self.kind == Kind::Semaphore { "release" } else { "unlock" };
                self.call(method, to_bytes(&token))
            }
            Stage::Idle if !worker.draining && prng.permille(500) => {
                let (calls, weight) = self.ask(prng);
                self.stages.insert(worker.client, Stage::Asking { weight });
                calls
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
        let gives_back = matches!(call.method, "release" | "unlock");
        match ended {
            Ended::Reply { session, step, outcome: Ok(bytes), .. } if !gives_back => {
                let token = decode(self.checker(), bytes)?;
                return self.taken(client, (*session, token, *step), facts);
            }
            Ended::Unknown | Ended::Reply { outcome: Ok(_), .. } => {}
            // The class's own error for a call that was given up while it waited.
            Ended::Reply { outcome: Err(CallError::Failed(_)), .. } if !gives_back => {}
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => {}
            Ended::Reply { outcome: Err(error), .. } => {
                return Err(unexpected(self.checker(), call, error));
            }
        }
        self.stages.insert(client, Stage::Idle);
        Ok(())
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        match self.kind {
            Kind::Semaphore => self.all_permits_are_somewhere(machine, catalog),
            Kind::RwLock => self.the_lock_is_owned_once(machine),
        }
    }
}

impl Holds {
    /// Permits are free or of grants of sessions that live.
    fn all_permits_are_somewhere(
        &self,
        machine: &mut Machine<SimulatedEngine>,
        catalog: &Catalog,
    ) -> Checked {
        let ask = |method, arguments| {
            let object = object("Semaphore", "held");
            Call { object, method, arguments, key: 0, time_left: None }
        };
        let free = ask("available", Vec::new());
        let Some(free) = read::<u64>(self.checker(), machine, catalog, &free)? else {
            return Ok(());
        };
        let grants = ask("grants", to_bytes(&(0_u64, 1_000_u32)));
        let grants: Option<Grants> = read(self.checker(), machine, catalog, &grants)?;
        let grants = grants.expect("it was there").grants;
        let sessions: BTreeSet<_> = machine.sessions().map(|(session, _)| session.0).collect();
        let held: u64 = grants.iter().map(|grant| u64::from(grant.permits)).sum();
        demand(free + held == PERMITS, self.checker(), || {
            format!("{free} permits are free and {held} are held in the end, of {PERMITS}")
        })?;
        let dead = grants.iter().find(|grant| !sessions.contains(&grant.session.0));
        demand(dead.is_none(), self.checker(), || format!("{dead:?} is of a session that is over"))
    }

    /// Readers have the one permit together, and nobody owns it then.
    fn the_lock_is_owned_once(&self, machine: &Machine<SimulatedEngine>) -> Checked {
        let view = machine.object(&object("RwLock", "held"), 1);
        let mut semaphores = view.iter().flat_map(|view| &view.semaphores);
        let Some(room) = semaphores.find(|one| one.name == b"room") else { return Ok(()) };
        let (free, owned) = (room.count, room.owners.len() as u64);
        demand(free + owned <= 1, self.checker(), || {
            format!("{free} permits are free and {owned} are owned in the end, of 1")
        })
    }
}
