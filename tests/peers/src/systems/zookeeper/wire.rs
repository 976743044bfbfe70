//! The bytes of ZooKeeper's client protocol, as much of it as the recipes need.
//!
//! Everything is big-endian; texts, buffers and lists are led by their length as 32 bits, a buffer of
//! length -1 is none. A packet is led by its length. A request begins with its number and its kind, a
//! reply with the number, the transaction and an error code; the number -1 is a watch that fired, -2
//! the answer to a ping.
//! Source: ZooKeeper 3.8, `zookeeper.jute` and the programmer's guide.
//! Not here: sockets, and who waits for what (`client.rs`).

use bytes::{Buf, BufMut};

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Kind {
    Create = 1,
    Delete = 2,
    Exists = 3,
    GetData = 4,
    SetData = 5,
    GetChildren = 8,
    Sync = 9,
    Ping = 11,
}

/// How a node is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Mode {
    Persistent = 0,
    Sequential = 2,
    EphemeralSequential = 3,
}

/// What ZooKeeper refuses, as far as recipes go on after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no such node")]
    NoNode,
    #[error("the node has another version")]
    BadVersion,
    #[error("there is such a node already")]
    NodeExists,
    #[error("error {0}")]
    Other(i32),
}

impl Refusal {
    /// The refusal that a code stands for.
    pub(crate) fn of(code: i32) -> Option<Self> {
        match code {
            0 => None,
            -101 => Some(Self::NoNode),
            -103 => Some(Self::BadVersion),
            -110 => Some(Self::NodeExists),
            other => Some(Self::Other(other)),
        }
    }
}

/// The bytes end too early.
#[derive(Debug, thiserror::Error)]
#[error("a packet of ZooKeeper is shorter than what it says")]
pub(crate) struct Short;

/// Number of a watch that fired.
pub(crate) const WATCH: i32 = -1;
/// Number of a ping.
pub(crate) const PING: i32 = -2;

/// All rights for everybody: perms 31, scheme `world`, id `anyone`.
const OPEN: (i32, &str, &str) = (31, "world", "anyone");

/// Appends a text.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Appends a buffer.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_i32(i32::try_from(bytes.len()).expect("the benchmark's buffers are small"));
    out.put_slice(bytes);
}

/// Takes a buffer.
pub(crate) fn bytes<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], Short> {
    let length = int(from)?;
    let length = usize::try_from(length).unwrap_or(0);
    let (taken, rest) = from.split_at_checked(length).ok_or(Short)?;
    *from = rest;
    Ok(taken)
}

/// Takes a text.
pub(crate) fn text(from: &mut &[u8]) -> Result<String, Short> {
    Ok(String::from_utf8_lossy(bytes(from)?).into_owned())
}

/// Takes a list of texts.
pub(crate) fn texts(from: &mut &[u8]) -> Result<Vec<String>, Short> {
    let count = int(from)?;
    (0..count).map(|_| text(from)).collect()
}

/// Takes a number of 32 bits.
pub(crate) fn int(from: &mut &[u8]) -> Result<i32, Short> {
    from.try_get_i32().map_err(|_| Short)
}

/// Takes a number of 64 bits.
pub(crate) fn long(from: &mut &[u8]) -> Result<i64, Short> {
    from.try_get_i64().map_err(|_| Short)
}

/// The version that a status says.
pub(crate) fn version(from: &mut &[u8]) -> Result<i32, Short> {
    // Two transactions and two times come before it.
    for _ in 0..4 {
        long(from)?;
    }
    int(from)
}

/// The body that opens a session.
pub(crate) fn connect(timeout_ms: i32) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(0);
    out.put_i64(0);
    out.put_i32(timeout_ms);
    out.put_i64(0);
    put_bytes(&mut out, &[0; 16]);
    out.put_u8(0);
    out
}

/// The body that makes a node.
pub(crate) fn create(path: &str, data: &[u8], mode: Mode) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, path);
    put_bytes(&mut out, data);
    let (rights, scheme, id) = OPEN;
    out.put_i32(1);
    out.put_i32(rights);
    put_text(&mut out, scheme);
    put_text(&mut out, id);
    out.put_i32(mode as i32);
    out
}

/// The body that names a node.
pub(crate) fn path(path: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, path);
    out
}

/// The body that names a node, and asks for a watch or not.
pub(crate) fn watched(path: &str, watch: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, path);
    out.put_u8(u8::from(watch));
    out
}

/// The body that removes a node of this version; -1 is any.
pub(crate) fn delete(path: &str, version: i32) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, path);
    out.put_i32(version);
    out
}

/// The body that writes a node of this version; -1 is any.
pub(crate) fn set_data(path: &str, data: &[u8], version: i32) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, path);
    put_bytes(&mut out, data);
    out.put_i32(version);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_makes_a_node_has_the_bytes_of_the_protocol() {
        let expected =
            b"\0\0\0\x02/q\0\0\0\x01x\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone\0\0\0\x02";
        assert_eq!(create("/q", b"x", Mode::Sequential), expected);
    }

    #[test]
    fn a_status_tells_its_version() {
        let mut status = vec![0; 32];
        status.put_i32(7);
        status.resize(68, 0);
        assert_eq!(version(&mut &status[..]).expect("it is whole"), 7);
        assert!(version(&mut &status[..30]).is_err());
    }

    #[test]
    fn lists_of_texts_are_taken_apart() {
        let mut list = Vec::new();
        list.put_i32(2);
        put_text(&mut list, "one");
        put_text(&mut list, "");
        assert_eq!(texts(&mut &list[..]).expect("it is whole"), ["one", ""]);
        assert!(texts(&mut &list[..6]).is_err());
    }
}
