//! Errors as they travel: why calls fail, why requests are refused, why a connection ends.
//!
//! Invariants: every type is flat (no value nests in itself), so that no decoder can be driven into
//! a deep recursion; every error has a stable `code` for programs and a sentence for people.
//! They mirror the machine's own (`kernel/machine/src/outcome.rs`) without its types; the server
//! translates one to one.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::message::Position;

/// Finds an error in the log of the server that told the client of it.
///
/// An ordered call's error has the id of the step in which the call ended, which is the same on all
/// replicas; other errors have an id of the one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ErrorId(pub u64);

impl ErrorId {
    /// Bits of an id that count steps; the rest counts epochs.
    const STEP_BITS: u32 = 48;

    /// Id of what went wrong in a step.
    #[must_use]
    pub const fn of_step(position: Position) -> Self {
        Self(position.epoch << Self::STEP_BITS | position.step)
    }
}

impl fmt::Display for ErrorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// BLAKE3 hash of a module: the identity of a class's code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CodeHash(pub [u8; 32]);

impl fmt::Display for CodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Why an admitted request has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CallError {
    /// The method returned an error of its class (encoded); what it did stands.
    #[error("the method returned an error of its class")]
    Failed(Bytes),
    /// The method aborted with an error of its class (encoded); its last segment is undone.
    #[error("the method aborted with an error of its class")]
    Aborted(Bytes),
    /// The call was cancelled.
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
    /// `init` returned an error of its class (encoded), so there is no object.
    #[error("the object could not be created: init returned an error of its class")]
    InitRefused(Bytes),
    /// The loaded code has another signature for the method than the caller.
    #[error("method {method} has signature {have:016x} here, the caller has {want:016x}")]
    ClassMismatch {
        /// The method.
        method: String,
        /// Signature of the loaded code.
        have: u64,
        /// Signature of the caller.
        want: u64,
    },
    /// Another module has the class's name, and only an explicit replacement replaces it.
    #[error("class {class} exists with other code: {have}")]
    ClassExists {
        /// The class.
        class: String,
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
        class: String,
        /// The method.
        method: String,
    },
    /// Clients cannot call handlers and `init`.
    #[error("{method} is not a method that clients can call")]
    NotCallable {
        /// The handler.
        method: String,
    },
    /// A `read` method is not ordered, and was called as an update.
    #[error("{method} is a read: send it as a read")]
    NotAnUpdate {
        /// The method.
        method: String,
    },
    /// An update is ordered, and was sent as a read.
    #[error("{method} is an update: call it")]
    NotARead {
        /// The method.
        method: String,
    },
    /// The object does not exist, and cannot be created without arguments (or not by a read).
    #[error("the object does not exist (yet)")]
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
    /// A limit of the machine stands against it.
    #[error("limit {0}")]
    Limit(LimitExceeded),
    /// An error that has no word of its own in this version of the protocol.
    #[error("{message}")]
    Other {
        /// Stable code.
        code: String,
        /// For people.
        message: String,
    },
    /// The object could not be brought to the layout of its class; it is as it was.
    #[error("the object could not be migrated: {0}")]
    MigrateFailed(Trap),
}

impl CallError {
    /// Whether the class or the caller meant the call to end so.
    #[must_use]
    pub const fn is_meant(&self) -> bool {
        matches!(
            self,
            Self::Failed(_) | Self::Aborted(_) | Self::Cancelled(_) | Self::InitRefused(_)
        )
    }

    /// Stable code, for programs: exit codes, JSON, metrics.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Failed(_) => "failed",
            Self::Aborted(_) => "aborted",
            Self::Cancelled(CancelReason::Deadlock) => "deadlock",
            Self::Cancelled(_) => "cancelled",
            Self::Trapped(trap) => trap.kind.code(),
            Self::CleanupFailed { .. } => "cleanup-failed",
            Self::InitFailed(_) => "init-failed",
            Self::InitRefused(_) => "init-refused",
            Self::ClassMismatch { .. } => "class-mismatch",
            Self::ClassExists { .. } => "class-exists",
            Self::ModuleRejected(error) => error.kind.code(),
            Self::CompileFailed(_) => "compile-failed",
            Self::MethodUnknown { .. } => "method-unknown",
            Self::NotCallable { .. } => "not-callable",
            Self::NotAnUpdate { .. } => "not-an-update",
            Self::NotARead { .. } => "not-a-read",
            Self::ObjectUnknown => "object-unknown",
            Self::ObjectExists => "object-exists",
            Self::ObjectRemoved => "object-removed",
            Self::InvocationUnknown => "invocation-unknown",
            Self::Limit(_) => "limit",
            Self::Other { code, .. } => code,
            Self::MigrateFailed(_) => "migrate-failed",
        }
    }
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
#[error("{message}")]
pub struct Trap {
    /// In which way.
    pub kind: TrapKind,
    /// The machine's whole sentence about it.
    pub message: String,
}

macro_rules! kinds {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Stable code, for programs.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.code())
            }
        }
    };
}

kinds!(
    /// Ways in which a body fails.
    TrapKind {
        /// It panicked.
        Panicked = "trap-panicked",
        /// It executed an instruction that cannot be executed.
        Fault = "trap-fault",
        /// A segment used up its fuel.
        OutOfFuel = "trap-out-of-fuel",
        /// It used up its budget for one step.
        StepBudget = "trap-step-budget",
        /// It asked for more memory than it may have.
        OutOfMemory = "trap-out-of-memory",
        /// It recursed too deep.
        StackOverflow = "trap-stack-overflow",
        /// It did what its kind of method may not do.
        Forbidden = "trap-forbidden",
        /// Its arguments do not decode.
        ArgumentsMalformed = "trap-arguments-malformed",
        /// A host call broke the ABI.
        HostCallMalformed = "trap-host-call-malformed",
        /// It asked for a handler or method that its class does not have.
        TargetUnknown = "trap-target-unknown",
        /// A limit of the machine stands against it.
        Limit = "trap-limit",
        /// A `migrate` returned an error of its class.
        MigrateRefused = "trap-migrate-refused",
    }
);

/// Why a module is refused before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ModuleError {
    /// Which rule it breaks.
    pub kind: ModuleErrorKind,
    /// The machine's whole sentence about it.
    pub message: String,
}

kinds!(
    /// Rules that a module may break.
    ModuleErrorKind {
        /// It is not a valid WebAssembly module.
        Invalid = "module-invalid",
        /// It uses a feature of WebAssembly that is off here.
        Feature = "module-feature",
        /// It imports something that the ABI does not offer.
        Import = "module-import",
        /// It has a start function.
        StartFunction = "module-start-function",
        /// It lacks an export that its interface needs.
        ExportMissing = "module-export-missing",
        /// It has no interface section.
        InterfaceMissing = "module-interface-missing",
        /// Its interface section does not decode, or breaks a rule.
        InterfaceMalformed = "module-interface-malformed",
        /// Its interface names another class than the one it was put as.
        OtherClass = "module-other-class",
        /// A name in its interface breaks the grammar.
        Name = "module-name",
        /// It is larger or more complicated than a limit allows.
        Limit = "module-limit",
    }
);

/// A limit and what ran into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{name} is {limit}")]
pub struct LimitExceeded {
    /// Name of the limit.
    pub name: String,
    /// Its value.
    pub limit: u64,
}

/// Why a request was not admitted. It used up nothing: the client may send it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The request before it is not the last one admitted: send again from the one after `last`.
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
        class: String,
    },
    /// The class is being compiled: send again.
    #[error("class {class} is being compiled")]
    ClassPending {
        /// The class.
        class: String,
    },
    /// The session does not exist or is over.
    #[error("the session is over")]
    SessionUnknown,
    /// A limit stands against it. Those on open requests and stored replies pass; others do not.
    #[error("limit {0}")]
    Limit(LimitExceeded),
    /// A queue of the server is full: send again, later.
    #[error("the server is busy")]
    Busy,
    /// The replica knows no leader: send again, later.
    #[error("the cluster has no leader at the moment")]
    Unavailable,
    /// It can never be admitted: a name breaks the grammar, for example.
    #[error("{message}")]
    Invalid {
        /// What is wrong, for people.
        message: String,
    },
    /// The caller may not do this.
    #[error("not allowed: {message}")]
    Denied {
        /// What is missing, for people.
        message: String,
    },
    /// The object is being brought to the layout of its class: send again.
    #[error("{class}/{object} is being migrated")]
    MigrationPending {
        /// Its class.
        class: String,
        /// Its name.
        object: String,
    },
}

impl Refusal {
    /// Stable code, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OutOfOrder { .. } => "out-of-order",
            Self::Forgotten => "forgotten",
            Self::ClassUnknown { .. } => "class-unknown",
            Self::ClassPending { .. } => "class-pending",
            Self::SessionUnknown => "session-unknown",
            Self::Limit(_) => "limit",
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
            Self::Invalid { .. } => "invalid",
            Self::Denied { .. } => "denied",
            Self::MigrationPending { .. } => "migration-pending",
        }
    }
}

/// Why a read has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ReadError {
    /// It ran, or would have run, and failed.
    #[error(transparent)]
    Failed(CallError),
    /// It was turned away.
    #[error(transparent)]
    Refused(Refusal),
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum OverReason {
    /// Nothing was heard of it for longer than its timeout.
    #[error("it expired")]
    Expired,
    /// Its client closed it.
    #[error("its client closed it")]
    Closed,
    /// An operator ended it.
    #[error("an operator ended it")]
    Killed,
    /// The cluster does not know it.
    #[error("the cluster does not know it")]
    Unknown,
    /// The cluster was restored to a time before its last calls.
    #[error("the cluster was restored to a time before its last calls")]
    Restored,
}

kinds!(
    /// Why a connection, or one message on it, came to nothing.
    ErrorCode {
        /// Bytes that are no frame, or a frame that is no message. The connection is closed.
        Malformed = "malformed",
        /// No version of the protocol in common. The connection is closed.
        VersionUnsupported = "version-unsupported",
        /// A message that may not come at this point. The connection is closed.
        Unexpected = "unexpected",
        /// The token is missing or wrong. The connection is closed.
        Unauthenticated = "unauthenticated",
        /// Too many connections. The connection is closed.
        Busy = "busy",
        /// An answer is larger than a frame may be.
        TooLarge = "too-large",
        /// The server failed; its log knows more.
        Internal = "internal",
    }
);
