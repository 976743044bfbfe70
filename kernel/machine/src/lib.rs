//! The deterministic state machine of gesmas.
//!
//! Commands go in, effects come out; equal commands give equal states and equal effects on every
//! replica. There is no I/O here, no clock, no thread, no randomness and no float: time and seeds
//! are arguments. Bodies of methods run behind the [`Engine`] trait.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::disallowed_types, clippy::disallowed_methods)]

mod aside;
mod check;
mod checkpoint;
mod class;
mod code;
mod command;
mod difference;
mod effect;
mod encoding;
mod engine;
mod execute;
mod host_call;
mod image;
mod limits;
mod machine;
mod names;
mod outcome;
mod overrides;
mod planted;
mod query;
mod read;
pub mod scripted;
mod state;
mod statistics;
mod steps;
mod sum;
mod trial;
mod world;

pub use crate::{
    class::{ClassInterface, Method, MethodKind},
    code::CodeHash,
    command::{
        Acknowledged, Ballot, Batch, Command, Genesis, LogEntry, OnBehalf, Place, Read, Replace,
        Request, RequestBody, STATE_MACHINE_VERSION,
    },
    difference::{Difference, RecordName, Sums},
    effect::{Effect, Position, SessionEnd},
    encoding::DecodeError,
    engine::{ActivationId, End, Engine, EngineIdentity, Entry, Turn},
    host_call::{Answer, Holder, HostCall, Owner, PAnswer, PermitOwner, Wait},
    image::{ImageError, Snapshot},
    limits::{Limit, LimitChangeError, Limits, ModuleLimits, within},
    machine::{JoinError, Machine, Progress, Settings},
    names::{
        AlarmId, CLASS_NAME_MAX, ClassName, Incarnation, InvocationId, LocalName, METHOD_NAME_MAX,
        MethodName, NameError, NameKind, OBJECT_NAME_MAX, ObjectName, PermitId, SessionId, Step,
        Time,
    },
    outcome::{
        CallError, CancelReason, Forbidden, LimitExceeded, ModuleError, Outcome, Refusal, Trap,
    },
    overrides::Override,
    planted::{Planted, PlantedBug},
    query::{
        ClassView, FaultView, InvocationView, ObjectSummary, ObjectView, PendingEvents,
        SemaphoreView, SessionView, TimerView, VersionView,
    },
    statistics::Statistics,
    sum::Sum,
    trial::{Trial, TrialReport},
};
