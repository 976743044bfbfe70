//! Questions of an operator.
//!
//! They are not ordered and change nothing. Those about the state are linearizable like reads, unless
//! the asker takes what the connected replica has; those about the replica are answered by it at once.
//! Invariant: every list is asked for with a limit and goes on after a place, so that no answer
//! outgrows a frame.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    error::{CallError, CodeHash},
    message::{Position, Replace},
};

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdminRequest {
    /// All classes.
    ListClasses,
    /// One class with its interface.
    ShowClass {
        /// The class.
        class: String,
    },
    /// The module of a class.
    GetClass {
        /// The class.
        class: String,
    },
    /// Objects, ordered by class and name.
    ListObjects {
        /// Only those of this class.
        class: Option<String>,
        /// Only those after this class and name.
        after: Option<(String, String)>,
        /// At most so many.
        limit: u32,
    },
    /// One object with its state.
    ShowObject {
        /// Its class.
        class: String,
        /// Its name.
        object: String,
        /// At most so many entries, semaphores and timers each.
        limit: u32,
    },
    /// Open invocations, by number.
    ListInvocations {
        /// Only those on objects of this class.
        class: Option<String>,
        /// Only those on objects of this name.
        object: Option<String>,
        /// Only those of this session.
        session: Option<u64>,
        /// Only those after this number.
        after: u64,
        /// At most so many.
        limit: u32,
    },
    /// Open sessions, by number.
    ListSessions {
        /// Only those after this number.
        after: u64,
        /// At most so many.
        limit: u32,
    },
    /// The replica's view of its group.
    ClusterStatus,
    /// What the replica has counted since it started.
    Counters,
    /// Lets the replica write a snapshot; the counters tell when it is there.
    TakeSnapshot,
    /// A piece of the file of a snapshot that the replica has.
    SnapshotPiece {
        /// Which: as the counter `snapshot_index` says.
        index: u64,
        /// From which byte of the file on.
        offset: u64,
    },
    /// How replacing a class would go, tried on a copy of the state.
    TryClass {
        /// The class.
        class: String,
        /// The module that is to replace its own.
        module: Bytes,
        /// How.
        replace: Replace,
    },
    /// All limits of the cluster.
    ListLimits,
    /// Faults of handlers, by object.
    ListFaults {
        /// Only those of this class.
        class: Option<String>,
        /// Only those of objects after this class and name.
        after: Option<(String, String)>,
        /// No more objects once there are so many faults; all faults of each object are listed.
        limit: u32,
    },
    /// Lets the replica take the lead from the one that has it.
    TakeLead,
}

impl AdminRequest {
    /// Whether this asks for the state of the cluster, and not for something of the replica's own.
    #[must_use]
    pub const fn asks_for_state(&self) -> bool {
        match self {
            Self::ListClasses
            | Self::ShowClass { .. }
            | Self::GetClass { .. }
            | Self::ListObjects { .. }
            | Self::ShowObject { .. }
            | Self::ListInvocations { .. }
            | Self::ListSessions { .. }
            | Self::TryClass { .. }
            | Self::ListLimits
            | Self::ListFaults { .. } => true,
            Self::ClusterStatus
            | Self::Counters
            | Self::TakeSnapshot
            | Self::TakeLead
            | Self::SnapshotPiece { .. } => false,
        }
    }
}

/// An answer; which one belongs to which question shows in the names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdminReply {
    /// To [`AdminRequest::ListClasses`].
    Classes(Vec<ClassSummary>),
    /// To [`AdminRequest::ShowClass`].
    Class(ClassDetail),
    /// To [`AdminRequest::GetClass`].
    Module(Bytes),
    /// To [`AdminRequest::ListObjects`]; true when there are more.
    Objects(Vec<ObjectSummary>, bool),
    /// To [`AdminRequest::ShowObject`].
    Object(ObjectDetail),
    /// To [`AdminRequest::ListInvocations`]; true when there are more.
    Invocations(Vec<InvocationSummary>, bool),
    /// To [`AdminRequest::ListSessions`]; true when there are more.
    Sessions(Vec<SessionSummary>, bool),
    /// To [`AdminRequest::ClusterStatus`].
    Cluster(ClusterStatus),
    /// To [`AdminRequest::Counters`]: names and values.
    Counters(Vec<(String, u64)>),
    /// To [`AdminRequest::TakeSnapshot`]: snapshots written before.
    TakingSnapshot(u64),
    /// To [`AdminRequest::SnapshotPiece`].
    SnapshotPiece {
        /// Length of the whole file, bytes.
        total: u64,
        /// The piece; none at the end.
        bytes: Bytes,
    },
    /// To [`AdminRequest::TryClass`].
    Tried(ClassTrial),
    /// To [`AdminRequest::ListLimits`].
    Limits(Vec<LimitSummary>),
    /// To [`AdminRequest::ListFaults`]; true when there are more.
    Faults(Vec<FaultSummary>, bool),
    /// To [`AdminRequest::TakeLead`]: the replica is about to, or leads already.
    TakingLead,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum AdminError {
    /// There is no such class.
    #[error("class {class} is not loaded")]
    ClassUnknown {
        /// The class.
        class: String,
    },
    /// There is no such object.
    #[error("there is no object {class}/{object}")]
    ObjectUnknown {
        /// Its class.
        class: String,
        /// Its name.
        object: String,
    },
    /// A name breaks the grammar, or a limit is out of range.
    #[error("{message}")]
    Invalid {
        /// What is wrong, for people.
        message: String,
    },
    /// The caller may not ask.
    #[error("not allowed: {message}")]
    Denied {
        /// What is missing, for people.
        message: String,
    },
    /// The replica cannot answer at the moment: it is busy or still starting.
    #[error("{message}")]
    Unavailable {
        /// Why, for people.
        message: String,
    },
}

/// Where a class is on its way to being callable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClassState {
    /// Ordered, not yet compiled by a majority.
    Pending,
    /// Callable.
    Ready,
}

/// A class in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// Its name.
    pub class: String,
    /// Its code.
    pub code: CodeHash,
    /// Whether it can be called.
    pub state: ClassState,
    /// Length of its module, bytes.
    pub module_bytes: u64,
    /// How many objects it has.
    pub objects: u64,
}

/// A class in detail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassDetail {
    /// What a list says of it.
    pub summary: ClassSummary,
    /// The interface section of its module, as it stands in the module.
    pub interface: Bytes,
    /// Its code, last, and before it code that was replaced and is still kept, oldest first.
    pub pinned: Vec<PinnedCode>,
    /// Code that is to take its code's place, while it is compiled.
    pub replacing: Option<CodeHash>,
}

/// What holds on to one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedCode {
    /// The code.
    pub code: CodeHash,
    /// How many suspended invocations run in it.
    pub invocations: u64,
    /// How many objects were last brought up to date by it.
    pub objects: u64,
}

/// A limit of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitSummary {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// The least that it can be.
    pub least: u64,
    /// The greatest that it can be.
    pub greatest: u64,
}

/// How a replacement would go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTrial {
    /// Why it would be refused.
    pub refusal: Option<CallError>,
    /// Objects that would be brought up to date.
    pub migrated: u64,
    /// Objects whose `migrate` would fail, and how.
    pub failures: Vec<(String, String)>,
    /// Whether there are objects that were not tried.
    pub more: bool,
}

/// An object in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectSummary {
    /// Its class.
    pub class: String,
    /// Its name.
    pub object: String,
    /// Its life.
    pub incarnation: u64,
    /// Keys and values of its store, bytes.
    pub bytes: u64,
    /// How many invocations wait in it.
    pub waiters: u64,
}

/// A handler that failed and was undone; its object keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultSummary {
    /// Class of the object.
    pub class: String,
    /// The object.
    pub object: String,
    /// Number of the alarm that had called the handler, which names the fault.
    pub fault: u64,
    /// The handler.
    pub handler: String,
    /// Its encoded arguments; none if they are longer than [`FaultSummary::ARGUMENTS_MAX`].
    pub arguments: Option<Bytes>,
    /// When it failed, nanoseconds since the Unix epoch.
    pub at: u64,
    /// Why, for people; at most [`FaultSummary::ERROR_MAX`] bytes.
    pub error: String,
}

impl FaultSummary {
    /// Greatest length of arguments that are shown, bytes.
    pub const ARGUMENTS_MAX: usize = 256;
    /// Greatest length of the text of an error, bytes; a longer one is cut.
    pub const ERROR_MAX: usize = 512;
}

/// An object in detail. Lists are cut at the limit of the question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectDetail {
    /// What a list says of it.
    pub summary: ObjectSummary,
    /// Its store, by key; raw, as the class encodes it.
    pub entries: Vec<StateEntry>,
    /// Its semaphores, by name.
    pub semaphores: Vec<SemaphoreDetail>,
    /// Its timers and watches, by number.
    pub timers: Vec<TimerSummary>,
    /// Faults of its handlers, oldest first.
    pub faults: Vec<FaultSummary>,
    /// Whether one of the lists was cut.
    pub more: bool,
}

/// One entry of an object's store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEntry {
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
}

/// One semaphore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemaphoreDetail {
    /// Its name.
    pub name: Bytes,
    /// Its count.
    pub count: u64,
    /// Invocations that wait for it, first to last.
    pub waiters: Vec<u64>,
    /// Its owned permits, oldest first.
    pub owners: Vec<OwnerSummary>,
}

/// One owned permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerSummary {
    /// The permit.
    pub permit: u64,
    /// Who owns it.
    pub holder: PermitHolder,
}

/// The owner of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PermitHolder {
    /// An invocation.
    Invocation(u64),
    /// A session.
    Session(u64),
}

/// A timer or a watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerSummary {
    /// Its number.
    pub alarm: u64,
    /// What sets it off.
    pub kind: TimerKind,
    /// The handler that it starts.
    pub handler: String,
}

/// What sets off a timer or a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimerKind {
    /// Ordered time: nanoseconds since the Unix epoch.
    At(u64),
    /// The end of a session.
    SessionOver(u64),
}

/// An open invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvocationSummary {
    /// Its number.
    pub invocation: u64,
    /// Class of its object.
    pub class: String,
    /// Its object.
    pub object: String,
    /// Its method or handler.
    pub method: String,
    /// The session on whose behalf it runs; none for a handler, or a call on behalf of nobody.
    pub session: Option<u64>,
    /// The number of its request, in the session that sent it; none for a handler.
    pub request: Option<u64>,
    /// Where it is.
    pub state: InvocationState,
    /// Its deadline: ordered time, nanoseconds since the Unix epoch.
    pub deadline: Option<u64>,
    /// Its journal, bytes.
    pub journal_bytes: u64,
    /// Whether it ignores its caller's fate.
    pub detached: bool,
}

/// Where an open invocation is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InvocationState {
    /// It is about to run or runs.
    Ready,
    /// It waits for a permit of this semaphore.
    Blocked {
        /// Name of the semaphore.
        semaphore: Bytes,
        /// Since when: ordered time, nanoseconds since the Unix epoch.
        since: u64,
    },
}

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// Its number.
    pub session: u64,
    /// Who opened it.
    pub principal: String,
    /// Its timeout, nanoseconds.
    pub timeout_ns: u64,
    /// Number of its last admitted request.
    pub last_admitted: u64,
    /// Requests that are open.
    pub open_requests: u64,
    /// Replies that it has not acknowledged.
    pub stored_replies: u64,
    /// Events that it has not acknowledged.
    pub events: u64,
    /// Permits that it owns.
    pub permits: u64,
}

/// A replica's view of its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The replica that answers.
    pub replica: u64,
    /// The cluster.
    pub cluster: u128,
    /// The replica that it takes for the leader.
    pub leader: Option<u64>,
    /// The ballot, as a line for people.
    pub ballot: String,
    /// First index that its log holds.
    pub log_first: u64,
    /// Index of the last decided entry.
    pub log_decided: u64,
    /// Index of the last entry that the kernel has handled.
    pub log_applied: u64,
    /// Where the kernel stands.
    pub position: Position,
    /// Ordered time, nanoseconds since the Unix epoch.
    pub now: u64,
    /// The 128-bit sum over the state at `position`, in hexadecimal digits.
    pub state_hash: String,
    /// The members of the group.
    pub members: Vec<u64>,
    /// The members that it is connected to.
    pub connected: Vec<u64>,
    /// Identity of the engine, as a line for people.
    pub engine: String,
    /// Version of the server.
    pub server: String,
}
