//! The store of an object as files, decoded by best effort.
//!
//! The kernel lays collections out as: a header at the field's name (of a deque: position of the
//! front and length; of a map or set: length), an entry at name, zero byte, key. A deque's keys are
//! positions, shown as indices from the front. What does not fit the interface is shown raw, since
//! an object may be older than what is known of its class.

use std::collections::BTreeMap;

use gesmas_abi::interface::{Field, FieldKind, Interface, TypeOwned};
use gesmas_client::protocol::{ObjectDetail, PermitHolder, SemaphoreDetail};
use serde_json::{Value, json};

use crate::json::{Integers, decode, decode_key};

/// Least digits of an index.
const DIGITS: usize = 3;

/// A part of an object's state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct File {
    /// Its path below the object.
    pub(crate) path: String,
    pub(crate) content: Content,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// A value; none for a key of a set.
    Value(Option<Value>),
    /// A semaphore.
    Semaphore { count: u64, waiters: Vec<u64>, owners: Vec<String> },
}

/// The files of an object.
pub(crate) fn files(interface: &Interface, detail: &ObjectDetail, integers: Integers) -> Vec<File> {
    let mut decks = Decks { positions: BTreeMap::new(), integers };
    let mut files: Vec<_> = detail
        .entries
        .iter()
        .filter_map(|entry| {
            let file = entry_file(interface, &mut decks, &entry.key, &entry.value);
            file.unwrap_or_else(|| Some(raw(&entry.key, &entry.value)))
        })
        .collect();
    files.extend(detail.semaphores.iter().map(|semaphore| semaphore_file(interface, semaphore)));
    files
}

/// What is known while entries are gone through.
struct Decks {
    /// Headers of deques: they come before the deques' items.
    positions: BTreeMap<Vec<u8>, (u64, u64)>,
    integers: Integers,
}

/// The file of an entry: `None` if it does not fit the interface, `Some(None)` if it is a header.
fn entry_file(
    interface: &Interface,
    decks: &mut Decks,
    key: &[u8],
    value: &[u8],
) -> Option<Option<File>> {
    let (name, rest) = split(key);
    let field = field(interface, name)?;
    let integers = decks.integers;
    let content = |ty: &Option<TypeOwned>| {
        decode(ty.as_ref()?, value, integers).ok().map(|value| Content::Value(Some(value)))
    };
    let Some(rest) = rest else {
        return match field.kind {
            FieldKind::Value => {
                let content = content(&field.value)?;
                Some(Some(File { path: field.name.clone(), content }))
            }
            FieldKind::Deque => {
                let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
                let (front, length) = value.split_at_checked(8)?;
                decks.positions.insert(name.into(), (number(front)?, number(length)?));
                Some(None)
            }
            FieldKind::Map | FieldKind::Set => Some(None),
            FieldKind::Semaphore | FieldKind::SemaphoreMap => None,
        };
    };
    let (segment, content) = match field.kind {
        FieldKind::Deque => {
            let (front, length) = decks.positions.get(name).copied()?;
            let position = rest.try_into().ok().map(u64::from_be_bytes)?;
            let index = position.checked_sub(front)?;
            let digits = length.saturating_sub(1).to_string().len().max(DIGITS);
            (format!("{index:0digits$}"), content(&field.value)?)
        }
        FieldKind::Map => (key_segment(field, rest)?, content(&field.value)?),
        FieldKind::Set => (key_segment(field, rest)?, Content::Value(None)),
        FieldKind::Value | FieldKind::Semaphore | FieldKind::SemaphoreMap => return None,
    };
    Some(Some(File { path: format!("{}/{segment}", field.name), content }))
}

fn field<'a>(interface: &'a Interface, name: &[u8]) -> Option<&'a Field> {
    interface.fields.iter().find(|field| field.name.as_bytes() == name)
}

/// The name of a field, and the key behind its zero byte if there is one.
fn split(key: &[u8]) -> (&[u8], Option<&[u8]>) {
    match key.iter().position(|byte| *byte == 0) {
        None => (key, None),
        Some(end) => (&key[..end], Some(&key[end + 1..])),
    }
}

/// A key as the last part of a path.
fn key_segment(field: &Field, key: &[u8]) -> Option<String> {
    Some(match decode_key(field.key.as_ref()?, key).ok()? {
        Value::String(text) => text,
        Value::Object(members) => match members.get("text").and_then(Value::as_str) {
            Some(text) => text.into(),
            None => Value::Object(members).to_string(),
        },
        other => other.to_string(),
    })
}

/// An entry as it is.
fn raw(key: &[u8], value: &[u8]) -> File {
    let value = json!({ "raw": value.escape_ascii().to_string() });
    File { path: key.escape_ascii().to_string(), content: Content::Value(Some(value)) }
}

fn semaphore_file(interface: &Interface, semaphore: &SemaphoreDetail) -> File {
    let (name, key) = split(&semaphore.name);
    let segment = key.and_then(|key| key_segment(field(interface, name)?, key));
    let path = match (key, segment) {
        (None, _) => String::from_utf8_lossy(name).into_owned(),
        (Some(_), Some(segment)) => format!("{}/{segment}", String::from_utf8_lossy(name)),
        (Some(_), None) => semaphore.name.escape_ascii().to_string(),
    };
    let owners = semaphore.owners.iter().map(|owner| match owner.holder {
        PermitHolder::Invocation(id) => format!("invocation {id}"),
        PermitHolder::Session(id) => format!("session {id}"),
    });
    let content = Content::Semaphore {
        count: semaphore.count,
        waiters: semaphore.waiters.clone(),
        owners: owners.collect(),
    };
    File { path, content }
}

#[cfg(test)]
mod tests {
    use gesmas_abi::key::to_key;
    use gesmas_client::protocol::{Bytes, ObjectSummary, OwnerSummary, StateEntry};

    use super::*;

    fn interface() -> Interface {
        let field = |name: &str, kind, key, value| Field { name: name.into(), kind, key, value };
        let (text, u16) = (|| Some(TypeOwned::Text), || Some(TypeOwned::U16));
        Interface {
            abi: 1,
            class: "C".into(),
            docs: String::new(),
            transient: false,
            layout: 0,
            fields: vec![
                field("items", FieldKind::Deque, None, u16()),
                field("names", FieldKind::Map, text(), u16()),
                field("seen", FieldKind::Set, u16(), None),
                field("total", FieldKind::Value, None, u16()),
                field("turn", FieldKind::SemaphoreMap, u16(), None),
            ],
            methods: Vec::new(),
        }
    }

    fn detail(entries: Vec<(Vec<u8>, Vec<u8>)>) -> ObjectDetail {
        let entry =
            |(key, value): (Vec<u8>, Vec<u8>)| StateEntry { key: key.into(), value: value.into() };
        ObjectDetail {
            summary: ObjectSummary {
                class: "C".into(),
                object: "o".into(),
                incarnation: 1,
                bytes: 0,
                waiters: 0,
            },
            entries: entries.into_iter().map(entry).collect(),
            semaphores: vec![SemaphoreDetail {
                name: Bytes::from_static(b"turn\0\0\x07"),
                count: 0,
                waiters: vec![4, 5],
                owners: vec![OwnerSummary { permit: 1, holder: PermitHolder::Session(3) }],
            }],
            timers: Vec::new(),
            faults: Vec::new(),
            more: false,
        }
    }

    #[test]
    fn collections_are_folders() {
        let at = |name: &str, key: &[u8]| [name.as_bytes(), &[0], key].concat();
        let front = u64::MAX / 2;
        let header = [front.to_le_bytes(), 2_u64.to_le_bytes()].concat();
        let files = files(
            &interface(),
            &detail(vec![
                (b"items".into(), header),
                (at("items", &front.to_be_bytes()), vec![1, 0]),
                (at("items", &(front + 1).to_be_bytes()), vec![2, 0]),
                (b"names".into(), 1_u64.to_le_bytes().into()),
                (at("names", &to_key(&"ann".to_owned())), vec![9, 0]),
                (b"seen".into(), 1_u64.to_le_bytes().into()),
                (at("seen", &to_key(&258_u16)), vec![]),
                (b"total".into(), vec![3, 0]),
            ]),
            Integers::Numbers,
        );
        let shown: Vec<_> = files
            .iter()
            .map(|file| match &file.content {
                Content::Value(Some(value)) => format!("{} {value}", file.path),
                Content::Value(None) => file.path.clone(),
                Content::Semaphore { count, waiters, owners } => {
                    format!("{} {count} {waiters:?} {owners:?}", file.path)
                }
            })
            .collect();
        assert_eq!(
            shown,
            [
                "items/000 1",
                "items/001 2",
                "names/ann 9",
                "seen/258",
                "total 3",
                r#"turn/7 0 [4, 5] ["session 3"]"#,
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_shown_raw() {
        let entries = vec![
            (b"old".to_vec(), vec![0xff, b'a']),
            (b"total".to_vec(), vec![1]),
            (b"items\0x".to_vec(), vec![1]),
        ];
        let files = files(&interface(), &detail(entries), Integers::Numbers);
        let paths: Vec<_> = files.iter().take(3).map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["old", "total", r"items\x00x"]);
        assert_eq!(files[0].content, Content::Value(Some(json!({ "raw": r"\xffa" }))));
    }
}
