//! Members: clients join a group, change what they say of themselves, leave, and are told of changes.
//!
//! Tokens of members rise in the order of the steps at which they joined, and a session that joins again
//! has its token again. Each subscriber hears of changes
//! in the order of their versions. In the end who is listed has a session that lives, and every client
//! that joined and has not left is listed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use gesmas_abi::value::{Bytes, to_bytes};
use gesmas_machine::{CallError, Machine, SessionId, Step};
use gesmas_membership::{Change, Members as Page};

use super::{Ended, Facts, Worker, Workload, decode, is_given_up, read, unexpected};
use crate::{
    catalog::{Call, Catalog, object},
    engine::SimulatedEngine,
    prng::Prng,
    verdict::{Checked, Violation, demand},
};

const CHECKER: &str = "membership";

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Busy,
    Joined { session: SessionId, token: u64 },
    Changing { session: SessionId, token: u64 },
}

pub(super) struct Members {
    stages: BTreeMap<usize, Stage>,
    tokens: BTreeSet<(Step, u64)>,
    /// The token of each session that is a member, as far as its client knows.
    own: BTreeMap<SessionId, u64>,
    /// The last version that a session has heard of.
    heard: BTreeMap<SessionId, u64>,
    next_key: u64,
}

fn name(client: usize) -> String {
    format!("client {client}")
}

impl Members {
    pub(super) fn new() -> Self {
        Self {
            stages: BTreeMap::new(),
            tokens: BTreeSet::new(),
            own: BTreeMap::new(),
            heard: BTreeMap::new(),
            next_key: 0,
        }
    }

    fn call(&mut self, method: &'static str, arguments: Vec<u8>) -> Vec<Call> {
        self.next_key += 1;
        let object = object("Membership", "workers");
        vec![Call { object, method, arguments, key: self.next_key, time_left: None }]
    }

    fn joined(&mut self, session: SessionId, step: Step, token: u64) -> Checked {
        if let Some(before) = self.own.insert(session, token) {
            return demand(before == token, CHECKER, || {
                format!(
                    "session {session} was a member with {before}, and joined again with {token}"
                )
            });
        }
        self.tokens.insert((step, token));
        let before = self.tokens.range(..(step, token)).next_back();
        let after = self.tokens.range((step, token + 1)..).next();
        let rises = before.is_none_or(|(_, other)| *other < token)
            && after.is_none_or(|(_, other)| *other > token);
        demand(rises, CHECKER, || format!("token {token} of step {step} does not rise"))
    }
}

impl Workload for Members {
    fn class(&self) -> &'static str {
        "Membership"
    }

    fn creation(&self) -> Option<Call> {
        None
    }

    fn may_starve(&self, _call: &Call) -> bool {
        false
    }

    fn plan(&mut self, worker: &Worker, prng: &mut Prng, facts: &Facts<'_>) -> Vec<Call> {
        let stage = *self.stages.entry(worker.client).or_insert(Stage::Idle);
        let name = name(worker.client);
        match stage {
            Stage::Joined { session, .. }
                if session != worker.session || facts.over.contains_key(&session) =>
            {
                self.stages.insert(worker.client, Stage::Idle);
                Vec::new()
            }
            Stage::Joined { session, token } if !worker.draining && prng.permille(200) => {
                self.stages.insert(worker.client, Stage::Changing { session, token });
                match prng.below(4) {
                    0..2 => self.call("leave", to_bytes(&(name, token))),
                    2 => self.call("update", to_bytes(&(name, token, Bytes::from("more")))),
                    _ => self.call("join", to_bytes(&(name, Bytes::from("again")))),
                }
            }
            Stage::Idle if worker.open == 0 && !worker.draining && prng.permille(500) => {
                self.stages.insert(worker.client, Stage::Busy);
                if prng.permille(300) {
                    return self.call("subscribe", Vec::new());
                }
                if prng.permille(500) {
                    return self.call("join", to_bytes(&(name, Bytes::from("here"))));
                }
                let patience = Duration::from_millis(prng.between(50, 5_000));
                self.call("join_for", to_bytes(&(name, Bytes::from("here"), patience)))
            }
            _ => Vec::new(),
        }
    }

    fn ended(
        &mut self,
        client: usize,
        call: &Call,
        ended: &Ended<'_>,
        _facts: &Facts<'_>,
    ) -> Checked {
        let stage = self.stages.insert(client, Stage::Idle);
        let Ended::Reply { session, step, outcome, given_up, .. } = *ended else { return Ok(()) };
        match (call.method, outcome) {
            ("join", Ok(bytes)) => {
                let token = decode(CHECKER, bytes)?;
                self.stages.insert(client, Stage::Joined { session, token });
                self.joined(session, step, token)
            }
            ("join_for", Ok(bytes)) => {
                let token: Option<u64> = decode(CHECKER, bytes)?;
                let Some(token) = token else { return Ok(()) };
                self.stages.insert(client, Stage::Joined { session, token });
                self.joined(session, step, token)
            }
            // The session of the one before it still lives.
            ("join", Err(CallError::Failed(_))) | ("subscribe", Ok(_)) => Ok(()),
            // The class's own error for a call that was given up while it waited.
            ("join_for", Err(CallError::Failed(_))) if given_up => Ok(()),
            ("leave", Ok(_)) => {
                self.own.remove(&session);
                Ok(())
            }
            ("update", Ok(_)) => {
                let Some(Stage::Changing { session, token }) = stage else {
                    panic!("only a member says something else of itself");
                };
                self.stages.insert(client, Stage::Joined { session, token });
                Ok(())
            }
            (_, Err(error)) if is_given_up(error) => {
                if let Some(Stage::Changing { session, token }) = stage {
                    self.stages.insert(client, Stage::Joined { session, token });
                }
                Ok(())
            }
            (_, Err(error)) => Err(unexpected(CHECKER, call, error)),
            (method, Ok(_)) => Err(Violation::new(CHECKER, format!("nobody called {method}"))),
        }
    }

    fn event(&mut self, session: SessionId, payload: &[u8]) -> Checked {
        let changes = std::str::from_utf8(payload).ok().and_then(|text| Change::all(text).ok());
        let Some(changes) = changes else {
            return Err(Violation::new(CHECKER, format!("{payload:?} has no changes")));
        };
        for Change { version, .. } in changes {
            let before = self.heard.insert(session, version);
            demand(before.is_none_or(|before| before < version), CHECKER, || {
                format!("session {session} heard of version {version} after {before:?}")
            })?;
        }
        Ok(())
    }

    fn finish(&mut self, machine: &mut Machine<SimulatedEngine>, catalog: &Catalog) -> Checked {
        let object = object("Membership", "workers");
        let arguments = to_bytes(&(String::new(), 1_000_u32));
        let call = Call { object, method: "members", arguments, key: 0, time_left: None };
        let page: Option<Page> = read(CHECKER, machine, catalog, &call)?;
        let members = page.map(|page| page.members).unwrap_or_default();
        let sessions: BTreeSet<_> = machine.sessions().map(|(session, _)| session.0).collect();
        for member in &members {
            demand(sessions.contains(&member.session.0), CHECKER, || {
                format!("{member:?} is listed, and its session is over")
            })?;
        }
        for (client, stage) in &self.stages {
            let Stage::Joined { session, token } = *stage else { continue };
            let listed = members.iter().any(|member| {
                (member.name.as_str(), member.token) == (name(*client).as_str(), token)
            });
            demand(listed || !sessions.contains(&session.0), CHECKER, || {
                format!("client {client} has joined with {token}, and is not in {members:?}")
            })?;
        }
        Ok(())
    }
}
