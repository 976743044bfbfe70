//! How replacing a class would go: an operator's question, answered by trying it on a copy.
//!
//! ```text
//! module inspected ─► compiled, on the compiler's thread ─► waits ─► tried in slices ─► answered
//! ```
//!
//! A slice is done in each turn of the driver, after the turn's own work, and one trial at a time.
//! Invariants: nothing is ordered, and nothing of a trial stays (`gesmas_machine::Trial`); trials
//! that wait are bounded in number, and each in its work.

use std::{collections::VecDeque, sync::Arc};

use gesmas_machine::{CallError, ClassName, CodeHash, Engine as _, STATE_MACHINE_VERSION, Trial};
use gesmas_protocol::{self as protocol, AdminError, AdminReply};

use super::{
    compiler::Job,
    convert,
    driver::Driver,
    input::{CompileReason, ConnectionId, TrialRequest},
};

/// Trials that may wait or run, those that are being compiled included.
const TRIALS_MAX: usize = 8;

/// Fuel of one slice: some milliseconds, so that heartbeats go on.
const SLICE_FUEL: u64 = 5_000_000;

/// Fuel of one trial: some seconds. The answer says whether objects are left.
const TRIAL_FUEL: u64 = 5_000_000_000;

/// What an operator is answered.
type Answer = Result<AdminReply, AdminError>;

/// Trials of compiled modules, in the order in which they came.
#[derive(Default)]
pub(super) struct Trials {
    waiting: VecDeque<TrialRequest>,
    running: Option<(TrialRequest, Trial)>,
    compiling: usize,
}

impl Trials {
    fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some()) + self.compiling
    }

    /// Drops those of a connection that has ended.
    pub(super) fn forget_of(&mut self, connection: ConnectionId) {
        self.waiting.retain(|request| request.connection != connection);
        self.running.take_if(|(request, _)| request.connection == connection);
    }
}

impl Driver {
    /// Has the module compiled; what is wrong before that is answered at once.
    pub(super) fn begin_trial(
        &mut self,
        connection: ConnectionId,
        correlation: u64,
        class: &str,
        module: &[u8],
        replace: protocol::Replace,
    ) -> Result<(), Box<Answer>> {
        let invalid = |error: gesmas_machine::NameError| {
            Box::new(Err(AdminError::Invalid { message: error.to_string() }))
        };
        let name = ClassName::new(class).map_err(invalid)?;
        if self.trials.len() >= TRIALS_MAX {
            let message = format!("{TRIALS_MAX} trials are under way: ask again");
            return Err(Box::new(Err(AdminError::Unavailable { message })));
        }
        let machine = self.replica.machine();
        if machine.class(&name).is_none() {
            return Err(Box::new(Err(AdminError::ClassUnknown { class: class.into() })));
        }
        let limits = machine.limits().module;
        let inspected = machine.engine().inspect(class, module, STATE_MACHINE_VERSION, &limits);
        let interface =
            inspected.map_err(|error| Box::new(refused(CallError::ModuleRejected(error))))?;
        let code = CodeHash::of(module);
        let replace = convert::replace(replace);
        let trial = TrialRequest { connection, correlation, class: name, code, interface, replace };
        if machine.engine().is_compiled(code) {
            self.trials.waiting.push_back(trial);
        } else {
            let module = Arc::from(module);
            self.trials.compiling += 1;
            self.compiler.add(Job { code, module, reason: CompileReason::Trial(trial) });
        }
        Ok(())
    }

    /// The module is compiled, or cannot be.
    pub(super) fn trial_compiled(&mut self, trial: TrialRequest, failure: Option<String>) {
        self.trials.compiling -= 1;
        match failure {
            None => self.trials.waiting.push_back(trial),
            Some(failure) => {
                let answer = refused(CallError::CompileFailed(failure));
                self.answer(trial.connection, trial.correlation, answer);
            }
        }
    }

    /// Whether a trial can go on now.
    pub(super) fn has_trial_work(&self) -> bool {
        let Trials { waiting, running, .. } = &self.trials;
        running.is_some() || (!waiting.is_empty() && self.can_begin_trial())
    }

    /// A trial begins between two entries, when all code is compiled.
    fn can_begin_trial(&self) -> bool {
        let machine = self.replica.machine();
        machine.is_between_entries() && machine.waits_for_code().is_none()
    }

    /// Does a slice of the trial that runs, or begins with the next.
    pub(super) fn go_on_with_trials(&mut self) {
        let machine = self.replica.machine_mut();
        let Some((request, mut trial)) = self.trials.running.take() else {
            return self.begin_next_trial();
        };
        match machine.go_on_with_trial(&mut trial, SLICE_FUEL) {
            None => self.trials.running = Some((request, trial)),
            Some(end) => {
                let answer = end.map_or_else(refused, |report| {
                    Ok(AdminReply::Tried(protocol::ClassTrial {
                        refusal: None,
                        migrated: report.migrated,
                        failures: (report.failures.into_iter())
                            .map(|(object, error)| (object.to_string(), error))
                            .collect(),
                        more: report.more,
                    }))
                });
                self.answer(request.connection, request.correlation, answer);
            }
        }
    }

    fn begin_next_trial(&mut self) {
        if !self.can_begin_trial() {
            return;
        }
        let machine = self.replica.machine();
        let Some(request) = self.trials.waiting.pop_front() else { return };
        let TrialRequest { class, code, interface, replace, .. } = &request;
        if machine.class(class).is_none() {
            let answer = Err(AdminError::ClassUnknown { class: class.to_string() });
            return self.answer(request.connection, request.correlation, answer);
        }
        match machine.begin_trial(class, *code, interface, *replace, TRIAL_FUEL) {
            Ok(trial) => self.trials.running = Some((request, trial)),
            Err(error) => self.answer(request.connection, request.correlation, refused(error)),
        }
    }
}

fn refused(error: CallError) -> Answer {
    Ok(AdminReply::Tried(protocol::ClassTrial {
        refusal: Some(convert::call_error(error)),
        migrated: 0,
        failures: Vec::new(),
        more: false,
    }))
}
