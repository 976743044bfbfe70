//! How calls end, and why requests are turned away.
//!
//! Invariants: a [`CallError`] is the stored end of an admitted request; a [`Refusal`] is said of a
//! request that was not admitted and used up nothing. All types are flat: no value nests in itself,
//! so that no decoder can be driven into a deep recursion.

use serde::{Deserialize, Serialize};

use crate::{
    code::CodeHash,
    limits::LimitChangeError,
    names::{ClassName, MethodName, NameError, ObjectName},
};

/// The end of an admitted request: the encoded result, or why there is none.
pub type Outcome = Result<Vec<u8>, CallError>;

/// How an outcome is encoded: as it is, but the bytes of a result in one piece.
pub(crate) mod in_one_piece {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_bytes::{ByteBuf, Bytes};

    use super::{CallError, Outcome};

    pub(crate) fn serialize<S: Serializer>(
        outcome: &Outcome,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        outcome.as_deref().map(Bytes::new).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Outcome, D::Error> {
        let outcome = Result::<ByteBuf, CallError>::deserialize(deserializer)?;
        Ok(outcome.map(ByteBuf::into_vec))
    }
}

/// Why an admitted request has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CallError {
    /// The method returned an error of its class; what it did stands.
    #[error("the method returned an error of its class")]
    Failed(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The method aborted with an error of its class; its last segment is undone.
    #[error("the method aborted with an error of its class")]
    Aborted(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The call was cancelled while it was blocked.
    #[error("the call was cancelled: {0}")]
    Cancelled(CancelReason),
    /// The body failed; its last segment is undone.
    #[error("the method failed: {0}")]
    Trapped(Trap),
    /// The body failed while it cleaned up after a cancellation; the clean-up is undone.
    #[error("the call was cancelled ({reason}) and its clean-up failed: {trap}")]
    CleanupFailed {
        /// Why it was cancelled.
        reason: CancelReason,
        /// How the clean-up failed.
        trap: Trap,
    },
    /// `init` failed, so there is no object.
    #[error("the object could not be created: {0}")]
    InitFailed(Trap),
    /// `init` returned an error of its class, so there is no object.
    #[error("the object could not be created: init returned an error of its class")]
    InitRefused(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The code has another signature for the method than the caller.
    #[error("method {method} has signature {have:016x} here, the caller has {want:016x}")]
    ClassMismatch {
        /// The method.
        method: MethodName,
        /// Signature of the loaded code.
        have: u64,
        /// Signature of the caller.
        want: u64,
    },
    /// Another module has the class's name, and only an explicit replacement replaces it.
    #[error("class {class} exists with other code: {have}")]
    ClassExists {
        /// The class.
        class: ClassName,
        /// Hash of the code that has the name.
        have: CodeHash,
    },
    /// The module breaks a rule.
    #[error("the module is refused: {0}")]
    ModuleRejected(ModuleError),
    /// A majority of the replicas could not compile the module.
    #[error("the module could not be compiled: {0}")]
    CompileFailed(String),
    /// The class has no method of this name.
    #[error("class {class} has no method {method}")]
    MethodUnknown {
        /// The class.
        class: ClassName,
        /// The method.
        method: MethodName,
    },
    /// Clients cannot call handlers and `init`.
    #[error("{method} is not a method that clients can call")]
    NotCallable {
        /// The handler.
        method: MethodName,
    },
    /// A `read` method is not ordered, and others are.
    #[error("{method} is a read: send it as a read")]
    NotAnUpdate {
        /// The method.
        method: MethodName,
    },
    /// An update is ordered, and reads are not.
    #[error("{method} is an update: send it as a call")]
    NotARead {
        /// The method.
        method: MethodName,
    },
    /// The object does not exist; only a call creates one, and only if `init` takes nothing.
    #[error("the object does not exist, and it is not for this to create it")]
    ObjectUnknown,
    /// The object exists and was created with other arguments.
    #[error("the object exists and was created with other arguments")]
    ObjectExists,
    /// The object was removed while the call ran.
    #[error("the object was removed")]
    ObjectRemoved,
    /// No such invocation is open.
    #[error("no invocation with this number is open")]
    InvocationUnknown,
    /// No such session is open.
    #[error("no session with this number is open")]
    SessionUnknown,
    /// A limit of the machine stands against it.
    #[error("limit {0}")]
    Limit(LimitExceeded),
    /// Blocked calls are in the way of a new layout.
    #[error(
        "the new code of class {class} has another layout of state, and calls are blocked in the old \
         one: {blocked}"
    )]
    ClassPinned {
        /// The class.
        class: ClassName,
        /// How many calls.
        blocked: u64,
    },
    /// The new code has another layout and nothing that brings objects to it.
    #[error("the new code of class {class} has no `migrate` from the layouts that objects have")]
    MigrateMissing {
        /// The class.
        class: ClassName,
    },
    /// The new code lacks a handler that a timer or watch is going to start, or has it with other
    /// types.
    #[error("{object} has a timer or watch for {handler}, which the new code lacks or has changed")]
    HandlerChanged {
        /// The object.
        object: ObjectName,
        /// The handler.
        handler: MethodName,
    },
    /// The object could not be brought to the layout of its class; it is as it was.
    #[error("the object could not be migrated: {0}")]
    MigrateFailed(Trap),
    /// There is no such class.
    #[error("class {class} is not loaded")]
    ClassMissing {
        /// The class.
        class: ClassName,
    },
    /// The class has objects.
    #[error("class {class} is in use: {objects} objects, {blocked} blocked calls")]
    ClassInUse {
        /// The class.
        class: ClassName,
        /// How many objects.
        objects: u64,
        /// How many calls.
        blocked: u64,
    },
    /// A limit cannot be changed so.
    #[error("the limit is not changed: {0}")]
    LimitNotChanged(LimitChangeError),
    /// The object keeps no such fault.
    #[error("the object keeps no fault with this number")]
    FaultUnknown,
    /// The class's code has changed since the fault: it lacks the handler, or has it with other types.
    #[error("the class has no handler {handler} any more that takes the arguments of the fault")]
    HandlerGone {
        /// The handler.
        handler: MethodName,
    },
}

/// Why a call was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CancelReason {
    /// Its deadline passed.
    #[error("its deadline passed")]
    Deadline,
    /// Its caller gave it up.
    #[error("its caller gave it up")]
    Caller,
    /// Its session is over.
    #[error("its session is over")]
    SessionOver,
    /// An operator ended it.
    #[error("an operator ended it")]
    Operator,
    /// It would have waited for calls that wait for it.
    #[error("it would have waited for calls that wait for it")]
    Deadlock,
}

/// How a body failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Trap {
    /// It panicked. The message ends with the place in the source, where the guest gives one.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// It executed an instruction that cannot be executed (the engine's word for it).
    #[error("it trapped: {0}")]
    Fault(String),
    /// A segment used up its fuel.
    #[error("it used up its fuel of {0} for one segment")]
    OutOfFuel(u64),
    /// It used up its fuel or its segments for one step.
    #[error("it used up its budget for one step: {0}")]
    StepBudget(LimitExceeded),
    /// It asked for more memory than it may have, bytes.
    #[error("it needs more than its {0} bytes of memory")]
    OutOfMemory(u64),
    /// It recursed too deep.
    #[error("it recursed too deep")]
    StackOverflow,
    /// It did what its kind of method may not do.
    #[error("it may not {0}")]
    Forbidden(Forbidden),
    /// Its arguments do not decode.
    #[error("its arguments do not decode: {0}")]
    ArgumentsMalformed(String),
    /// A host call broke the ABI.
    #[error("it made a malformed host call: {0}")]
    HostCallMalformed(String),
    /// It asked for a handler or method that its class does not have.
    #[error("its class has no such handler or method: {0}")]
    TargetUnknown(MethodName),
    /// A limit of the machine stands against it.
    #[error("limit {0}")]
    Limit(LimitExceeded),
    /// `migrate` returned an error of its class.
    #[error("it returned an error of its class")]
    MigrateRefused,
}

/// What some kinds of methods may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Forbidden {
    /// Write in a `read`.
    #[error("write in a read")]
    WriteInRead,
    /// Block in a `read`.
    #[error("block in a read")]
    BlockInRead,
    /// Draw tokens or randomness in a `read`.
    #[error("draw tokens or randomness in a read")]
    DrawInRead,
    /// Block in `init`.
    #[error("block in init")]
    BlockInInit,
    /// Continue with another method in `init` or a `read`.
    #[error("continue with another method in init, migrate or a read")]
    ContinueHere,
    /// Set a semaphore outside of `init`.
    #[error("set a semaphore outside of init")]
    SetOutsideInit,
    /// Block in `migrate`.
    #[error("block in migrate")]
    BlockInMigrate,
}

/// A limit and what ran into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{name} is {limit}")]
pub struct LimitExceeded {
    /// Name of the limit, as in `limits/`.
    pub name: String,
    /// Its value.
    pub limit: u64,
}

impl LimitExceeded {
    /// A limit by its name.
    #[must_use]
    pub fn new(name: &str, limit: u64) -> Self {
        Self { name: name.into(), limit }
    }
}

/// Why a module is refused before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ModuleError {
    /// It is not a WebAssembly module, or not a valid one.
    #[error("it is not a valid WebAssembly module: {0}")]
    Invalid(String),
    /// It uses a feature of WebAssembly that is off here.
    #[error("it uses a feature that is not allowed: {0}")]
    Feature(String),
    /// It imports something that the ABI does not offer.
    #[error("it imports {0}, which is not offered")]
    Import(String),
    /// It has a start function.
    #[error("it has a start function")]
    StartFunction,
    /// It lacks an export that its interface needs.
    #[error("it does not export {0}")]
    ExportMissing(String),
    /// It has no interface section.
    #[error("it has no interface section (gesmas class build --interface adds one)")]
    InterfaceMissing,
    /// Its interface section does not decode, or breaks a rule.
    #[error("its interface section is malformed: {0}")]
    InterfaceMalformed(String),
    /// Its interface names another class than the one it was put as.
    #[error("its interface names class {0}")]
    OtherClass(String),
    /// A name in its interface breaks the grammar.
    #[error("{0}")]
    Name(NameError),
    /// It is larger or more complicated than a limit allows.
    #[error("limit {0}")]
    Limit(LimitExceeded),
}

/// Why a request was not admitted. It used up nothing: the client may send it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The request before it is not the last one admitted.
    #[error("it is out of order: the last request admitted is {last}")]
    OutOfOrder {
        /// Number of the last request of the session that was admitted.
        last: u64,
    },
    /// Its number was admitted before, and its reply has been acknowledged or never was.
    #[error("its number was used and its reply is gone")]
    Forgotten,
    /// The class is not loaded: ship it and send again.
    #[error("class {class} is not loaded")]
    ClassUnknown {
        /// The class.
        class: ClassName,
    },
    /// The class is being compiled: send again.
    #[error("class {class} is being compiled")]
    ClassPending {
        /// The class.
        class: ClassName,
    },
    /// The session does not exist or is over.
    #[error("the session is over")]
    SessionUnknown,
    /// The session has too many requests open or too many replies that it has not acknowledged.
    #[error("limit {0}")]
    Limit(LimitExceeded),
    /// The object is to come up to date with its class first: send again.
    #[error("{object} is being migrated")]
    MigrationPending {
        /// The object.
        object: ObjectName,
    },
}
