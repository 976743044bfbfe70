//! Objects: `/v1/objects`. Lists, one with its state, creating and removing.

use axum::{
    Json,
    body::Bytes as Body,
    extract::{
        Path, Query, State,
        rejection::{BytesRejection, PathRejection, QueryRejection},
    },
    http::StatusCode,
};
use gesmas_abi::interface::{Interface, Method, MethodKind, TypeOwned};
use gesmas_client::Client;
use serde_json::{Value, json};

use super::{
    Shared,
    calls::{body_arguments, check_name},
    consistency::Asker,
    operators::{Slice, texts},
    problem::Problem,
};
use crate::{
    failure::Failure,
    interface,
    json::Integers,
    view::{self, object::as_json, state},
};

type ObjectPath = Path<(String, String)>;

/// `GET /v1/objects`: all of them, by class and name.
pub(super) async fn list(
    Asker(client): Asker,
    slice: Result<Query<Slice>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    list_some(&client, None, &slice?.0).await
}

/// `GET /v1/objects/CLASS`: those of a class.
pub(super) async fn list_of_class(
    Asker(client): Asker,
    path: Result<Path<String>, PathRejection>,
    slice: Result<Query<Slice>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    list_some(&client, Some(path?.0), &slice?.0).await
}

async fn list_some(
    client: &Client,
    class: Option<String>,
    slice: &Slice,
) -> Result<Json<Value>, Problem> {
    let page = client.list_objects(class, slice.after_object()?, slice.limit()).await?;
    let rows: Vec<_> = page.items.iter().map(view::object::row).map(texts).collect();
    Ok(Json(json!({ "objects": rows, "more": page.more })))
}

/// `GET /v1/objects/CLASS/OBJECT`: its state, semaphores, timers and faults.
pub(super) async fn show(
    Asker(client): Asker,
    path: Result<ObjectPath, PathRejection>,
    slice: Result<Query<Slice>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let Path((class, object)) = path?;
    check_name(&class, &object)?;
    let detail = client.show_object(&class, &object, slice?.0.limit()).await?;
    let interface = interface::of_class(&client, &class).await?;
    let files = state::files(&interface, &detail, Integers::Texts);
    Ok(Json(texts(as_json(&detail, &files, &interface, Integers::Texts))))
}

/// `PUT /v1/objects/CLASS/OBJECT`: creates it with the arguments of its `init`. Doing so again
/// changes nothing.
pub(super) async fn create(
    State(gateway): State<Shared>,
    path: Result<ObjectPath, PathRejection>,
    body: Result<Body, BytesRejection>,
) -> Result<StatusCode, Problem> {
    let Path((class, object)) = path?;
    check_name(&class, &object)?;
    let interface = gateway.interfaces.of(&class).await?;
    let init = init(&interface);
    let arguments = body_arguments(&init, &body?)?;
    let seat = gateway.requesters.seat().await?;
    let created = seat.session.create_object(&class, &object, init.signature, arguments).await;
    let name = format!("{class}/{object}");
    let explain = |failure| Failure::of_call(failure, &init, &name, Integers::Texts);
    created.map_err(explain).map_err(Problem::from).inspect_err(|problem| {
        if problem.code() == "class-mismatch" {
            gateway.interfaces.forget(&class);
        }
    })?;
    Ok(StatusCode::NO_CONTENT)
}

/// The method that makes objects; a class without one has one that takes nothing.
fn init(interface: &Interface) -> Method {
    interface.init().cloned().unwrap_or_else(|| Method {
        name: "init".into(),
        docs: String::new(),
        kind: MethodKind::Init,
        detached: false,
        parameters: Vec::new(),
        result: TypeOwned::Unit,
        error: None,
        signature: 0,
    })
}

/// `DELETE /v1/objects/CLASS/OBJECT`: removes it; its callers are told. One that is not there stays
/// so.
pub(super) async fn remove(
    State(gateway): State<Shared>,
    path: Result<ObjectPath, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((class, object)) = path?;
    check_name(&class, &object)?;
    let seat = gateway.requesters.seat().await?;
    match seat.session.remove_object(&class, &object).await {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(failure) => match Problem::from(failure) {
            gone if gone.code() == "object-unknown" => Ok(StatusCode::NO_CONTENT),
            problem => Err(problem),
        },
    }
}
