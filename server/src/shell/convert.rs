//! Between the client protocol and the machine: the same things in two crates' types.
//!
//! The protocol does not know the machine and the machine not the protocol, so that either can
//! change its inside alone. What comes in is checked here; what goes out is translated one to one.

use gesmas_machine as machine;
use gesmas_protocol as protocol;
use machine::{ClassName, MethodName, NameError, ObjectName, SessionId};

use crate::replica::NotTaken;

/// Longest name of a limit, bytes: names are echoed in errors.
const LIMIT_NAME_MAX: usize = 64;

/// Why a request is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoRequest {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("no limit has a name of {length} bytes")]
    LimitName { length: usize },
}

/// The machine's form of a request.
pub(super) fn request(request: protocol::Request) -> Result<machine::Request, NoRequest> {
    Ok(machine::Request {
        place: machine::Place {
            session: SessionId(request.session),
            number: request.number,
            previous: request.previous,
        },
        acknowledged: acknowledged(request.acknowledged),
        time_left: request.time_left_ns,
        body: body(request.body)?,
    })
}

fn body(body: protocol::RequestBody) -> Result<machine::RequestBody, NoRequest> {
    use protocol::RequestBody as From;
    Ok(match body {
        From::Call { class, object, method, signature, arguments, on_behalf: behalf } => {
            machine::RequestBody::Call {
                object: ObjectName::new(&class, &object)?,
                method: MethodName::new(&method)?,
                signature,
                arguments: arguments.into(),
                on_behalf: on_behalf(behalf),
            }
        }
        From::CreateObject { class, object, signature, arguments } => {
            machine::RequestBody::CreateObject {
                object: ObjectName::new(&class, &object)?,
                signature,
                arguments: arguments.into(),
            }
        }
        From::RemoveObject { class, object } => {
            machine::RequestBody::RemoveObject { object: ObjectName::new(&class, &object)? }
        }
        From::PutClass { class, module, replace: how } => machine::RequestBody::PutClass {
            class: ClassName::new(&class)?,
            module: module.into(),
            replace: how.map(replace),
        },
        From::SetLimit { name, .. } if name.len() > LIMIT_NAME_MAX => {
            return Err(NoRequest::LimitName { length: name.len() });
        }
        From::SetLimit { name, value } => machine::RequestBody::SetLimit { name, value },
        From::RemoveClass { class } => {
            machine::RequestBody::RemoveClass { class: ClassName::new(&class)? }
        }
        From::Kill { invocation } => {
            machine::RequestBody::Kill { invocation: machine::InvocationId(invocation) }
        }
        From::EndFault { class, object, fault, retry } => machine::RequestBody::EndFault {
            object: ObjectName::new(&class, &object)?,
            fault: machine::AlarmId(fault),
            retry,
        },
        From::KillSession { session } => {
            machine::RequestBody::KillSession { session: SessionId(session) }
        }
    })
}

/// Why a command was not taken, for clients.
pub(super) fn not_taken(error: NotTaken) -> protocol::Refusal {
    match error {
        NotTaken::Busy(_) => protocol::Refusal::Busy,
        NotTaken::TooLarge { .. } => protocol::Refusal::Invalid { message: error.to_string() },
    }
}

/// The machine's form of how code is replaced.
pub(super) const fn replace(from: protocol::Replace) -> machine::Replace {
    machine::Replace { cancel_pinned: from.cancel_pinned }
}

const fn on_behalf(from: protocol::OnBehalf) -> machine::OnBehalf {
    match from {
        protocol::OnBehalf::Requester => machine::OnBehalf::Requester,
        protocol::OnBehalf::Nobody => machine::OnBehalf::Nobody,
        protocol::OnBehalf::Session(session) => machine::OnBehalf::Session(SessionId(session)),
    }
}

/// The machine's form of what a client has received.
pub(super) fn acknowledged(from: protocol::Acknowledged) -> machine::Acknowledged {
    machine::Acknowledged { replies: from.replies, events: from.events }
}

/// The machine's form of a read.
pub(super) fn read(read: protocol::Read, principal: &str) -> Result<machine::Read, NameError> {
    Ok(machine::Read {
        after: read.session.map(|session| (SessionId(session), read.after)),
        principal: principal.into(),
        object: ObjectName::new(&read.class, &read.object)?,
        method: MethodName::new(&read.method)?,
        signature: read.signature,
        arguments: read.arguments.into(),
    })
}

/// A position for clients.
pub(super) fn position(position: machine::Position) -> protocol::Position {
    protocol::Position { epoch: position.epoch.into(), step: position.step.0 }
}

/// What a client says that it has seen. An epoch that there cannot be is later than all there are.
pub(super) fn seen(position: protocol::Position) -> machine::Position {
    let epoch = u32::try_from(position.epoch).unwrap_or(u32::MAX);
    machine::Position { epoch, step: machine::Step(position.step) }
}

/// An outcome for clients.
pub(super) fn outcome(outcome: machine::Outcome) -> protocol::Outcome {
    outcome.map(Into::into).map_err(call_error)
}

/// An error for clients.
pub(super) fn call_error(error: machine::CallError) -> protocol::CallError {
    use machine::CallError as From;
    use protocol::CallError as To;
    match error {
        From::Failed(error) => To::Failed(error.into()),
        From::Aborted(error) => To::Aborted(error.into()),
        From::Cancelled(reason) => To::Cancelled(cancel_reason(reason)),
        From::Trapped(error) => To::Trapped(trap(&error)),
        From::CleanupFailed { reason, trap: error } => {
            To::CleanupFailed { reason: cancel_reason(reason), trap: trap(&error) }
        }
        From::InitFailed(error) => To::InitFailed(trap(&error)),
        From::InitRefused(error) => To::InitRefused(error.into()),
        From::ClassMismatch { method, have, want } => {
            To::ClassMismatch { method: method.into(), have, want }
        }
        From::ClassExists { class, have } => {
            To::ClassExists { class: class.into(), have: protocol::CodeHash(have.0) }
        }
        From::ModuleRejected(error) => To::ModuleRejected(module_error(&error)),
        From::CompileFailed(message) => To::CompileFailed(message),
        From::MethodUnknown { class, method } => {
            To::MethodUnknown { class: class.into(), method: method.into() }
        }
        From::NotCallable { method } => To::NotCallable { method: method.into() },
        From::NotAnUpdate { method } => To::NotAnUpdate { method: method.into() },
        From::NotARead { method } => To::NotARead { method: method.into() },
        From::ObjectUnknown => To::ObjectUnknown,
        From::ObjectExists => To::ObjectExists,
        From::ObjectRemoved => To::ObjectRemoved,
        From::InvocationUnknown => To::InvocationUnknown,
        From::MigrateFailed(error) => To::MigrateFailed(trap(&error)),
        From::FaultUnknown => other("fault-unknown", &error),
        From::HandlerGone { .. } => other("handler-changed", &error),
        From::SessionUnknown => other("session-unknown", &error),
        From::ClassPinned { .. } => other("class-pinned", &error),
        From::MigrateMissing { .. } => other("migrate-missing", &error),
        From::HandlerChanged { .. } => other("handler-changed", &error),
        From::ClassMissing { .. } => other("class-unknown", &error),
        From::ClassInUse { .. } => other("class-in-use", &error),
        From::LimitNotChanged(_) => other("limit-not-changed", &error),
        From::Limit(exceeded) => To::Limit(limit(exceeded)),
    }
}

/// An error that the protocol has no word of its own for.
fn other(code: &str, error: &machine::CallError) -> protocol::CallError {
    protocol::CallError::Other { code: code.into(), message: error.to_string() }
}

/// A refusal for clients.
pub(super) fn refusal(refusal: machine::Refusal) -> protocol::Refusal {
    use machine::Refusal as From;
    use protocol::Refusal as To;
    match refusal {
        From::OutOfOrder { last } => To::OutOfOrder { last },
        From::Forgotten => To::Forgotten,
        From::ClassUnknown { class } => To::ClassUnknown { class: class.into() },
        From::ClassPending { class } => To::ClassPending { class: class.into() },
        From::SessionUnknown => To::SessionUnknown,
        From::Limit(exceeded) => To::Limit(limit(exceeded)),
        From::MigrationPending { object } => To::MigrationPending {
            class: object.class.to_string(),
            object: object.name.to_string(),
        },
    }
}

/// Why a session is over, for clients.
pub(super) fn session_end(reason: machine::SessionEnd) -> protocol::OverReason {
    match reason {
        machine::SessionEnd::Closed => protocol::OverReason::Closed,
        machine::SessionEnd::Expired => protocol::OverReason::Expired,
        machine::SessionEnd::Killed => protocol::OverReason::Killed,
    }
}

fn limit(exceeded: machine::LimitExceeded) -> protocol::LimitExceeded {
    protocol::LimitExceeded { name: exceeded.name, limit: exceeded.limit }
}

fn cancel_reason(reason: machine::CancelReason) -> protocol::CancelReason {
    match reason {
        machine::CancelReason::Deadline => protocol::CancelReason::Deadline,
        machine::CancelReason::Caller => protocol::CancelReason::Caller,
        machine::CancelReason::SessionOver => protocol::CancelReason::SessionOver,
        machine::CancelReason::Operator => protocol::CancelReason::Operator,
        machine::CancelReason::Deadlock => protocol::CancelReason::Deadlock,
    }
}

fn trap(trap: &machine::Trap) -> protocol::Trap {
    use machine::Trap as From;
    use protocol::TrapKind as To;
    let kind = match trap {
        From::Panicked(_) => To::Panicked,
        From::Fault(_) => To::Fault,
        From::OutOfFuel(_) => To::OutOfFuel,
        From::StepBudget(_) => To::StepBudget,
        From::OutOfMemory(_) => To::OutOfMemory,
        From::StackOverflow => To::StackOverflow,
        From::Forbidden(_) => To::Forbidden,
        From::ArgumentsMalformed(_) => To::ArgumentsMalformed,
        From::HostCallMalformed(_) => To::HostCallMalformed,
        From::TargetUnknown(_) => To::TargetUnknown,
        From::Limit(_) => To::Limit,
        From::MigrateRefused => To::MigrateRefused,
    };
    protocol::Trap { kind, message: trap.to_string() }
}

fn module_error(error: &machine::ModuleError) -> protocol::ModuleError {
    use machine::ModuleError as From;
    use protocol::ModuleErrorKind as To;
    let kind = match error {
        From::Invalid(_) => To::Invalid,
        From::Feature(_) => To::Feature,
        From::Import(_) => To::Import,
        From::StartFunction => To::StartFunction,
        From::ExportMissing(_) => To::ExportMissing,
        From::InterfaceMissing => To::InterfaceMissing,
        From::InterfaceMalformed(_) => To::InterfaceMalformed,
        From::OtherClass(_) => To::OtherClass,
        From::Name(_) => To::Name,
        From::Limit(_) => To::Limit,
    };
    protocol::ModuleError { kind, message: error.to_string() }
}
