//! Questions of operators, answered from what this replica has applied.

use gesmas_coroutine::BothEngines;
use gesmas_machine::{
    ClassName, ClassView, FaultView, Holder, InvocationView, Limit, Limits, ObjectName,
    ObjectSummary, ObjectView, SemaphoreView, SessionView, TimerView, VersionView,
};
use gesmas_protocol::{self as protocol, AdminError, AdminReply, AdminRequest};

use super::convert;
use crate::replica::{NotTakingLead, Replica};

/// Greatest number of rows in one answer.
const ROWS_MAX: usize = 10_000;
/// The same of faults, which are longer.
const FAULTS: usize = 5_000;

/// Answers one question.
pub(super) fn answer(
    replica: &mut Replica<BothEngines>,
    request: AdminRequest,
    connected: Vec<u64>,
    counts: &[(&'static str, u64)],
) -> Result<AdminReply, AdminError> {
    let machine = replica.machine();
    let name_error =
        |error: gesmas_machine::NameError| AdminError::Invalid { message: error.to_string() };
    match request {
        AdminRequest::ListClasses => {
            Ok(AdminReply::Classes(machine.classes().iter().map(class_summary).collect()))
        }
        AdminRequest::ShowClass { class } => {
            let name = ClassName::new(&class).map_err(name_error)?;
            let view = machine.class(&name).ok_or(AdminError::ClassUnknown { class })?;
            let module = machine.module(&name).expect("a class has a module");
            let interface = match machine.engine().native.interface(view.code) {
                Some(native) => native,
                None => gesmas_build::interface_of(&module)
                    .map_err(|error| AdminError::Invalid { message: error.to_string() })?,
            };
            Ok(AdminReply::Class(protocol::ClassDetail {
                summary: class_summary(&view),
                interface: interface.encode().into(),
                pinned: view.versions.iter().map(pinned).collect(),
                replacing: view.replacing.map(|code| protocol::CodeHash(code.0)),
            }))
        }
        AdminRequest::GetClass { class } => {
            let name = ClassName::new(&class).map_err(name_error)?;
            let module = machine.module(&name).ok_or(AdminError::ClassUnknown { class })?;
            Ok(AdminReply::Module(module.to_vec().into()))
        }
        AdminRequest::ListObjects { class, after, limit } => {
            let class = class.as_deref().map(ClassName::new).transpose().map_err(name_error)?;
            let after = after
                .map(|(class, object)| ObjectName::new(&class, &object))
                .transpose()
                .map_err(name_error)?;
            let limit = rows(limit);
            let objects = machine.objects(class.as_ref(), after.as_ref(), limit + 1);
            let more = objects.len() > limit;
            Ok(AdminReply::Objects(objects.iter().take(limit).map(object_summary).collect(), more))
        }
        AdminRequest::ShowObject { class, object, limit } => {
            let name = ObjectName::new(&class, &object).map_err(name_error)?;
            let limit = rows(limit);
            let view = machine.object(&name, limit + 1);
            let view = view.ok_or(AdminError::ObjectUnknown { class, object })?;
            Ok(AdminReply::Object(object_detail(view, limit)))
        }
        AdminRequest::ListInvocations { class, object, session, after, limit } => {
            let limit = rows(limit);
            let wanted = |view: &&InvocationView| {
                view.id.0 > after
                    && class.as_deref().is_none_or(|class| view.object.class.as_str() == class)
                    && object.as_deref().is_none_or(|object| view.object.name.as_str() == object)
                    && session.is_none_or(|id| view.session.is_some_and(|session| session.0 == id))
            };
            let all = machine.invocations(usize::MAX);
            let found: Vec<_> = all.iter().filter(wanted).take(limit + 1).collect();
            let more = found.len() > limit;
            let rows = found.into_iter().take(limit).map(invocation_summary).collect();
            Ok(AdminReply::Invocations(rows, more))
        }
        AdminRequest::ListSessions { after, limit } => {
            let limit = rows(limit);
            let all = machine.session_views(usize::MAX);
            let found: Vec<_> =
                all.iter().filter(|view| view.id.0 > after).take(limit + 1).collect();
            let more = found.len() > limit;
            let rows = found.into_iter().take(limit).map(session_summary).collect();
            Ok(AdminReply::Sessions(rows, more))
        }
        AdminRequest::ListFaults { class, after, limit } => {
            let class = class.as_deref().map(ClassName::new).transpose().map_err(name_error)?;
            let after = after
                .map(|(class, object)| ObjectName::new(&class, &object))
                .transpose()
                .map_err(name_error)?;
            let (faults, more) =
                machine.faults(class.as_ref(), after.as_ref(), rows(limit).min(FAULTS));
            let faults = faults.iter().map(|(object, fault)| fault_summary(object, fault));
            Ok(AdminReply::Faults(faults.collect(), more))
        }
        AdminRequest::ListLimits => Ok(AdminReply::Limits(limits(&machine.limits()))),
        AdminRequest::ClusterStatus => Ok(AdminReply::Cluster(status(replica, connected))),
        AdminRequest::TakeSnapshot => {
            replica.want_snapshot();
            Ok(AdminReply::TakingSnapshot(replica.snapshot_counts().written))
        }
        AdminRequest::TakeLead => match replica.handle_take_lead() {
            Ok(()) | Err(NotTakingLead::Leads) => Ok(AdminReply::TakingLead),
            Err(reason) => Err(AdminError::Unavailable { message: reason.to_string() }),
        },
        AdminRequest::SnapshotPiece { .. } => panic!("the driver asks the keeper for pieces"),
        AdminRequest::TryClass { .. } => panic!("the driver has the module compiled first"),
        AdminRequest::Counters => Ok(AdminReply::Counters(counters(replica, counts))),
    }
}

fn limits(limits: &Limits) -> Vec<protocol::LimitSummary> {
    let summary = |(name, limit): (&str, Limit)| protocol::LimitSummary {
        name: name.into(),
        value: limit.value,
        least: limit.least,
        greatest: limit.greatest,
    };
    limits.list().into_iter().map(summary).collect()
}

fn pinned(version: &VersionView) -> protocol::PinnedCode {
    protocol::PinnedCode {
        code: protocol::CodeHash(version.code.0),
        invocations: version.blocked,
        objects: version.objects,
    }
}

fn rows(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, ROWS_MAX)
}

fn class_summary(view: &ClassView) -> protocol::ClassSummary {
    protocol::ClassSummary {
        class: view.name.to_string(),
        code: protocol::CodeHash(view.code.0),
        state: if view.ready { protocol::ClassState::Ready } else { protocol::ClassState::Pending },
        module_bytes: view.module_bytes,
        objects: view.objects,
    }
}

fn object_summary(view: &ObjectSummary) -> protocol::ObjectSummary {
    protocol::ObjectSummary {
        class: view.name.class.to_string(),
        object: view.name.name.to_string(),
        incarnation: view.incarnation.0,
        bytes: view.bytes,
        waiters: view.waiters,
    }
}

fn object_detail(view: ObjectView, limit: usize) -> protocol::ObjectDetail {
    let more = view.entries.len() > limit
        || view.semaphores.iter().any(|semaphore| semaphore.waiters.len() > limit);
    let name = view.summary.name.clone();
    let entries = view.entries.into_iter().take(limit);
    protocol::ObjectDetail {
        summary: object_summary(&view.summary),
        entries: entries
            .map(|(key, value)| protocol::StateEntry { key: key.into(), value: value.into() })
            .collect(),
        semaphores: view
            .semaphores
            .into_iter()
            .map(|semaphore| semaphore_detail(semaphore, limit))
            .collect(),
        timers: view.timers.iter().map(timer_summary).collect(),
        faults: view.faults.iter().map(|fault| fault_summary(&name, fault)).collect(),
        more,
    }
}

fn fault_summary(object: &ObjectName, view: &FaultView) -> protocol::FaultSummary {
    let shown = view.arguments.len() <= protocol::FaultSummary::ARGUMENTS_MAX;
    protocol::FaultSummary {
        class: object.class.to_string(),
        object: object.name.to_string(),
        fault: view.alarm.0,
        handler: view.handler.to_string(),
        arguments: shown.then(|| view.arguments.clone().into()),
        at: view.at.0,
        error: beginning(view.trap.to_string(), protocol::FaultSummary::ERROR_MAX),
    }
}

/// At most so many bytes of a text, which a guest may have made as long as its memory is.
fn beginning(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes - '…'.len_utf8()));
        text.push('…');
    }
    text
}

fn semaphore_detail(view: SemaphoreView, limit: usize) -> protocol::SemaphoreDetail {
    let owner = |owner: gesmas_machine::Owner| protocol::OwnerSummary {
        permit: owner.permit.0,
        holder: match owner.holder {
            Holder::Invocation(id) => protocol::PermitHolder::Invocation(id.0),
            Holder::Session(id) => protocol::PermitHolder::Session(id.0),
        },
    };
    protocol::SemaphoreDetail {
        name: view.name.into(),
        count: view.count,
        waiters: view.waiters.iter().take(limit).map(|id| id.0).collect(),
        owners: view.owners.into_iter().map(owner).collect(),
    }
}

fn timer_summary(view: &TimerView) -> protocol::TimerSummary {
    let kind = match (view.due, view.watched) {
        (None, Some(session)) => protocol::TimerKind::SessionOver(session.0),
        (due, _) => protocol::TimerKind::At(due.map_or(0, |due| due.0)),
    };
    protocol::TimerSummary { alarm: view.id.0, kind, handler: view.handler.to_string() }
}

fn invocation_summary(view: &InvocationView) -> protocol::InvocationSummary {
    protocol::InvocationSummary {
        invocation: view.id.0,
        class: view.object.class.to_string(),
        object: view.object.name.to_string(),
        method: view.method.to_string(),
        session: view.session.map(|session| session.0),
        request: view.request.map(|(_, number)| number),
        state: protocol::InvocationState::Blocked {
            semaphore: view.semaphore.clone().into(),
            since: view.since.0,
        },
        deadline: view.deadline.map(|deadline| deadline.0),
        journal_bytes: view.journal_bytes,
        detached: view.detached,
    }
}

fn session_summary(view: &SessionView) -> protocol::SessionSummary {
    protocol::SessionSummary {
        session: view.id.0,
        principal: view.principal.clone(),
        timeout_ns: view.timeout,
        last_admitted: view.last_admitted,
        open_requests: view.open,
        stored_replies: view.replies,
        events: view.events,
        permits: view.permits,
    }
}

fn status(replica: &Replica<BothEngines>, connected: Vec<u64>) -> protocol::ClusterStatus {
    use gesmas_machine::Engine as _;
    let (machine, node) = (replica.machine(), replica.node());
    let ballot = node.promised_ballot();
    protocol::ClusterStatus {
        replica: node.config().replica,
        cluster: machine.genesis().map_or(0, |genesis| genesis.cluster),
        leader: node.leader().map(|leader| leader.replica),
        ballot: format!("{} of replica {}", ballot.number, ballot.replica),
        log_first: node.first_index(),
        log_decided: node.decided_index(),
        log_applied: replica.applied(),
        position: convert::position(machine.position()),
        now: machine.now().0,
        state_hash: machine.state_hash().to_string(),
        members: node.config().members.clone(),
        connected,
        engine: machine.engine().identity().description,
        server: concat!("gesmas ", env!("CARGO_PKG_VERSION")).into(),
    }
}

fn counters(replica: &Replica<BothEngines>, counts: &[(&'static str, u64)]) -> Vec<(String, u64)> {
    let machine = replica.machine().statistics();
    let snapshots = replica.snapshot_counts();
    let own = [
        ("batches", machine.batches),
        ("void_batches", machine.void_batches),
        ("steps", machine.steps),
        ("invocations", machine.invocations),
        ("blocked_invocations", machine.blocked_invocations),
        ("resumptions", machine.resumptions),
        ("cancellations", machine.cancellations),
        ("wakeups_in_vain", machine.wakeups_in_vain),
        ("undone_segments", machine.undone_segments),
        ("refusals", machine.refusals),
        ("duplicates", machine.duplicates),
        ("reads", machine.reads),
        ("rebuilt", machine.rebuilt),
        ("parked", machine.parked),
        ("live_activations", machine.live_activations),
        ("blocked_now", machine.blocked_now),
        ("faulty_objects", replica.machine().faulty_objects()),
        ("log_syncs", replica.log_syncs()),
        ("log_applied", replica.applied()),
        ("log_first", replica.node().first_index()),
        ("snapshots_written", snapshots.written),
        ("snapshots_failed", snapshots.failed),
        ("snapshots_installed", snapshots.installed),
        ("snapshot_pieces_given", snapshots.pieces),
        ("snapshot_index", snapshots.newest),
        ("snapshot_bytes", snapshots.bytes),
        ("stands_still", u64::from(replica.stands_still())),
        ("standstills", replica.standstills()),
        ("takeovers", replica.takeovers()),
        ("transfers", replica.transfers()),
        ("agreed_step", replica.machine().agreed_step().map_or(0, |step| step.0)),
        ("divergences", replica.divergences()),
    ];
    own.iter().chain(counts).map(|(name, count)| ((*name).into(), *count)).collect()
}
