//! The failures that this gateway has answered lately: `GET /v1/errors`.
//!
//! They are for people who look at a replica and ask what went wrong just now; the server's log has
//! the rest, under the same ids. A failure that comes again (the same request, word and sentence,
//! without an id of its own) is counted instead of listed again, so that a client which polls does
//! not push out what others met.
//! Invariant: at most [`KEPT`] are kept, each of bounded size, in memory alone.
//! Not here: what is sent in requests and answers; arguments can be secrets, so only paths are kept.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{Json, extract::State, http::StatusCode};
use serde_json::{Value, json};

use super::Shared;
use crate::{failure::Failure, json::format_time};

/// How many failures are kept.
const KEPT: usize = 100;
/// Most characters that are kept of a text which a client can choose.
const TEXT_MAX: usize = 500;

/// What a failed answer says, for the list: it travels with the answer, beside its body.
#[derive(Clone, Debug)]
pub(super) struct Told {
    code: String,
    detail: String,
    advice: Option<String>,
    id: Option<u64>,
}

impl Told {
    pub(super) fn of(failure: &Failure) -> Self {
        Self {
            code: failure.code.clone(),
            detail: short(&failure.message),
            advice: failure.advice.as_deref().map(short),
            id: failure.id,
        }
    }

    /// The stable word of the failure.
    pub(super) fn code(&self) -> &str {
        &self.code
    }
}

/// The beginning of a text.
fn short(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A failure of the list.
struct Entry {
    number: u64,
    /// When it was met last, nanoseconds since the Unix epoch by this host's clock.
    time: u64,
    method: String,
    path: String,
    status: StatusCode,
    told: Told,
    count: u64,
}

impl Entry {
    fn as_json(&self) -> Value {
        json!({
            "number": self.number.to_string(),
            "time": format_time(self.time),
            "method": self.method,
            "path": self.path,
            "status": self.status.as_u16(),
            "code": self.told.code,
            "detail": self.told.detail,
            "advice": self.told.advice,
            "id": self.told.id.map(|id| format!("{id:016x}")),
            "count": self.count.to_string(),
        })
    }
}

/// The list.
#[derive(Default)]
pub(super) struct Errors {
    /// Newest last.
    entries: Mutex<VecDeque<Entry>>,
}

impl Errors {
    /// Takes down that a request was answered by a failure.
    pub(super) fn note(&self, method: &str, path: &str, status: StatusCode, told: Told) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let (method, path) = (short(method), short(path));
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let same = entries.iter().position(|entry| {
            told.id.is_none()
                && entry.told.id.is_none()
                && (&entry.method, &entry.path) == (&method, &path)
                && (&entry.told.code, &entry.told.detail) == (&told.code, &told.detail)
        });
        let count = match same.and_then(|index| entries.remove(index)) {
            Some(before) => before.count.saturating_add(1),
            None => 1,
        };
        let number = entries.back().map_or(1, |newest| newest.number.saturating_add(1));
        entries.push_back(Entry { number, time, method, path, status, told, count });
        if entries.len() > KEPT {
            entries.pop_front();
        }
    }

    /// The newest first.
    fn as_json(&self) -> Value {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().rev().map(Entry::as_json).collect()
    }
}

/// `GET /v1/errors`.
pub(super) async fn list(State(gateway): State<Shared>) -> Json<Value> {
    Json(json!({ "errors": gateway.errors.as_json() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::exit::Exit;

    fn note(errors: &Errors, path: &str, id: Option<u64>) {
        let failure = Failure { id, ..Failure::new(Exit::Failed, "trap-panic", "it panicked") };
        errors.note("POST", path, StatusCode::INTERNAL_SERVER_ERROR, Told::of(&failure));
    }

    fn shown(errors: &Errors, member: &str) -> Vec<Value> {
        let list = errors.as_json();
        let list = list.as_array().expect("it is a list");
        list.iter().map(|entry| entry[member].clone()).collect()
    }

    #[test]
    fn the_newest_hundred_are_kept() {
        let errors = Errors::default();
        for number in 0..=KEPT {
            note(&errors, &format!("/{number}"), None);
        }
        let paths = shown(&errors, "path");
        assert_eq!(
            (paths.len(), &paths[0], &paths[KEPT - 1]),
            (KEPT, &json!("/100"), &json!("/1"))
        );
    }

    #[test]
    fn what_comes_again_is_counted_unless_it_has_an_id() {
        let errors = Errors::default();
        for (path, id) in
            [("/a", None), ("/b", None), ("/a", None), ("/b", Some(7)), ("/b", Some(8))]
        {
            note(&errors, path, id);
        }
        assert_eq!(shown(&errors, "path"), ["/b", "/b", "/a", "/b"]);
        assert_eq!(shown(&errors, "count"), ["1", "1", "2", "1"]);
        assert_eq!(
            shown(&errors, "id"),
            [json!("0000000000000008"), json!("0000000000000007"), Value::Null, Value::Null]
        );
        assert_eq!(shown(&errors, "number"), ["5", "4", "3", "2"], "each change has a number");
    }

    #[test]
    fn texts_of_clients_are_cut() {
        let errors = Errors::default();
        note(&errors, &"ü".repeat(TEXT_MAX + 1), None);
        let path = shown(&errors, "path");
        assert_eq!(path[0], json!(format!("{}…", "ü".repeat(TEXT_MAX))));
    }
}
