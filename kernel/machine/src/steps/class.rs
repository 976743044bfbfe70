//! Classes are loaded once: checked, compiled by the replicas, ready when a majority has them.
//!
//! Each replica reports by a command, and the step of the report that makes a majority makes the
//! class ready, so that no leader needs to count, and none can forget.
//! Invariant: a name keeps its code; only an explicit replacement may change it.
//! Source: section 4.1 of the GESMAS paper, where the server asks a client for unknown code.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    code::CodeHash,
    command::{Place, STATE_MACHINE_VERSION},
    effect::Effect,
    engine::Engine,
    limits::within,
    machine::Machine,
    names::ClassName,
    outcome::{CallError, Outcome},
    state::{Class, ClassStatus, Open},
};

impl<E: Engine> Machine<E> {
    pub(super) fn put_class(&mut self, place: Place, name: ClassName, module: Vec<u8>) {
        let code = CodeHash::of(&module);
        match self.world.state.classes.get_mut(&name) {
            Some(class) if class.code != code => {
                let error = CallError::ClassExists { class: name, have: class.code };
                self.world.reply(place.session, place.number, Err(error));
            }
            Some(Class { status: ClassStatus::Ready, .. }) => {
                self.world.reply(place.session, place.number, Ok(code.0.to_vec()));
            }
            Some(Class { status: ClassStatus::Pending { puts, .. }, .. }) => {
                puts.push((place.session, place.number));
                self.session(place).open.insert(place.number, Open::PutClass);
            }
            None => match self.check_class_put(&name, code, &module) {
                Ok(class) => {
                    let puts = vec![(place.session, place.number)];
                    let status = ClassStatus::Pending { reports: BTreeMap::new(), puts };
                    let class = Class { status, ..class };
                    self.world.state.classes.insert(name.clone(), class);
                    self.session(place).open.insert(place.number, Open::PutClass);
                    self.world.staged.push(Effect::Compile { class: name, code });
                }
                Err(error) => self.world.reply(place.session, place.number, Err(error)),
            },
        }
    }

    fn check_class_put(
        &self,
        name: &ClassName,
        code: CodeHash,
        module: &[u8],
    ) -> Result<Class, CallError> {
        let state = &self.world.state;
        if let Some(have) = state.genesis().reserved.get(name)
            && *have != code
        {
            return Err(CallError::ClassExists { class: name.clone(), have: *have });
        }
        let limits = state.limits();
        within("classes", limits.classes, state.classes.len() as u64 + 1)
            .map_err(CallError::Limit)?;
        let interface = self
            .engine
            .inspect(name.as_str(), module, STATE_MACHINE_VERSION, &limits.module)
            .map_err(CallError::ModuleRejected)?;
        Ok(Class { code, module: Arc::from(module), interface, status: ClassStatus::Ready })
    }

    /// Forgets that a request waits for a class.
    pub(super) fn forget_put(&mut self, place: Place) {
        let forgotten = (place.session, place.number);
        let classes = &mut self.world.state.classes;
        let waits = |class: &Class| match &class.status {
            ClassStatus::Pending { puts, .. } => puts.contains(&forgotten),
            ClassStatus::Ready => false,
        };
        let name = classes.iter().find(|(_, class)| waits(class)).map(|(name, _)| name.clone());
        let class = name.and_then(|name| classes.get_mut(&name));
        if let Some(ClassStatus::Pending { puts, .. }) = class.map(|class| &mut class.status) {
            puts.retain(|put| *put != forgotten);
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
        let named = classes.iter().find(|(_, class)| class.code == code);
        let Some(name) = named.map(|(name, _)| name.clone()) else {
            return;
        };
        let class = classes.get_mut(&name).expect("it was just found");
        let ClassStatus::Pending { reports, .. } = &mut class.status else {
            return;
        };
        reports.insert(replica, failure);
        let failures = reports.values().filter(|report| report.is_some()).count();
        if reports.len() - failures >= majority {
            self.class_ready(&name, code);
        } else if failures > members - majority {
            let failure = reports.values().flatten().next().cloned().unwrap_or_default();
            self.class_failed(&name, failure);
        }
    }

    fn class_ready(&mut self, name: &ClassName, code: CodeHash) {
        let class = self.world.state.classes.get_mut(name).expect("it was just found");
        let status = std::mem::replace(&mut class.status, ClassStatus::Ready);
        if !self.engine.is_compiled(code) {
            self.paused.push_back(code);
        }
        self.answer_puts(status, &Ok(code.0.to_vec()));
    }

    fn class_failed(&mut self, name: &ClassName, failure: String) {
        let class = self.world.state.classes.remove(name).expect("it was just found");
        self.answer_puts(class.status, &Err(CallError::CompileFailed(failure)));
    }

    fn answer_puts(&mut self, status: ClassStatus, outcome: &Outcome) {
        let ClassStatus::Pending { puts, .. } = status else {
            panic!("only a pending class becomes ready or fails");
        };
        for (session, number) in puts {
            let open = self.world.state.sessions.get(&session).map(|session| &session.open);
            if open.is_some_and(|open| open.contains_key(&number)) {
                self.world.reply(session, number, outcome.clone());
            }
        }
    }
}
