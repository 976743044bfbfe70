//! How replacing a class would go: an operator's question, answered by trying it on a copy.
//!
//! The module is compiled as for a put, on the compiler's thread, and then tried between two entries
//! of the log. Nothing is ordered, and nothing of it stays.

use std::sync::Arc;

use gesmas_machine::{ClassName, CodeHash, Engine as _, STATE_MACHINE_VERSION};
use gesmas_protocol::{self as protocol, AdminError, AdminReply};

use super::{
    compiler::Job,
    convert,
    driver::Driver,
    input::{CompileReason, ConnectionId, Trial},
};

/// Objects that are tried, so that the kernel is not held up for long.
const OBJECTS_MAX: usize = 10_000;

/// What an operator is answered.
type Answer = Result<AdminReply, AdminError>;

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
        let machine = self.replica.machine();
        if machine.class(&name).is_none() {
            return Err(Box::new(Err(AdminError::ClassUnknown { class: class.into() })));
        }
        let limits = machine.limits().module;
        let inspected = machine.engine().inspect(class, module, STATE_MACHINE_VERSION, &limits);
        let interface = inspected
            .map_err(|error| Box::new(refused(gesmas_machine::CallError::ModuleRejected(error))))?;
        let code = CodeHash::of(module);
        let replace = convert::replace(replace);
        let trial = Trial { connection, correlation, class: name, code, interface, replace };
        if machine.engine().is_compiled(code) {
            self.end_trial(trial, None);
        } else {
            let module = Arc::from(module);
            self.compiler.add(Job { code, module, reason: CompileReason::Trial(trial) });
        }
        Ok(())
    }

    /// The module is compiled, or cannot be.
    pub(super) fn end_trial(&mut self, trial: Trial, failure: Option<String>) {
        let Trial { connection, correlation, class, code, interface, replace } = trial;
        let machine = self.replica.machine_mut();
        let answer = if let Some(failure) = failure {
            refused(gesmas_machine::CallError::CompileFailed(failure))
        } else if !machine.is_between_entries() {
            let message = "the replica is in the middle of a long step: ask again".into();
            Err(AdminError::Unavailable { message })
        } else if machine.class(&class).is_none() {
            Err(AdminError::ClassUnknown { class: class.to_string() })
        } else {
            match machine.try_replacement(&class, code, &interface, replace, OBJECTS_MAX) {
                Err(error) => refused(error),
                Ok(trial) => Ok(AdminReply::Tried(protocol::ClassTrial {
                    refusal: None,
                    migrated: trial.migrated,
                    failures: (trial.failures.into_iter())
                        .map(|(object, error)| (object.to_string(), error))
                        .collect(),
                    more: trial.more,
                })),
            }
        };
        self.answer(connection, correlation, answer);
    }
}

fn refused(error: gesmas_machine::CallError) -> Answer {
    Ok(AdminReply::Tried(protocol::ClassTrial {
        refusal: Some(convert::call_error(error)),
        migrated: 0,
        failures: Vec::new(),
        more: false,
    }))
}
