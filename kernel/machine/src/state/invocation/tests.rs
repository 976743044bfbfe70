//! Journals, byte by byte: what a call that is suspended today must find in its journal for ever.
//!
//! A change here means that calls which older versions suspended cannot be rebuilt.

use std::fmt::Write as _;

use super::*;
use crate::{
    host_call::{Holder, Owner, PAnswer, PermitOwner, Wait},
    names::{AlarmId, MethodName},
};

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}

fn calls() -> Vec<HostCall> {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let (key, value, deque, map) = (bytes("k"), bytes("v"), bytes("d"), bytes("m"));
    let (semaphore, arguments) = (bytes("s"), vec![7]);
    let handler = MethodName::new("on_end").unwrap();
    let p = |wait, owner| HostCall::P { semaphore: bytes("s"), wait, owner };
    vec![
        HostCall::Get { key: key.clone() },
        HostCall::Set { key: key.clone(), value: value.clone() },
        HostCall::Remove { key: key.clone() },
        HostCall::Scan { collection: map.clone(), after: None, reverse: false, entries: 9 },
        HostCall::Scan {
            collection: map.clone(),
            after: Some(key.clone()),
            reverse: true,
            entries: 300,
        },
        HostCall::PushBack { deque: deque.clone(), value: value.clone() },
        HostCall::PushFront { deque: deque.clone(), value: value.clone() },
        HostCall::PopBack { deque: deque.clone() },
        HostCall::PopFront { deque: deque.clone() },
        HostCall::DequeGet { deque: deque.clone(), index: 2 },
        HostCall::Length { collection: deque },
        HostCall::MapInsert { map: map.clone(), key: key.clone(), value },
        HostCall::MapGet { map: map.clone(), key: key.clone() },
        HostCall::MapRemove { map, key },
        p(Wait::Forever, PermitOwner::Nobody),
        p(Wait::Never, PermitOwner::Invocation),
        p(Wait::For(5), PermitOwner::Session),
        p(Wait::Until(Time(6)), PermitOwner::Nobody),
        HostCall::V { semaphore: semaphore.clone(), count: 3 },
        HostCall::Release { permit: PermitId(4) },
        HostCall::SetCount { semaphore: semaphore.clone(), count: 5 },
        HostCall::Count { semaphore: semaphore.clone() },
        HostCall::Waiters { semaphore: semaphore.clone() },
        HostCall::Owners { semaphore },
        HostCall::Now,
        HostCall::Random,
        HostCall::Session,
        HostCall::Principal,
        HostCall::Object,
        HostCall::Token,
        HostCall::Log { level: 3, text: "hé".into() },
        HostCall::WatchSession {
            session: SessionId(8),
            handler: handler.clone(),
            arguments: arguments.clone(),
        },
        HostCall::After { duration: 9, handler, arguments: arguments.clone() },
        HostCall::CancelAlarm { alarm: AlarmId(10) },
        HostCall::Notify { session: SessionId(11), payload: arguments },
    ]
}

fn answers() -> Vec<Answer> {
    let owner = |permit, holder| Owner { permit: PermitId(permit), holder };
    let granted = [
        PAnswer::Granted,
        PAnswer::Owned(PermitId(300)),
        PAnswer::WouldBlock,
        PAnswer::TimedOut,
        PAnswer::Cancelled,
        PAnswer::SessionOver,
        PAnswer::NoSession,
    ];
    let others = [
        Answer::Unit,
        Answer::Flag(false),
        Answer::Flag(true),
        Answer::Number(258),
        Answer::OptionalNumber(None),
        Answer::OptionalNumber(Some(1 << 40)),
        Answer::Optional(None),
        Answer::Optional(Some(vec![1, 2])),
        Answer::Text("hé".into()),
        Answer::Entries(vec![(vec![1], vec![2, 3]), (vec![4], Vec::new())]),
        Answer::Owners(vec![
            owner(1, Holder::Invocation(InvocationId(2))),
            owner(3, Holder::Session(SessionId(4))),
        ]),
    ];
    others.into_iter().chain(granted.map(Answer::P)).collect()
}

#[test]
fn answers_stay_as_they_are() {
    let mut found = String::new();
    for answer in answers() {
        let mut journal = Journal::default();
        journal.record(0x0102_0304_0506_0708, &answer);
        journal.seal();
        assert!(journal.is_sound());
        assert_eq!(journal.reader().next(), Some((0x0102_0304_0506_0708, answer)));
        found += &(hexadecimal(&journal.bytes) + "\n");
    }
    assert_eq!(found, include_str!("answers.txt"));
}

#[test]
fn checksums_of_calls_stay_as_they_are() {
    let sums = calls().into_iter().fold(String::new(), |mut text, call| {
        writeln!(text, "{:016x} {call:?}", checksum(&call)).expect("a text takes everything");
        text
    });
    assert_eq!(sums, include_str!("calls.txt"));
}

#[test]
fn a_journal_and_its_digest_stay_as_they_are() {
    let mut journal = Journal::default();
    for (call, answer) in calls().iter().zip(answers()) {
        journal.record(checksum(call), &answer);
        journal.seal();
    }
    let encoded = hexadecimal(&encoding::encode(&journal)) + "\n";
    assert_eq!(encoded, include_str!("journal.txt"));
}
