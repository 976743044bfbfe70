//! Locks: clients take a lock, hold it for a while, and give it back; some die with it.
//!
//! Tokens rise in the order of the steps that gave them out. Whoever gets a lock while another
//! client still believes to hold it with a smaller token, does so because that one's session is
//! over.

use std::collections::BTreeMap;

use gesmas_abi::value::to_bytes;
use gesmas_machine::{CallError, Machine, SessionId, Step};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    schedule::MILLISECOND,
    verdict::{Checked, demand},
};

const CHECKER: &str = "lock";

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Asking,
    Holding { session: SessionId, token: u64, until: u64 },
    Unlocking,
}

pub(super) struct Locks {
    stages: BTreeMap<usize, Stage>,
    tokens: BTreeMap<Step, u64>,
    next_key: u64,
}

impl Locks {
    pub(super) fn new() -> Self {
        Self { stages: BTreeMap::new(), tokens: BTreeMap::new(), next_key: 0 }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Vec<Call> {
        self.next_key += 1;
        vec![Call {
            object: object("Lock", "leader"),
            method,
            arguments,
            key: self.next_key,
            time_left: None,
        }]
    }

    fn locked(
        &mut self,
        client: usize,
        (session, token, step): (SessionId, u64, Step),
        facts: &Facts<'_>,
    ) -> Checked {
        let before = self.tokens.range(..step).next_back();
        let after = self.tokens.range(step..).next();
        let rises = before.is_none_or(|(_, other)| *other < token)
            && after.is_none_or(|(_, other)| *other > token);
        demand(rises, CHECKER, || format!("token {token} of step {step} does not rise"))?;
        self.tokens.insert(step, token);
        for (other, stage) in &self.stages {
            let Stage::Holding { session: holder, token: held, .. } = *stage else { continue };
            let late = if held < token { holder } else { session };
            let over = *other == client || facts.over.contains_key(&late);
            demand(over, CHECKER, || {
                format!(
                    "client {client} got token {token} while client {other} holds {held} and \
                     session {late} lives"
                )
            })?;
        }
        // How long it is held is drawn from the token, which is as good as any other number.
        let until = facts.now + (token * 37 % 500) * MILLISECOND;
        self.stages.insert(client, Stage::Holding { session, token, until });
        Ok(())
    }
}

impl Workload for Locks {
    fn class(&self) -> &'static str {
        "Lock"
    }

    fn creation(&self) -> Option<Call> {
        None
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
            // Whoever comes after a client that died knows nothing of its lock; it is free when the
            // session is over.
            Stage::Holding { session, token, until }
                if until <= facts.now && session == worker.session =>
            {
                self.stages.insert(worker.client, Stage::Unlocking);
                self.call("unlock", to_bytes(&token))
            }
            Stage::Idle if !worker.draining && prng.permille(500) => {
                self.stages.insert(worker.client, Stage::Asking);
                self.call("lock", to_bytes(&1_u64))
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
        match ended {
            Ended::Reply { session, step, outcome: Ok(bytes), .. } if call.method == "lock" => {
                let token = decode(CHECKER, bytes)?;
                return self.locked(client, (*session, token, *step), facts);
            }
            Ended::Unknown | Ended::Reply { outcome: Ok(_), .. } => {}
            // The class's own error for a call that was given up while it waited.
            Ended::Reply { outcome: Err(CallError::Failed(_)), .. } if call.method == "lock" => {}
            Ended::Reply { outcome: Err(error), .. } if is_given_up(error) => {}
            Ended::Reply { outcome: Err(error), .. } => {
                return Err(unexpected(CHECKER, call, error));
            }
        }
        self.stages.insert(client, Stage::Idle);
        Ok(())
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, _catalog: &Catalog) -> Checked {
        let view = machine.object(&object("Lock", "leader"), 1);
        let owners = view.iter().flat_map(|view| &view.semaphores).map(|one| one.owners.len());
        let owners: usize = owners.sum();
        demand(owners <= 1, CHECKER, || format!("the lock has {owners} owners in the end"))
    }
}
