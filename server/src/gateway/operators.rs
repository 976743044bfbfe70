//! What operators ask for: classes, blocked calls, the cluster.

use axum::{
    Json,
    body::Bytes as Body,
    extract::{
        Path, Query, State,
        rejection::{BytesRejection, PathRejection, QueryRejection},
    },
    http::StatusCode,
};
use gesmas_client::{InvocationFilter, protocol::Replace};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Shared, consistency::Asker, problem::Problem};
use crate::{interface, view};

/// Rows of a list that names no limit.
const ROWS: u32 = 100;
/// Most rows of a list.
const ROWS_MAX: u32 = 1_000;

/// Which part of a list is wanted.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slice {
    /// Only what comes after this.
    pub(super) after: Option<String>,
    /// At most so many.
    limit: Option<u32>,
    /// Only those on objects of this class.
    pub(super) class: Option<String>,
    /// Only those on objects of this name.
    object: Option<String>,
    /// Only those of this session.
    session: Option<u64>,
}

impl Slice {
    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(ROWS).clamp(1, ROWS_MAX)
    }

    /// The place as an object's class and name.
    pub(super) fn after_object(&self) -> Result<Option<(String, String)>, Problem> {
        match &self.after {
            None => Ok(None),
            Some(text) => match text.split_once('/') {
                Some((class, object)) => Ok(Some((class.into(), object.into()))),
                None => Err(Problem::bad("after", "this list goes on after CLASS/OBJECT")),
            },
        }
    }

    /// The place as a number.
    pub(super) fn after_number(&self) -> Result<u64, Problem> {
        match &self.after {
            None => Ok(0),
            Some(text) => text.parse().map_err(|_| {
                Problem::bad("after", format!("this list goes on after a number, not {text:?}"))
            }),
        }
    }
}

/// Numbers as texts, as 64-bit integers are over HTTP. Values of classes were written so already.
pub(super) fn texts(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Array(items) => items.into_iter().map(texts).collect(),
        Value::Object(members) => {
            let member = |(name, value)| match name {
                name if name == "value" || name == "arguments" => (name, value),
                name => (name, texts(value)),
            };
            members.into_iter().map(member).collect()
        }
        other => other,
    }
}

/// `GET /v1/classes`: those that are loaded, and the standard ones that a call would load.
pub(super) async fn classes(Asker(client): Asker) -> Result<Json<Value>, Problem> {
    let classes = client.list_classes().await?;
    let rows = view::class::rows(&classes);
    let rows: Vec<_> = rows.iter().map(|row| texts(row.as_json())).collect();
    Ok(Json(json!({ "classes": rows })))
}

/// `GET /v1/classes/CLASS`: its interface.
pub(super) async fn class(
    Asker(client): Asker,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, Problem> {
    let interface = interface::of_class(&client, &path?.0).await?;
    Ok(Json(interface::file::write(&interface)))
}

/// How a class is put.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Putting {
    /// Takes the place of other code.
    replace: bool,
    /// Cancels blocked calls that are in the way of a new layout.
    cancel_pinned: bool,
}

/// `PUT /v1/classes/CLASS`: loads a module under its name; answered when it can be called.
pub(super) async fn put_class(
    State(gateway): State<Shared>,
    path: Result<Path<String>, PathRejection>,
    putting: Result<Query<Putting>, QueryRejection>,
    module: Result<Body, BytesRejection>,
) -> Result<StatusCode, Problem> {
    let class = path?.0;
    let Query(Putting { replace, cancel_pinned }) = putting?;
    // In a session of its own: compiling takes its time, and other calls would wait behind it.
    let session = gateway.client.session().open().await?;
    let put = if replace {
        session.replace_class(&class, module?, Replace { cancel_pinned })
    } else {
        session.put_class(&class, module?)
    };
    let put = put.await;
    session.close().await;
    gateway.interfaces.forget(&class);
    put?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /v1/classes/CLASS`: removes a class that has no objects.
pub(super) async fn remove_class(
    State(gateway): State<Shared>,
    path: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let class = path?.0;
    let seat = gateway.requesters.seat().await?;
    seat.session.remove_class(&class).await?;
    gateway.interfaces.forget(&class);
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/invocations`: calls that are blocked.
pub(super) async fn invocations(
    Asker(client): Asker,
    slice: Result<Query<Slice>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let slice = slice?.0;
    let (after, limit) = (slice.after_number()?, slice.limit());
    let Slice { class, object, session, .. } = slice;
    let filter = InvocationFilter { class, object, session };
    let page = client.list_invocations(filter, after, limit).await?;
    let rows: Vec<_> = page.items.iter().map(view::invocation::as_json).map(texts).collect();
    Ok(Json(json!({ "invocations": rows, "more": page.more })))
}

/// `GET /v1/invocations/ID/why`: what it waits for, and who could let it go on.
pub(super) async fn why_blocked(
    Asker(client): Asker,
    path: Result<Path<u64>, PathRejection>,
) -> Result<Json<Value>, Problem> {
    let chain = view::chain::Chain::of(&client, path?.0).await?;
    Ok(Json(texts(chain.as_json())))
}

/// `DELETE /v1/invocations/ID`: cancels it; its caller is told that an operator did.
pub(super) async fn kill_invocation(
    State(gateway): State<Shared>,
    path: Result<Path<u64>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let seat = gateway.requesters.seat().await?;
    seat.session.kill(path?.0).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /v1/cluster`: what this replica says of itself and of its group.
pub(super) async fn cluster(State(gateway): State<Shared>) -> Result<Json<Value>, Problem> {
    let status = gateway.client.cluster_status().await?;
    Ok(Json(texts(view::cluster::as_json(&gateway.replica.to_string(), &status))))
}
