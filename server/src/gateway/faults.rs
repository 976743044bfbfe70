//! Faults of handlers: `/v1/faults`. A list; calling a handler once more; forgetting a fault.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::StatusCode,
};
use serde_json::{Value, json};

use super::{
    Gateway, Shared,
    consistency::Asker,
    operators::{Slice, texts},
    problem::Problem,
};
use crate::{interface, json::Integers, view};

type FaultPath = Result<Path<(String, String, u64)>, PathRejection>;

/// `GET /v1/faults`: all of them, by object. A list goes on after an object.
pub(super) async fn list(
    Asker(client): Asker,
    slice: Result<Query<Slice>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let slice = slice?.0;
    let (after, limit) = (slice.after_object()?, slice.limit());
    let page = client.list_faults(slice.class, after, limit).await?;
    let mut rows = Vec::new();
    let mut interfaces = BTreeMap::new();
    for fault in &page.items {
        if !interfaces.contains_key(&fault.class) {
            // Without it the arguments are not shown.
            let interface = interface::of_class(&client, &fault.class).await.ok();
            interfaces.insert(fault.class.clone(), interface);
        }
        let interface = interfaces.get(&fault.class).and_then(Option::as_ref);
        rows.push(texts(view::fault::as_json(fault, interface, Integers::Texts)));
    }
    Ok(Json(json!({ "faults": rows, "more": page.more })))
}

/// `POST /v1/faults/CLASS/OBJECT/FAULT/retry`: calls the handler once more.
pub(super) async fn retry(
    State(gateway): State<Shared>,
    path: FaultPath,
) -> Result<StatusCode, Problem> {
    end(&gateway, path, true).await
}

/// `DELETE /v1/faults/CLASS/OBJECT/FAULT`: forgets it.
pub(super) async fn drop_one(
    State(gateway): State<Shared>,
    path: FaultPath,
) -> Result<StatusCode, Problem> {
    end(&gateway, path, false).await
}

async fn end(gateway: &Gateway, path: FaultPath, retry: bool) -> Result<StatusCode, Problem> {
    let Path((class, object, fault)) = path?;
    let seat = gateway.requesters.seat().await?;
    seat.session.end_fault(class, object, fault, retry).await?;
    Ok(StatusCode::NO_CONTENT)
}
