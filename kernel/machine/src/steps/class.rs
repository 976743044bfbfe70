//! Classes are loaded once: checked, compiled by the replicas, ready when a majority has them.
//!
//! Each replica reports by a command, and the step of the report that makes a majority makes the
//! class ready, so that no leader needs to count, and none can forget.
//! Invariant: a name keeps its code; only an explicit replacement may change it.
//! Source: section 4.1 of the GESMAS paper, where the server asks a client for unknown code.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    code::CodeHash,
    command::{Place, Replace, STATE_MACHINE_VERSION},
    effect::Effect,
    engine::Engine,
    limits::within,
    machine::Machine,
    names::{ClassName, SessionId},
    outcome::{CallError, Outcome},
    state::{Class, ClassStatus, Open, Version},
};

impl<E: Engine> Machine<E> {
    pub(super) fn put_class(
        &mut self,
        place: Place,
        name: ClassName,
        module: Vec<u8>,
        replace: Option<Replace>,
    ) {
        let code = CodeHash::of(&module);
        let own = (place.session, place.number);
        match self.world.state.classes.get_mut(&name) {
            Some(class) if class.code == code => match &mut class.status {
                ClassStatus::Ready => {
                    self.world.reply(place.session, place.number, Ok(code.0.to_vec()));
                }
                ClassStatus::Pending { puts, .. } => {
                    puts.push(own);
                    self.session(place).open.insert(place.number, Open::PutClass);
                }
            },
            Some(class) => match (&mut class.next, replace) {
                (Some(next), Some(_)) if next.version.code == code => {
                    next.puts.push(own);
                    self.session(place).open.insert(place.number, Open::PutClass);
                }
                (None, Some(replace)) => match self.check_module(&name, code, &module) {
                    Ok(version) => self.replace_class(place, name, version, replace),
                    Err(error) => self.world.reply(place.session, place.number, Err(error)),
                },
                _ => {
                    let error = CallError::ClassExists { class: name, have: class.code };
                    self.world.reply(place.session, place.number, Err(error));
                }
            },
            None => self.put_new_class(place, name, code, &module),
        }
    }

    fn put_new_class(&mut self, place: Place, name: ClassName, code: CodeHash, module: &[u8]) {
        let limits = self.world.state.limits();
        let classes = self.world.state.classes.len() as u64 + 1;
        let room = within("classes", limits.classes, classes).map_err(CallError::Limit);
        match room.and_then(|()| self.check_module(&name, code, module)) {
            Ok(Version { code, module, interface }) => {
                let puts = vec![(place.session, place.number)];
                let status = ClassStatus::Pending { reports: BTreeMap::new(), puts };
                let (older, next) = (Vec::new(), None);
                let class = Class { code, module, interface, status, older, next };
                self.world.state.classes.insert(name.clone(), class);
                self.session(place).open.insert(place.number, Open::PutClass);
                self.world.staged.push(Effect::Compile { class: name, code });
            }
            Err(error) => self.world.reply(place.session, place.number, Err(error)),
        }
    }

    /// Checks a module by the rules, and that its name is not kept for another.
    fn check_module(
        &self,
        name: &ClassName,
        code: CodeHash,
        module: &[u8],
    ) -> Result<Version, CallError> {
        let state = &self.world.state;
        if let Some(have) = state.genesis().reserved.get(name)
            && *have != code
        {
            return Err(CallError::ClassExists { class: name.clone(), have: *have });
        }
        let limits = &state.limits().module;
        let interface = self
            .engine
            .inspect(name.as_str(), module, STATE_MACHINE_VERSION, limits)
            .map_err(CallError::ModuleRejected)?;
        Ok(Version { code, module: Arc::from(module), interface })
    }

    /// Forgets that a request waits for a class.
    pub(super) fn forget_put(&mut self, place: Place) {
        let forgotten = (place.session, place.number);
        let classes = &mut self.world.state.classes;
        let waits = |class: &Class| class.puts().any(|put| *put == forgotten);
        let name = classes.iter().find(|(_, class)| waits(class)).map(|(name, _)| name.clone());
        if let Some(class) = name.and_then(|name| classes.get_mut(&name)) {
            class.forget_put(forgotten);
        }
    }

    /// A replica's report. It fails the class when no majority is left that could compile it. Late and double ones change nothing.
    pub(super) fn compiled(&mut self, replica: u64, code: CodeHash, failure: Option<String>) {
        let replicas = &self.world.state.genesis().replicas;
        let members = replicas.len();
        let majority = members / 2 + 1;
        if !replicas.contains(&replica) {
            return;
        }
        let classes = &mut self.world.state.classes;
        let named = classes.iter().find(|(_, class)| class.compiling() == Some(code));
        let Some(name) = named.map(|(name, _)| name.clone()) else {
            return;
        };
        let class = classes.get_mut(&name).expect("it was just found");
        let replaces = class.next.is_some();
        let reports = class.reports_mut().expect("it is being compiled");
        reports.insert(replica, failure);
        let failures = reports.values().filter(|report| report.is_some()).count();
        if reports.len() - failures >= majority {
            if replaces {
                self.replacement_compiled(&name);
            } else {
                self.class_ready(&name, code);
            }
        } else if failures > members - majority {
            let failure = reports.values().flatten().next().cloned().unwrap_or_default();
            let error = CallError::CompileFailed(failure);
            if replaces {
                self.give_up_replacement(&name, &error);
            } else {
                let class = self.world.state.classes.remove(&name).expect("it was just found");
                self.answer_puts(class.into_puts(), &Err(error));
            }
        }
    }

    fn class_ready(&mut self, name: &ClassName, code: CodeHash) {
        let class = self.world.state.classes.get_mut(name).expect("it was just found");
        let status = std::mem::replace(&mut class.status, ClassStatus::Ready);
        if !self.engine.is_compiled(code) {
            self.paused.push_back(code);
        }
        let ClassStatus::Pending { puts, .. } = status else {
            panic!("only a pending class becomes ready");
        };
        self.answer_puts(puts, &Ok(code.0.to_vec()));
    }

    /// Answers those who wait for a class.
    pub(super) fn answer_puts(&mut self, puts: Vec<(SessionId, u64)>, outcome: &Outcome) {
        for (session, number) in puts {
            let open = self.world.state.sessions.get(&session).map(|session| &session.open);
            if open.is_some_and(|open| open.contains_key(&number)) {
                self.world.reply(session, number, outcome.clone());
            }
        }
    }
}
