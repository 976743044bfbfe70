//! Why a command failed: an exit code, a stable word, a sentence, and what to do about it.
//!
//! Invariant: every way to fail goes through [`Failure`], so that each has all four.

pub(crate) mod exit;

use gesmas_abi::interface::Method;
use gesmas_client::{
    AdminFailure, CallFailure, ConnectError, NotSentReason, OpenError, UnknownReason,
    protocol::{AdminError, CallError, CancelReason, Refusal, TrapKind},
};
use serde_json::{Value, json};

use self::exit::Exit;
use crate::{
    gateway::GatewayError,
    json::{Integers, decode},
    shell::{ConfigError, ServeError},
};

/// Why a command failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Stable word, for programs.
    pub(crate) code: String,
    /// For people: what went wrong.
    pub(crate) message: String,
    /// For people: what to do about it.
    pub(crate) advice: Option<String>,
    /// Finds the details in the log of the server.
    pub(crate) id: Option<u64>,
    /// The error of the class, if it is one.
    pub(crate) value: Option<Box<Value>>,
}

impl Failure {
    /// A failure without advice.
    pub(crate) fn new(exit: Exit, code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { exit, code, message, advice: None, id: None, value: None }
    }

    /// The command line or a file is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// A file cannot be read or written.
    pub(crate) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(Exit::Usage, "file", format!("{}: {error}", path.display()))
    }

    /// The user has interrupted it.
    pub(crate) fn interrupted(message: &str) -> Self {
        Self::new(Exit::Interrupted, "interrupted", message)
    }

    /// Says what to do.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Why a call failed, with an error of its class in the class's own words.
    pub(crate) fn of_call(
        failure: CallFailure,
        method: &Method,
        object: &str,
        integers: Integers,
    ) -> Self {
        let (how, error) = match &failure {
            CallFailure::Failed(CallError::Failed(error), _) => ("returned", error),
            CallFailure::Failed(CallError::Aborted(error), _) => ("aborted with", error),
            CallFailure::Failed(CallError::InitRefused(error), _) => ("refused with", error),
            _ => return failure.into(),
        };
        let ty = method.error.as_ref();
        let value = ty.and_then(|ty| decode(ty, error, integers).ok());
        let text = match &value {
            Some(Value::String(variant)) => variant.clone(),
            Some(value) => value.to_string(),
            None => "an error that its interface does not know".into(),
        };
        let message = format!("{} of {object} {how} {text}", method.name);
        Self { message, value: value.map(Box::new), ..Self::from(failure) }
    }

    /// What goes to stderr.
    pub(crate) fn report(&self, json: bool) -> String {
        if json {
            let id = self.id.map(|id| format!("{id:016x}"));
            let mut error = json!({ "code": self.code, "message": self.message, "id": id });
            if let Some(advice) = &self.advice {
                error["advice"] = json!(advice);
            }
            if let Some(value) = &self.value {
                error["value"] = Value::clone(value);
            }
            return json!({ "error": error }).to_string();
        }
        let mut text = format!("error: {}", self.message);
        if let Some(id) = self.id {
            text += &format!(" (id {id:016x} in the server's log)");
        }
        if let Some(advice) = &self.advice {
            text += &format!("\n{advice}");
        }
        text
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let code = match error {
            ConnectError::Rejected { .. } => "rejected",
            _ => "unreachable",
        };
        Self::new(Exit::Unreachable, code, error.to_string()).advise(
            "is a replica running there? --endpoints or GESMAS_ENDPOINTS say where to look; \
             `gesmas dev` starts a cluster to try",
        )
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Refused(refusal) => refusal.into(),
            OpenError::Over(_) => Self::new(Exit::NotFound, "session-unknown", error.to_string()),
            OpenError::TimedOut => Self::new(Exit::Unreachable, "no-leader", error.to_string())
                .advise("a majority of the replicas must run: see `gesmas cluster status`"),
            OpenError::Closed | OpenError::Random => {
                Self::new(Exit::Unreachable, "unreachable", error.to_string())
            }
        }
    }
}

impl From<AdminFailure> for Failure {
    fn from(failure: AdminFailure) -> Self {
        let message = failure.to_string();
        match failure {
            AdminFailure::Answered(AdminError::ClassUnknown { .. }) => class_unknown(message),
            AdminFailure::Answered(AdminError::ObjectUnknown { class, .. }) => {
                Self::new(Exit::NotFound, "object-unknown", message)
                    .advise(format!("`gesmas object ls {class}` lists those that exist"))
            }
            AdminFailure::Answered(AdminError::Invalid { .. }) => {
                Self::new(Exit::Usage, "invalid", message)
            }
            AdminFailure::Answered(AdminError::Denied { .. }) => {
                Self::new(Exit::Refused, "denied", message)
            }
            AdminFailure::Answered(AdminError::Unavailable { .. }) => {
                Self::new(Exit::Unreachable, "unavailable", message).advise("try again in a moment")
            }
            AdminFailure::Server(error) => Self {
                id: Some(error.id),
                ..Self::new(Exit::Refused, error.code.code(), error.message)
            },
            AdminFailure::OtherAnswer => Self::new(Exit::Failed, "other-answer", message)
                .advise("client and server are of different versions: see `gesmas --version`"),
            AdminFailure::TimedOut => Self::new(Exit::Unreachable, "unreachable", message).advise(
                "`gesmas cluster status` shows whether there is a leader; a stale answer needs none",
            ),
            AdminFailure::Closed => Self::new(Exit::Unreachable, "unreachable", message),
        }
    }
}

fn class_unknown(message: String) -> Failure {
    Failure::new(Exit::NotFound, "class-unknown", message).advise(
        "`gesmas class ls` lists the classes that are loaded; `gesmas class put DIR` loads one",
    )
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (code, message) = (refusal.code(), refusal.to_string());
        match refusal {
            Refusal::ClassUnknown { .. } => class_unknown(message),
            Refusal::ClassPending { .. } => Self::new(Exit::Refused, code, message)
                .advise("try again when a majority has compiled it: see `gesmas class ls`"),
            Refusal::Unavailable => Self::new(Exit::Unreachable, code, message)
                .advise("a majority of the replicas must run: see `gesmas cluster status`"),
            Refusal::MigrationPending { .. } => {
                Self::new(Exit::Refused, code, message).advise("try again in a moment")
            }
            Refusal::Busy => Self::new(Exit::Refused, code, message).advise("try again later"),
            Refusal::SessionUnknown => Self::new(Exit::NotFound, code, message),
            Refusal::Invalid { .. } => Self::new(Exit::Usage, code, message),
            Refusal::OutOfOrder { .. }
            | Refusal::Forgotten
            | Refusal::Limit(_)
            | Refusal::Denied { .. } => Self::new(Exit::Refused, code, message),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let (code, message) = (error.code().to_owned(), error.to_string());
        let failure = |exit| Self::new(exit, code.clone(), message.clone());
        match &error {
            CallError::Cancelled(CancelReason::Deadline) => failure(Exit::TimedOut).advise(
                "it was blocked; --timeout gives it longer, `gesmas invocation ls` shows \
                         what others wait for",
            ),
            CallError::MethodUnknown { class, .. } | CallError::NotCallable { method: class } => {
                failure(Exit::NotFound).advise(format!("`gesmas class show {class}` lists methods"))
            }
            CallError::ObjectUnknown => failure(Exit::NotFound)
                .advise(
                    "`gesmas object create CLASS/NAME ARGUMENTS` creates it; so does the first \
                         update, if its class needs no arguments for that",
                ),
            CallError::InvocationUnknown => failure(Exit::NotFound)
                .advise("it may have ended: `gesmas invocation ls` lists those that are blocked"),
            CallError::Other { code, .. } if code == "class-unknown" => class_unknown(message.clone()),
            CallError::Other { code, .. } if code == "class-pinned" => failure(Exit::Refused).advise(
                "let them end, or let --cancel-pinned cancel them; `gesmas invocation ls CLASS` lists \
                 them",
            ),
            CallError::Other { code, .. } if code == "migrate-missing" => failure(Exit::Refused)
                .advise("give the class a `#[migrate]` that brings its objects to the new layout"),
            CallError::Other { code, .. } if code == "handler-changed" => failure(Exit::Refused)
                .advise("keep the handler as it was, under its name, until no timer needs it"),
            CallError::Other { code, .. } if code == "class-in-use" => failure(Exit::Refused)
                .advise("`gesmas object ls CLASS` lists its objects, `gesmas object rm` removes them"),
            CallError::Other { code, .. } if code == "limit-not-changed" => failure(Exit::Refused)
                .advise("`gesmas limits show` lists names and ranges"),
            CallError::Other { code, .. } if code == "fault-unknown" => failure(Exit::NotFound)
                .advise("it may have been ended: `gesmas fault ls` lists those that there are"),
            CallError::Other { code, .. } if code == "session-unknown" => {
                failure(Exit::NotFound).advise("`gesmas session ls` lists those that are open")
            }
            CallError::ClassExists { .. } => failure(Exit::Refused).advise(
                "code is replaced only on demand: `gesmas class put --replace`, after a look with \
                 `--dry-run`",
            ),
            CallError::ObjectExists => failure(Exit::Refused)
                .advise("`gesmas object rm Class/name` removes it with all its state"),
            CallError::ModuleRejected(_) | CallError::CompileFailed(_) | CallError::Limit(_) => {
                failure(Exit::Refused)
            }
            // What the caller asked for does not fit; another call does.
            CallError::Trapped(trap)
            | CallError::InitFailed(trap)
            | CallError::CleanupFailed { trap, .. }
                if trap.kind == TrapKind::Limit =>
            {
                failure(Exit::Refused).advise("`gesmas limits show` lists limits and their ranges")
            }
            CallError::ClassMismatch { .. } => failure(Exit::Refused).advise(
                "the class was replaced meanwhile; the same command again sees the new one",
            ),
            _ => failure(Exit::Failed),
        }
    }
}

impl From<CallFailure> for Failure {
    fn from(failure: CallFailure) -> Self {
        let (code, message) = (failure.code().to_owned(), failure.to_string());
        let id = failure.id().map(|id| id.0);
        match failure {
            CallFailure::Failed(error, _) | CallFailure::Shipping { error, .. } => {
                Self { message, code, id, ..Self::from(error) }
            }
            CallFailure::Refused(refusal, _) => Self { id, ..refusal.into() },
            CallFailure::Unknown(reason) => {
                let advice = match reason {
                    UnknownReason::SessionOver(_) => {
                        "the session ended first: look at the object before trying again"
                    }
                    _ => {
                        "it may or may not have taken effect: look at the object before trying \
                          again"
                    }
                };
                Self::new(Exit::TimedOut, code, message).advise(advice)
            }
            CallFailure::NotSent(reason) => {
                let exit = match reason {
                    NotSentReason::Deadline => Exit::TimedOut,
                    NotSentReason::TooLarge | NotSentReason::TooMany(_) => Exit::Refused,
                    NotSentReason::SessionOver(_) | NotSentReason::Closed => Exit::Unreachable,
                };
                Self::new(exit, code, message)
            }
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(Exit::Usage, "configuration", error.to_string())
            .advise("docs/gesmas.toml explains every setting")
    }
}

impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Self {
        match error {
            GatewayError::Bind { .. } => Self::new(Exit::Stopped, "address", error.to_string())
                .advise("another program listens there, or the address is not of this host"),
            GatewayError::Connect(_) => {
                Self::new(Exit::Stopped, "replica-stopped", error.to_string())
            }
        }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Config(error) => error.into(),
            ServeError::Bind { .. } => Self::new(Exit::Stopped, "address", error.to_string())
                .advise("another program listens there, or the address is not of this host"),
            _ => Self::new(Exit::Stopped, "replica-stopped", error.to_string()),
        }
    }
}
