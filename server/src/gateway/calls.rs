//! Calls: `POST /v1/objects/CLASS/OBJECT/METHOD`, and `GET` for reads.
//!
//! | header | meaning |
//! |---|---|
//! | `Gesmas-Session` | the call is on behalf of this session; without it, of nobody |
//! | `Gesmas-Deadline` | how long it may take, as `30s`; 30 seconds if not said; `none` for as long as its session lives |
//! | `Gesmas-Consistency: stale` | the replica may answer a read from what it has |
//! | `Idempotency-Key` | the call runs once, to its deadline, and a retry gets its outcome |
//! | `Gesmas-Cancel: true` | the call with this key is cancelled, and the answer is its outcome |
//! | `Gesmas-Forget: ID, …` | outcomes that nobody will ask for again, as `Gesmas-Outcome` named them |
//! | `Prefer: wait=N` | answer after N seconds: with a key by 202, without one by giving the call up |
//!
//! Invariants: arguments are checked before anything is sent; a call without a key is cancelled when
//! its client hangs up, since its future is dropped with the connection.

use std::time::Duration;

use axum::{
    Json,
    body::Bytes as Body,
    extract::{
        Path, Query, State,
        rejection::{BytesRejection, PathRejection, QueryRejection},
    },
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use gesmas_abi::interface::{Method, MethodKind};
use gesmas_client::{
    CallFailure, OpenError,
    protocol::{Bytes, OnBehalf, Refusal},
};
use gesmas_machine::ObjectName;
use serde_json::{Map, Value, json};

use super::{
    Gateway, Shared,
    consistency::is_stale,
    keyed::{self, KEY_MAX, Keyed, KeyedFailure, Outcome},
    lenders::Lender,
    problem::Problem,
    spans::RequestSpan,
};
use crate::{
    failure::{Failure, exit::Exit},
    interface,
    json::{self, Integers},
};

/// Deadline of calls that name none.
const DEADLINE: Duration = Duration::from_secs(30);

/// Outcomes that one request may have forgotten.
const FORGET_MAX: usize = 100;

/// What a call is for.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) class: String,
    pub(super) object: String,
    pub(super) method: Method,
}

impl Target {
    /// Finds the method in the interface of its class.
    async fn find(
        gateway: &Gateway,
        class: &str,
        object: &str,
        name: &str,
    ) -> Result<Self, Problem> {
        check_name(class, object)?;
        if let Some(span) = RequestSpan::current() {
            span.set_target(class, object, name);
        }
        let interface = gateway.interfaces.of(class).await?;
        let method = match interface::method(&interface, name) {
            Ok(method) => method.clone(),
            Err(failure) => {
                // The class may have got the method since.
                gateway.interfaces.forget(class);
                let interface = gateway.interfaces.of(class).await?;
                interface::method(&interface, name).map_err(|_| failure)?.clone()
            }
        };
        Ok(Self { class: class.into(), object: object.into(), method })
    }

    fn name(&self) -> String {
        format!("{}/{}", self.class, self.object)
    }

    fn problem(&self, failure: CallFailure) -> Problem {
        Failure::of_call(failure, &self.method, &self.name(), Integers::Texts).into()
    }

    /// The answer to a call that has a result.
    fn answer(&self, result: &Bytes) -> Result<Response, Problem> {
        let value =
            json::decode(&self.method.result, result, Integers::Texts).map_err(|error| {
                let message = format!("the result is none of its type: {error}");
                Failure::new(Exit::Failed, "result-malformed", message)
            })?;
        Ok(Json(json!({ "result": value })).into_response())
    }
}

/// Checks the names of a class and an object.
pub(super) fn check_name(class: &str, object: &str) -> Result<(), Problem> {
    let checked = ObjectName::new(class, object);
    checked.map(|_| ()).map_err(|error| Problem::bad("name", error.to_string()))
}

/// What the headers say.
pub(super) struct Options {
    pub(super) session: Option<u64>,
    /// None for as long as it takes.
    deadline: Option<Duration>,
    stale: bool,
    cancel: bool,
    key: Option<String>,
    forget: Vec<u64>,
    wait: Option<Duration>,
}

impl Options {
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let deadline = match text(headers, "gesmas-deadline")? {
            None => Some(DEADLINE),
            Some("none") => None,
            Some(text) => Some(parse_duration("Gesmas-Deadline", text)?),
        };
        let stale = is_stale(headers)?;
        let key = key(headers)?;
        let cancel = match text(headers, "gesmas-cancel")? {
            None | Some("false") => false,
            Some("true") if key.is_some() => true,
            Some("true") => {
                let message = "Gesmas-Cancel is for calls with an Idempotency-Key; \
                               one without is cancelled by hanging up";
                return Err(Problem::bad("header", message));
            }
            Some(other) => {
                let message = format!("Gesmas-Cancel is \"true\" or \"false\", not {other:?}");
                return Err(Problem::bad("header", message));
            }
        };
        let forget = forget(headers)?;
        let (session, wait) = (session(headers)?, wait(headers)?);
        if deadline.is_none() && key.is_some() && session.is_none() {
            // Nothing would end it if its client died.
            let message = "Gesmas-Deadline is \"none\" only for a call with a Gesmas-Session, whose end \
                           ends it, or for one without an Idempotency-Key, which hanging up ends";
            return Err(Problem::bad("header", message));
        }
        Ok(Self { session, deadline, stale, cancel, key, forget, wait })
    }

    /// How long a call without a key may take; none for as long as its client waits.
    fn patience(&self) -> Option<Duration> {
        self.deadline.into_iter().chain(self.wait).min()
    }
}

/// A header as text.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().map_err(|_| Problem::bad("header", format!("{name} is no text")))?;
    Ok(Some(text.trim()))
}

/// A duration from a header or body.
pub(super) fn parse_duration(what: &str, text: &str) -> Result<Duration, Problem> {
    match json::parse_duration(text) {
        Some(nanoseconds) if nanoseconds > 0 => Ok(Duration::from_nanos(nanoseconds)),
        _ => {
            let message = format!("{what} is a duration such as \"30s\", not {text:?}");
            Err(Problem::bad("header", message))
        }
    }
}

fn session(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(text) = text(headers, "gesmas-session")? else { return Ok(None) };
    parse_session(text).map(Some)
}

/// The number of a session.
pub(super) fn parse_session(text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| {
        Problem::bad("session", format!("a session is named by its number, not {text:?}"))
    })
}

/// The key of a request.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    match text(headers, "idempotency-key")? {
        Some(key) if key.is_empty() || key.len() > KEY_MAX => {
            let message = format!("Idempotency-Key has 1 to {KEY_MAX} characters");
            Err(Problem::bad("header", message))
        }
        key => Ok(key.map(Into::into)),
    }
}

/// Outcomes that nobody will ask for again.
fn forget(headers: &HeaderMap) -> Result<Vec<u64>, Problem> {
    let Some(text) = text(headers, "gesmas-forget")? else { return Ok(Vec::new()) };
    let outcomes = text.split(',').map(|outcome| outcome.trim().parse());
    let outcomes: Result<Vec<_>, _> = outcomes.collect();
    outcomes.ok().filter(|outcomes| outcomes.len() <= FORGET_MAX).ok_or_else(|| {
        let message = format!("Gesmas-Forget has at most {FORGET_MAX} numbers of outcomes");
        Problem::bad("header", message)
    })
}

/// RFC 7240: of several preferences only `wait` concerns calls, and one that is malformed is none.
fn wait(headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let Some(text) = text(headers, "prefer")? else { return Ok(None) };
    let mut preferences = text.split([',', ';']).map(str::trim);
    let seconds = preferences.find_map(|preference| preference.strip_prefix("wait="));
    Ok(seconds.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs))
}

type MethodPath = Path<(String, String, String)>;

/// `POST`: any method.
pub(super) async fn call(
    State(gateway): State<Shared>,
    path: Result<MethodPath, PathRejection>,
    headers: HeaderMap,
    body: Result<Body, BytesRejection>,
) -> Result<Response, Problem> {
    let Path((class, object, name)) = path?;
    let options = Options::read(&headers)?;
    let target = Target::find(&gateway, &class, &object, &name).await?;
    let arguments = body_arguments(&target.method, &body?)?;
    if !options.forget.is_empty() {
        keyed::forget(&gateway, options.forget.clone());
    }
    match perform(&gateway, &target, &options, &arguments).await {
        // The class was replaced since its interface was looked at: what was sent did nothing.
        Err(problem) if problem.code() == "class-mismatch" => {
            gateway.interfaces.forget(&class);
            Err(problem)
        }
        result => result,
    }
}

/// `GET`: a read, with its arguments as the query.
pub(super) async fn read(
    State(gateway): State<Shared>,
    path: Result<MethodPath, PathRejection>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path((class, object, name)) = path?;
    let options = Options::read(&headers)?;
    let target = Target::find(&gateway, &class, &object, &name).await?;
    if target.method.kind != MethodKind::Read {
        let failure = Failure::new(
            Exit::Usage,
            "method-not-allowed",
            format!("{name} is an update: call it by POST"),
        );
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, failure));
    }
    let Query(query) = query?;
    let arguments = query_arguments(&target.method, query)?;
    perform(&gateway, &target, &options, &arguments).await
}

async fn perform(
    gateway: &Shared,
    target: &Target,
    options: &Options,
    arguments: &[u8],
) -> Result<Response, Problem> {
    let lender = match options.session {
        None => None,
        Some(session) => match gateway.lenders.hold(session).await {
            Ok(lender) => Some(lender),
            // The outcome of a call with a key is kept for longer than the session on whose behalf it
            // was made; a new call is refused by the cluster.
            Err(OpenError::Over(_) | OpenError::Refused(Refusal::SessionUnknown))
                if options.key.is_some() && target.method.kind != MethodKind::Read =>
            {
                None
            }
            Err(error) => return Err(error.into()),
        },
    };
    if target.method.kind == MethodKind::Read {
        return perform_read(gateway, target, options, arguments, lender.as_ref()).await;
    }
    if options.stale {
        let message = format!("{} is an update: only reads can be stale", target.method.name);
        return Err(Problem::bad("header", message));
    }
    let on_behalf = options.session.map_or(OnBehalf::Nobody, OnBehalf::Session);
    match &options.key {
        Some(key) => {
            let keyed = Keyed {
                key: key.clone(),
                target: target.clone(),
                arguments: arguments.into(),
                on_behalf,
                deadline: options.deadline,
                returns_within: lender.as_ref().map(|lender| lender.attachment().timeout()),
                withdrawn: options.cancel,
                span: RequestSpan::current(),
            };
            perform_keyed(gateway, target, options.wait, keyed).await
        }
        None => {
            let seat = gateway.requesters.seat().await?;
            let Target { class, object, method } = target;
            let (name, signature) = (method.name.as_str(), method.signature);
            let call = seat.session.call(class, object, name, signature, arguments.to_vec());
            let call = call.on_behalf(on_behalf);
            let call = match options.patience() {
                Some(patience) => call.deadline(patience),
                None => call.without_deadline(),
            };
            let pending = call.send_when_there_is_room().await;
            let span = RequestSpan::current().zip(pending.number());
            let _parent = span.map(|(span, number)| span.adopt(seat.session.id(), number));
            let result = pending.await;
            target.answer(&result.map_err(|failure| target.problem(failure))?)
        }
    }
}

async fn perform_read(
    gateway: &Shared,
    target: &Target,
    options: &Options,
    arguments: &[u8],
    lender: Option<&Lender>,
) -> Result<Response, Problem> {
    let Target { class, object, method } = target;
    let (name, signature, arguments) = (&method.name, method.signature, arguments.to_vec());
    let seat;
    let read = match lender {
        Some(lender) => lender.attachment().read(class, object, name, signature, arguments),
        None => {
            seat = gateway.requesters.seat().await?;
            seat.session.read(class, object, name, signature, arguments).anonymous()
        }
    };
    let read = if options.stale { read.stale() } else { read };
    // A read blocks for nothing that could take for ever.
    let result = read.deadline(options.patience().unwrap_or(DEADLINE)).await;
    target.answer(&result.map_err(|failure| target.problem(failure))?)
}

async fn perform_keyed(
    gateway: &Shared,
    target: &Target,
    wait: Option<Duration>,
    keyed: Keyed,
) -> Result<Response, Problem> {
    let started = gateway.keyed.start(gateway, keyed);
    let mut outcome = started.map_err(|failure| keyed_problem(target, failure))?;
    let ended = outcome.wait_for(Option::is_some);
    let ended = match wait {
        None => ended.await,
        Some(wait) => match tokio::time::timeout(wait, ended).await {
            Ok(ended) => ended,
            Err(_) => return Ok(still_running(wait)),
        },
    };
    let ended = ended.map(|outcome| outcome.clone().expect("it was waited for"));
    let Outcome { session, result } = ended.map_err(|_| {
        Failure::new(Exit::TimedOut, "unknown", "the gateway stops; a retry finds the outcome")
    })?;
    let result = result.map_err(|failure| keyed_problem(target, failure));
    let answer = result.and_then(|result| target.answer(&result));
    if answer.as_ref().is_err_and(|problem| problem.code() == "class-mismatch") {
        gateway.interfaces.forget(&target.class);
    }
    let mut response = answer.unwrap_or_else(IntoResponse::into_response);
    if let Some(session) = session {
        let name = HeaderName::from_static("gesmas-outcome");
        response.headers_mut().insert(name, session.into());
    }
    Ok(response)
}

fn keyed_problem(target: &Target, failure: KeyedFailure) -> Problem {
    match failure {
        KeyedFailure::Open(error) => error.into(),
        KeyedFailure::Call(failure) => target.problem(failure),
        KeyedFailure::Another => {
            let message = "this Idempotency-Key was used for another call";
            let failure = Failure::new(Exit::Refused, "key-reused", message).advise(
                "a key stands for one call: the same object, method, arguments and session",
            );
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, failure)
        }
    }
}

/// The answer to whoever does not wait any longer.
fn still_running(waited: Duration) -> Response {
    let body = json!({ "state": "running" });
    let mut response = (StatusCode::ACCEPTED, Json(body)).into_response();
    let applied = HeaderValue::from_str(&format!("wait={}", waited.as_secs()));
    let applied = applied.expect("digits are a header's value");
    response.headers_mut().insert(HeaderName::from_static("preference-applied"), applied);
    response
}

/// Arguments from a body: an object by name, an array by place, nothing for none.
pub(super) fn body_arguments(method: &Method, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let value = if body.iter().all(u8::is_ascii_whitespace) {
        Value::Object(Map::new())
    } else {
        serde_json::from_slice(body)
            .map_err(|error| Problem::bad("json", format!("the body is not JSON: {error}")))?
    };
    let arguments = match &value {
        Value::Object(names) => json::named_arguments(method, names),
        Value::Array(places) => json::arguments(method, places),
        _ => {
            let message = "the body holds the arguments: an object by their names, or an array";
            return Err(Problem::bad("argument", message));
        }
    };
    arguments.map_err(|error| Problem::bad("argument", error.to_string()))
}

/// Arguments from a query. A value that is no JSON of the parameter's type stands for itself as text.
fn query_arguments(method: &Method, query: Vec<(String, String)>) -> Result<Vec<u8>, Problem> {
    let mut values = Map::new();
    for (name, text) in query {
        let ty = method.parameters.iter().find(|parameter| parameter.name == name);
        let parsed = serde_json::from_str(&text)
            .ok()
            .filter(|value| ty.is_none_or(|parameter| json::encode(&parameter.ty, value).is_ok()));
        values.insert(name, parsed.unwrap_or(Value::String(text)));
    }
    json::named_arguments(method, &values)
        .map_err(|error| Problem::bad("argument", error.to_string()))
}
