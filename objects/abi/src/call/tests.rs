//! Every request and response as literal bytes, and what decoders refuse.

use alloc::{format, vec, vec::Vec};

use super::*;
use crate::Malformed;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| *byte != b' ')
        .map(|digit| match digit {
            b'0'..=b'9' => digit - b'0',
            _ => digit - b'a' + 10,
        })
        .collect();
    digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

#[track_caller]
fn check(request: Request<'_>, op: Op, text: &str) {
    let mut encoded = Vec::new();
    request.encode(&mut encoded);
    assert_eq!(encoded, hex(text));
    assert_eq!(request.op(), op);
    assert_eq!(Request::decode(op as u32, &encoded), Ok(request));
}

#[test]
fn numbers_of_calls_are_fixed() {
    let numbers: Vec<u32> = Op::ALL.into_iter().map(|op| op as u32).collect();
    let expected: Vec<u32> =
        (1..=13).chain(20..=26).chain(30..=36).chain(40..=43).chain(50..=54).collect();
    assert_eq!(numbers, expected);
    assert!(Op::ALL.into_iter().all(|op| Op::from_number(op as u32) == Some(op)));
    assert_eq!(Op::from_number(14), None);
}

#[test]
fn requests_about_the_store_have_these_bytes() {
    check(Request::Get { key: b"ab" }, Op::Get, "6162");
    check(Request::Set { key: b"ab", value: b"c" }, Op::Set, "02000000 6162 63");
    check(Request::Remove { key: b"ab" }, Op::Remove, "6162");
    let first = Request::Scan { collection: b"m", after: None, reverse: false, entries: 100 };
    check(first, Op::Scan, "01000000 6d 00 00 64000000");
    let next = Request::Scan { collection: b"m", after: Some(b"k"), reverse: true, entries: 1 };
    check(next, Op::Scan, "01000000 6d 01 01000000 6b 01 01000000");
    check(Request::PushBack { deque: b"d", value: b"v" }, Op::PushBack, "01000000 64 76");
    check(Request::PushFront { deque: b"d", value: b"" }, Op::PushFront, "01000000 64");
    check(Request::PopBack { deque: b"d" }, Op::PopBack, "64");
    check(Request::PopFront { deque: b"d" }, Op::PopFront, "64");
    check(Request::DequeGet { index: 258, deque: b"d" }, Op::DequeGet, "0201000000000000 64");
    check(Request::Length { collection: b"d" }, Op::Length, "64");
    let insert = Request::MapInsert { map: b"m", key: b"k", value: b"v" };
    check(insert, Op::MapInsert, "01000000 6d 01000000 6b 76");
    check(Request::MapGet { map: b"m", key: b"k" }, Op::MapGet, "01000000 6d 6b");
    check(Request::MapRemove { map: b"m", key: b"k" }, Op::MapRemove, "01000000 6d 6b");
}

#[test]
fn requests_about_semaphores_have_these_bytes() {
    let p = |wait, owner| Request::P { wait, owner, semaphore: b"s" };
    check(p(Wait::Forever, PermitOwner::Nobody), Op::P, "00 0000000000000000 00 73");
    check(p(Wait::Never, PermitOwner::Invocation), Op::P, "01 0000000000000000 01 73");
    check(p(Wait::For(1_000_000_000), PermitOwner::Session), Op::P, "02 00ca9a3b00000000 02 73");
    check(p(Wait::Until(5), PermitOwner::Nobody), Op::P, "03 0500000000000000 00 73");
    check(Request::V { count: 2, semaphore: b"s" }, Op::V, "0200000000000000 73");
    check(Request::Release { permit: 7 }, Op::Release, "0700000000000000");
    check(Request::SetCount { count: 16, semaphore: b"s" }, Op::SetCount, "1000000000000000 73");
    check(Request::Count { semaphore: b"s" }, Op::Count, "73");
    check(Request::Waiters { semaphore: b"s" }, Op::Waiters, "73");
    check(Request::Owners { semaphore: b"s" }, Op::Owners, "73");
}

#[test]
fn requests_about_the_context_have_these_bytes() {
    check(Request::Now, Op::Now, "");
    check(Request::Random, Op::Random, "");
    check(Request::Session, Op::Session, "");
    check(Request::Principal, Op::Principal, "");
    check(Request::Object, Op::Object, "");
    check(Request::Token, Op::Token, "");
    check(Request::Log { level: 3, text: "hi" }, Op::Log, "03 6869");
    let watch = Request::WatchSession { session: 4, handler: "gone", arguments: b"\x01" };
    check(watch, Op::WatchSession, "0400000000000000 04000000 676f6e65 01");
    let after = Request::After { duration: 9, handler: "late", arguments: b"" };
    check(after, Op::After, "0900000000000000 04000000 6c617465");
    check(Request::CancelAlarm { alarm: 3 }, Op::CancelAlarm, "0300000000000000");
    check(Request::Notify { session: 4, payload: b"x" }, Op::Notify, "0400000000000000 78");
}

#[test]
fn requests_that_end_a_method_have_these_bytes() {
    let back = |kind| Request::Return { kind, payload: b"r" };
    check(back(ReturnKind::Ok), Op::Return, "00 72");
    check(back(ReturnKind::Error), Op::Return, "01 72");
    check(Request::Return { kind: ReturnKind::Cancelled, payload: b"" }, Op::Return, "02");
    check(Request::Abort { payload: b"e" }, Op::Abort, "65");
    check(Request::Continue { method: "m", arguments: b"a" }, Op::Continue, "01000000 6d 61");
    check(Request::Panic { message: "oh" }, Op::Panic, "6f68");
    check(Request::ArgumentsMalformed { message: "no" }, Op::ArgumentsMalformed, "6e6f");
}

#[track_caller]
fn check_response(response: Response, op: Op, text: &str) {
    let mut encoded = Vec::new();
    response.encode(&mut encoded);
    assert_eq!(encoded, hex(text));
    assert_eq!(Response::decode(op, &encoded), Ok(response));
}

#[test]
fn responses_have_these_bytes() {
    check_response(Response::Unit, Op::Set, "");
    check_response(Response::Flag(true), Op::Release, "01");
    check_response(Response::Flag(false), Op::Notify, "00");
    check_response(Response::Number(258), Op::Length, "0201000000000000");
    check_response(Response::OptionalNumber(None), Op::Session, "00");
    check_response(Response::OptionalNumber(Some(4)), Op::Session, "01 0400000000000000");
    check_response(Response::Optional(None), Op::Get, "00");
    check_response(Response::Optional(Some(b"v".to_vec())), Op::PopFront, "01 76");
    check_response(Response::Optional(Some(vec![])), Op::MapGet, "01");
    check_response(Response::Text("jobs".into()), Op::Object, "6a6f6273");
    check_response(Response::Entries(vec![]), Op::Scan, "00000000");
    let entries = vec![(b"k".to_vec(), b"v".to_vec()), (b"l".to_vec(), vec![])];
    check_response(
        Response::Entries(entries),
        Op::Scan,
        "02000000 01000000 6b 01000000 76 01000000 6c 00000000",
    );
    let owners = vec![
        Owner { permit: 7, holder: Holder::Invocation(1) },
        Owner { permit: 8, holder: Holder::Session(4) },
    ];
    check_response(
        Response::Owners(owners),
        Op::Owners,
        "02000000 0700000000000000 01 0100000000000000 0800000000000000 02 0400000000000000",
    );
}

#[test]
fn responses_to_p_have_these_bytes() {
    let statuses = [
        PStatus::Granted,
        PStatus::Owned,
        PStatus::WouldBlock,
        PStatus::TimedOut,
        PStatus::Cancelled,
        PStatus::SessionOver,
        PStatus::NoSession,
    ];
    for (number, status) in statuses.into_iter().enumerate() {
        let permit = if status == PStatus::Owned { 7 } else { 0 };
        let text = format!("{number:02x} {permit:02x}00000000000000");
        check_response(Response::P { status, permit }, Op::P, &text);
    }
}

#[test]
fn malformed_requests_are_refused() {
    let refused = |op: Op, text: &str, reason| {
        assert_eq!(Request::decode(op as u32, &hex(text)), Err(Malformed(reason)), "{op:?}");
    };
    assert!(Request::decode(0, b"").is_err());
    assert!(Request::decode(99, b"").is_err());
    refused(Op::Now, "00", "bytes follow after its end");
    refused(Op::Set, "03000000 6162", "it ends too early");
    refused(Op::Set, "ffffffff", "it ends too early");
    refused(Op::Scan, "00000000 02", "a flag is neither 0 nor 1");
    refused(Op::P, "04 0000000000000000 00", "there is no such wait");
    refused(Op::P, "00 0100000000000000 00", "a wait without a time has one");
    refused(Op::P, "00 0000000000000000 03", "there is no such owner of a permit");
    refused(Op::Log, "03 ff", "a text is not UTF-8");
    refused(Op::Return, "03", "there is no such way to return");
}

#[test]
fn malformed_responses_are_refused() {
    let refused = |op, text: &str, reason| {
        assert_eq!(Response::decode(op, &hex(text)), Err(Malformed(reason)), "{op:?}");
    };
    refused(Op::Set, "00", "bytes follow after its end");
    refused(Op::Get, "02", "a flag is neither 0 nor 1");
    refused(Op::P, "07 0000000000000000", "there is no such status of a P");
    refused(Op::Scan, "ffffffff", "a count is greater than the input can hold");
    refused(Op::Owners, "01000000", "a count is greater than the input can hold");
    let kind = "01000000 0700000000000000 03 0100000000000000";
    refused(Op::Owners, kind, "there is no such kind of owner");
}
