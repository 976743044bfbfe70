//! Elections: clients run for leader, lead for a while, and resign; some die as leaders, some only look on.
//!
//! Tokens rise in the order of the steps that gave them out. Whoever leads while another client still believes to
//! lead with a smaller token, does so because that one's session is over; who resigns led until then.
//! Who is told of a leader is told of the last one at that step, and who is told that nobody leads is told so at
//! a step at which nobody does that is known to have led then and later. No read shows a leader who was
//! known to be gone when it was asked: who has resigned, or whose session is over. In the end nobody
//! waits to lead, and who leads has a session that lives.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use gesmas_abi::value::{Bytes, to_bytes};
use gesmas_election::Leader;
use gesmas_machine::{CallError, Machine, Outcome, SessionId, Step};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, read, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    schedule::MILLISECOND,
    verdict::{Checked, demand},
};

const CHECKER: &str = "election";

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Busy,
    Leading { session: SessionId, token: u64, until: u64 },
    Resigning { session: SessionId, token: u64 },
}

/// What is known of a leader.
#[derive(Clone, Copy, Debug)]
struct Known {
    client: usize,
    session: SessionId,
    elected: Step,
    resigned: Option<Step>,
    /// The key of the first call after it was known to lead no more.
    gone: Option<u64>,
}

pub(super) struct Elections {
    stages: BTreeMap<usize, Stage>,
    /// Leaders by token.
    leaders: BTreeMap<u64, Known>,
    /// Steps at which an observer was told that nobody leads.
    vacant: BTreeSet<Step>,
    /// The greatest token that was known when a read was asked.
    reads: BTreeMap<u64, u64>,
    next_key: u64,
}

fn name(client: usize) -> Bytes {
    Bytes(format!("client {client}").into_bytes())
}

impl Elections {
    pub(super) fn new() -> Self {
        Self {
            stages: BTreeMap::new(),
            leaders: BTreeMap::new(),
            vacant: BTreeSet::new(),
            reads: BTreeMap::new(),
            next_key: 0,
        }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Call {
        self.next_key += 1;
        let object = object("Election", "scheduler");
        Call { object, method, arguments, key: self.next_key, time_left: None }
    }

    fn newest(&self) -> u64 {
        self.leaders.last_key_value().map_or(0, |(token, _)| *token)
    }

    /// A token was given out, or somebody was told of it, at a step: those before were given out earlier, and
    /// those after later.
    fn is_last(&self, token: u64, step: Step) -> Checked {
        let before = self.leaders.range(..token).next_back();
        let after = self.leaders.range(token + 1..).next();
        let rises = before.is_none_or(|(_, other)| other.elected <= step)
            && after.is_none_or(|(_, other)| other.elected >= step);
        demand(rises, CHECKER, || {
            format!("token {token} was there at {step}, between {before:?} and {after:?}")
        })
    }

    fn elected(
        &mut self,
        client: usize,
        (session, token, step): (SessionId, u64, Step),
        facts: &Facts<'_>,
    ) -> Checked {
        self.is_last(token, step)?;
        let known = Known { client, session, elected: step, resigned: None, gone: None };
        let twice = self.leaders.insert(token, known);
        demand(twice.is_none(), CHECKER, || format!("token {token} was given out twice"))?;
        for (other, stage) in &self.stages {
            let Stage::Leading { session: holder, token: held, .. } = *stage else { continue };
            let late = if held < token { holder } else { session };
            let over = *other == client || facts.over.contains_key(&late);
            demand(over, CHECKER, || {
                format!(
                    "client {client} leads with token {token} while client {other} does with {held} \
                     and session {late} lives"
                )
            })?;
        }
        self.was_not_passed(token)?;
        // How long it leads is drawn from the token, which is as good as any other number.
        let until = facts.now + (token * 37 % 500) * MILLISECOND;
        self.stages.insert(client, Stage::Leading { session, token, until });
        Ok(())
    }

    /// Nobody became leader before the one before had resigned, of those of whom it is known.
    fn was_not_passed(&self, token: u64) -> Checked {
        let from = self.leaders.range(..token).next_back().map_or(token, |(before, _)| *before);
        let pairs = self.leaders.range(from..).zip(self.leaders.range(from..).skip(1)).take(2);
        for ((token, known), (other, next)) in pairs {
            let right = known.resigned.is_none_or(|resigned| resigned <= next.elected);
            demand(right, CHECKER, || {
                format!("{token} resigned as leader after {other} was one: {known:?}, {next:?}")
            })?;
        }
        Ok(())
    }

    fn resigned(&mut self, token: u64, step: Step) -> Checked {
        let key = self.next_key + 1;
        let known = self.leaders.get_mut(&token).expect("it was elected");
        known.resigned = Some(step);
        known.gone = known.gone.or(Some(key));
        let reign = (Bound::Excluded(known.elected), Bound::Excluded(step));
        let hidden = self.vacant.range(reign).next();
        demand(hidden.is_none(), CHECKER, || {
            format!("nobody was observed to lead at {hidden:?}, while {known:?} did")
        })?;
        self.was_not_passed(token)
    }

    /// Somebody was told who leads.
    fn told(&self, leader: &Leader) -> Checked {
        let Some(known) = self.leaders.get(&leader.token) else { return Ok(()) };
        let right = leader.session.0 == known.session.0 && leader.candidate == name(known.client);
        demand(right, CHECKER, || format!("{leader:?} was told, it is {known:?}"))
    }

    fn observed(&mut self, leader: Option<&Leader>, step: Step) -> Checked {
        let Some(leader) = leader else {
            self.vacant.insert(step);
            let leads = self.leaders.iter().find(|(_, known)| {
                known.elected < step && known.resigned.is_some_and(|resigned| resigned > step)
            });
            return demand(leads.is_none(), CHECKER, || {
                format!("nobody was observed to lead at {step}, and {leads:?} did")
            });
        };
        self.told(leader)?;
        self.is_last(leader.token, step)?;
        let known = self.leaders.get(&leader.token);
        let gone = known.and_then(|known| known.resigned).is_some_and(|resigned| resigned < step);
        demand(!gone, CHECKER, || format!("{leader:?} was observed at {step}: {known:?}"))
    }

    /// The one who led, if somebody did, is gone when its session is over.
    fn look_for_ends(&mut self, facts: &Facts<'_>) {
        let key = self.next_key + 1;
        for known in self.leaders.values_mut().rev().take_while(|known| known.gone.is_none()) {
            known.gone = facts.over.contains_key(&known.session).then_some(key);
        }
    }
}

impl Workload for Elections {
    fn class(&self) -> &'static str {
        "Election"
    }

    fn creation(&self) -> Option<Call> {
        None
    }

    fn may_starve(&self, call: &Call) -> bool {
        call.method == "observe"
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, facts: &Facts<'_>) -> Vec<Call> {
        self.look_for_ends(facts);
        let stage = *self.stages.entry(worker.client).or_insert(Stage::Idle);
        match stage {
            // Whoever comes after a client that died knows nothing of its seat.
            Stage::Leading { session, .. } | Stage::Resigning { session, .. }
                if session != worker.session && facts.over.contains_key(&session) =>
            {
                self.stages.insert(worker.client, Stage::Idle);
                Vec::new()
            }
            Stage::Leading { session, token, until }
                if until <= facts.now && session == worker.session =>
            {
                self.stages.insert(worker.client, Stage::Resigning { session, token });
                vec![self.call("resign", to_bytes(&token))]
            }
            Stage::Idle if worker.open == 0 && !worker.draining && prng.permille(500) => {
                self.stages.insert(worker.client, Stage::Busy);
                let known = if prng.permille(500) { self.newest() } else { 0 };
                let call = match prng.below(10) {
                    0..2 => self.call("observe", to_bytes(&known)),
                    2 => self.call("try_campaign", to_bytes(&name(worker.client))),
                    _ => self.call("campaign", to_bytes(&name(worker.client))),
                };
                vec![call]
            }
            _ => Vec::new(),
        }
    }

    fn plan_read(&mut self, worker: &Worker, prng: &mut Prng) -> Option<Call> {
        if worker.draining || prng.permille(700) {
            return None;
        }
        let newest = self.newest();
        let call = self.call("leader", Vec::new());
        self.reads.insert(call.key, newest);
        Some(call)
    }

    fn ended(
        &mut self,
        client: usize,
        call: &Call,
        ended: &Ended<'_>,
        facts: &Facts<'_>,
    ) -> Checked {
        let stage = self.stages.insert(client, Stage::Idle);
        let Ended::Reply { session, step, outcome, given_up, .. } = *ended else { return Ok(()) };
        match (call.method, outcome) {
            ("campaign", Ok(bytes)) => {
                let token = decode(CHECKER, bytes)?;
                self.elected(client, (session, token, step), facts)
            }
            ("try_campaign", Ok(bytes)) => {
                let token: Option<u64> = decode(CHECKER, bytes)?;
                token.map_or(Ok(()), |token| self.elected(client, (session, token, step), facts))
            }
            ("observe", Ok(bytes)) => {
                let leader: Option<Leader> = decode(CHECKER, bytes)?;
                self.observed(leader.as_ref(), step)
            }
            ("resign", Ok(_)) => {
                let Some(Stage::Resigning { token, .. }) = stage else {
                    panic!("only a leader resigns");
                };
                self.resigned(token, step)
            }
            // The class's own error for a call that was given up while it waited.
            ("campaign", Err(CallError::Failed(_))) if given_up => Ok(()),
            (_, Err(error)) if is_given_up(error) => {
                if let Some(Stage::Resigning { session, token }) = stage {
                    let until = facts.now;
                    self.stages.insert(client, Stage::Leading { session, token, until });
                }
                Ok(())
            }
            (_, Err(error)) => Err(unexpected(CHECKER, call, error)),
            (method, Ok(_)) => panic!("nobody calls {method}"),
        }
    }

    fn read_ended(&mut self, _client: usize, call: &Call, outcome: &Outcome) -> Checked {
        let leader: Option<Leader> = match outcome {
            Ok(bytes) => decode(CHECKER, bytes)?,
            // Reads create nothing, and an election that nobody cares for is not there.
            Err(CallError::ObjectUnknown) => None,
            Err(error) => return Err(unexpected(CHECKER, call, error)),
        };
        let newest = self.reads.remove(&call.key).expect("it was planned");
        let Some(leader) = leader else { return Ok(()) };
        self.told(&leader)?;
        demand(leader.token >= newest, CHECKER, || {
            format!("a read gave {leader:?}, and {newest} had led before it was asked")
        })?;
        let gone = self.leaders.get(&leader.token).and_then(|known| known.gone);
        demand(gone.is_none_or(|gone| gone > call.key), CHECKER, || {
            format!("{leader:?} led no more when a read was asked that gave it")
        })
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        let waits = self.call("candidates", Vec::new());
        let waiting: u64 = read(CHECKER, machine, catalog, &waits)?.unwrap_or(0);
        demand(waiting == 0, CHECKER, || format!("{waiting} candidates wait, and nobody asked"))?;
        let leads = self.call("leader", Vec::new());
        let leader: Option<Leader> = read(CHECKER, machine, catalog, &leads)?.flatten();
        let sessions: BTreeSet<_> = machine.sessions().map(|(session, _)| session.0).collect();
        if let Some(leader) = &leader {
            self.told(leader)?;
            let known = self.leaders.get(&leader.token);
            let resigned = known.is_some_and(|known| known.resigned.is_some());
            demand(sessions.contains(&leader.session.0) && !resigned, CHECKER, || {
                format!("{leader:?} leads in the end, and is gone: {known:?}")
            })?;
        }
        for (client, stage) in &self.stages {
            let Stage::Leading { session, token, .. } = *stage else { continue };
            let leads = leader.as_ref().is_some_and(|leader| leader.token == token);
            demand(leads || !sessions.contains(&session.0), CHECKER, || {
                format!("client {client} leads with {token} in the end, and {leader:?} is said to")
            })?;
        }
        Ok(())
    }
}
