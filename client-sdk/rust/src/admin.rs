//! Questions of an operator.
//!
//! Answers about the state show everything that was acknowledged before the question, unless they are
//! asked through [`Client::stale`]; the rest is the connected replica's own.

use std::time::Duration;

use gesmas_protocol::{
    AdminReply, AdminRequest, Bytes, ClassDetail, ClassSummary, ClassTrial, ClusterStatus,
    FaultSummary, InvocationSummary, LimitSummary, ObjectDetail, ObjectSummary, Replace,
    SessionSummary,
};
use tokio::sync::oneshot;

use crate::{client::Client, command::Command, failure::AdminFailure};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Part of a list that may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether there are more behind the last of them.
    pub more: bool,
}

/// Which invocations to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvocationFilter {
    /// Only those on objects of this class.
    pub class: Option<String>,
    /// Only those on objects of this name.
    pub object: Option<String>,
    /// Only those of this session.
    pub session: Option<u64>,
}

impl Client {
    /// Asks any question.
    ///
    /// # Errors
    /// [`AdminFailure`] when there is no answer.
    pub async fn admin(&self, request: AdminRequest) -> Result<AdminReply, AdminFailure> {
        let (sender, answer) = oneshot::channel();
        self.commands.send(Command::Admin { request, stale: self.stale, sender });
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(AdminFailure::Closed),
            Err(_) => Err(AdminFailure::TimedOut),
        }
    }
}

macro_rules! questions {
    ($(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $kind:ty),*) -> $result:ty {
            $request:expr => $($answer:pat => $value:expr),*
        }
    )*) => {
        impl Client {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`AdminFailure`] when there is no answer.
                pub async fn $name(&self, $($argument: $kind),*) -> Result<$result, AdminFailure> {
                    match self.admin($request).await? {
                        $($answer => Ok($value),)*
                        _ => Err(AdminFailure::OtherAnswer),
                    }
                }
            )*
        }
    };
}

questions!(
    /// All classes.
    list_classes() -> Vec<ClassSummary> {
        AdminRequest::ListClasses => AdminReply::Classes(classes) => classes
    }
    /// One class with its interface.
    show_class(class: &str) -> ClassDetail {
        AdminRequest::ShowClass { class: class.into() } => AdminReply::Class(class) => class
    }
    /// How replacing a class would go, tried by the connected replica on a copy of its state.
    try_class(class: &str, module: Bytes, replace: Replace) -> ClassTrial {
        AdminRequest::TryClass { class: class.into(), module, replace } =>
            AdminReply::Tried(trial) => trial
    }
    /// All limits of the cluster.
    limits() -> Vec<LimitSummary> {
        AdminRequest::ListLimits => AdminReply::Limits(limits) => limits
    }
    /// The module of a class.
    get_class(class: &str) -> Bytes {
        AdminRequest::GetClass { class: class.into() } => AdminReply::Module(module) => module
    }
    /// Lets the connected replica write a snapshot, and says how many it had written before; the
    /// counter `snapshots_written` rises when it is there.
    take_snapshot() -> u64 {
        AdminRequest::TakeSnapshot => AdminReply::TakingSnapshot(written) => written
    }
    /// A piece of the file of a snapshot that the connected replica has, and the length of all of it.
    snapshot_piece(index: u64, offset: u64) -> (u64, Bytes) {
        AdminRequest::SnapshotPiece { index, offset } =>
            AdminReply::SnapshotPiece { total, bytes } => (total, bytes)
    }
    /// Objects, by class and name, after a place.
    list_objects(class: Option<String>, after: Option<(String, String)>, limit: u32)
        -> Page<ObjectSummary>
    {
        AdminRequest::ListObjects { class, after, limit } =>
            AdminReply::Objects(items, more) => Page { items, more }
    }
    /// One object with its state; at most `limit` of everything that it has many of.
    show_object(class: &str, object: &str, limit: u32) -> ObjectDetail {
        AdminRequest::ShowObject { class: class.into(), object: object.into(), limit } =>
            AdminReply::Object(object) => object
    }
    /// Lets the connected replica take the lead; whether it does shows in the status.
    take_lead() -> () {
        AdminRequest::TakeLead => AdminReply::TakingLead => ()
    }
    /// Faults of handlers, of the objects after a place: all of each object, and no more objects once
    /// there are `limit` faults.
    list_faults(class: Option<String>, after: Option<(String, String)>, limit: u32)
        -> Page<FaultSummary>
    {
        AdminRequest::ListFaults { class, after, limit } =>
            AdminReply::Faults(items, more) => Page { items, more }
    }
    /// Open invocations, by number, after a number.
    list_invocations(filter: InvocationFilter, after: u64, limit: u32) -> Page<InvocationSummary> {
        AdminRequest::ListInvocations {
            class: filter.class,
            object: filter.object,
            session: filter.session,
            after,
            limit,
        } => AdminReply::Invocations(items, more) => Page { items, more }
    }
    /// Open sessions, by number, after a number.
    list_sessions(after: u64, limit: u32) -> Page<SessionSummary> {
        AdminRequest::ListSessions { after, limit } =>
            AdminReply::Sessions(items, more) => Page { items, more }
    }
    /// The replica's view of its group.
    cluster_status() -> ClusterStatus {
        AdminRequest::ClusterStatus => AdminReply::Cluster(status) => status
    }
    /// What the replica has counted since it started.
    counters() -> Vec<(String, u64)> {
        AdminRequest::Counters => AdminReply::Counters(counters) => counters
    }
);
