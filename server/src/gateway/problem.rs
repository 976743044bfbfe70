//! Failures as answers: RFC 9457, `application/problem+json`.
//!
//! ```json
//! { "type": "urn:gesmas:failed", "title": "failed", "status": 422,
//!   "detail": "unlock of Lock/l returned NotHeld", "error": "NotHeld", "id": null }
//! ```
//! `type` ends in the same stable word that the command line prints as `code`; `id` finds the details
//! in the server's log; `advice` says what to do; `error` is the error of the class.
//! Invariant: every answer that is no success has this form, and carries what the list of errors
//! shows of it.

use axum::{
    Json,
    extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use gesmas_client::{AdminFailure, CallFailure, OpenError};
use serde_json::json;

use super::errors::Told;
use crate::failure::{Failure, exit::Exit};

/// After how many seconds to come back when the cluster was not ready.
const RETRY_AFTER: &str = "1";

/// A failure on its way to a client.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    failure: Failure,
}

impl Problem {
    /// The request is wrong.
    pub(super) fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Failure::new(Exit::Usage, code, message))
    }

    pub(super) const fn new(status: StatusCode, failure: Failure) -> Self {
        Self { status, failure }
    }

    pub(super) fn code(&self) -> &str {
        &self.failure.code
    }
}

/// The status that tells a program what kind of failure it is.
fn status(failure: &Failure) -> StatusCode {
    match (failure.code.as_str(), failure.exit) {
        ("busy" | "class-pending" | "unavailable", _) => StatusCode::SERVICE_UNAVAILABLE,
        ("denied", _) => StatusCode::FORBIDDEN,
        ("object-exists" | "class-exists" | "class-mismatch", _) => StatusCode::CONFLICT,
        ("object-removed", _) => StatusCode::GONE,
        ("not-sent", Exit::Refused) => StatusCode::PAYLOAD_TOO_LARGE,
        (
            "failed" | "aborted" | "init-refused" | "migrate-failed" | "limit" | "compile-failed",
            _,
        ) => StatusCode::UNPROCESSABLE_ENTITY,
        ("trap-limit" | "init-failed" | "cleanup-failed", Exit::Refused) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ("cancelled" | "deadlock", Exit::Failed) => StatusCode::CONFLICT,
        (code, _) if code.starts_with("module-") => StatusCode::UNPROCESSABLE_ENTITY,
        (_, Exit::Usage) => StatusCode::BAD_REQUEST,
        (_, Exit::NotFound) => StatusCode::NOT_FOUND,
        (_, Exit::TimedOut) => StatusCode::GATEWAY_TIMEOUT,
        (_, Exit::Unreachable) => StatusCode::SERVICE_UNAVAILABLE,
        (_, Exit::Refused) => StatusCode::CONFLICT,
        (_, Exit::Failed | Exit::Stopped | Exit::Interrupted) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self { status: status(&failure), failure }
    }
}

macro_rules! through_failure {
    ($($cause:ty),*) => {
        $(impl From<$cause> for Problem {
            fn from(cause: $cause) -> Self {
                Failure::from(cause).into()
            }
        })*
    };
}

through_failure!(AdminFailure, CallFailure, OpenError);

macro_rules! rejections {
    ($($cause:ty),*) => {
        $(impl From<$cause> for Problem {
            fn from(cause: $cause) -> Self {
                let failure = Failure::new(Exit::Usage, "request", cause.body_text());
                Self::new(cause.status(), failure)
            }
        })*
    };
}

rejections!(BytesRejection, JsonRejection, PathRejection, QueryRejection);

/// The whole answer to a connection for which there is no room, which says nothing more.
pub(super) fn no_room() -> Vec<u8> {
    let message = "the replica has as many connections as it takes: try another, or later";
    let body =
        body(StatusCode::SERVICE_UNAVAILABLE, Failure::new(Exit::Unreachable, "busy", message));
    let body = body.to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nretry-after: {RETRY_AFTER}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn body(status: StatusCode, failure: Failure) -> serde_json::Value {
    let mut body = json!({
        "type": format!("urn:gesmas:{}", failure.code),
        "title": failure.code.replace('-', " "),
        "status": status.as_u16(),
        "detail": failure.message,
        "id": failure.id.map(|id| format!("{id:016x}")),
    });
    if let Some(advice) = failure.advice {
        body["advice"] = advice.into();
    }
    if let Some(value) = failure.value {
        body["error"] = *value;
    }
    body
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, failure } = self;
        let told = Told::of(&failure);
        let body = body(status, failure);
        let mut response = (status, Json(body)).into_response();
        response.extensions_mut().insert(told);
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        response
    }
}

/// There is nothing at this path.
pub(super) async fn not_found() -> Problem {
    let failure = Failure::new(Exit::NotFound, "path-unknown", "there is nothing at this path");
    Problem::from(failure.advise("GET /v1/openapi.json describes what there is"))
}

/// There is something at this path, for other methods.
pub(super) async fn method_not_allowed() -> Problem {
    let message = "this path does not take this method";
    let failure = Failure::new(Exit::Usage, "method-not-allowed", message)
        .advise("GET /v1/openapi.json describes what there is");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, failure)
}
