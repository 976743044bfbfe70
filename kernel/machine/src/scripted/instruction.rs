//! Instructions of scripts.
//!
//! ```text
//! write KEY VALUE…       read KEY -> x          remove KEY -> x
//! push DEQUE ITEM…       pushfront DEQUE ITEM…  pop DEQUE -> x         popback DEQUE -> x
//! at DEQUE PLACE -> x    length COLLECTION -> x
//! insert MAP KEY VALUE…  lookup MAP KEY -> x    delete MAP KEY -> x
//! scan COLLECTION [after KEY] [back] [most N] -> x
//! P SEM [for N | until N] [-> x]                try SEM -> x
//! acquire SEM [for N | until N] [-> x]          hold SEM [for N | until N] [-> x]  (by the session)
//! V SEM [N]              release PERMIT -> x    count SEM N
//! value SEM -> x         waiters SEM -> x       owners SEM -> x
//! now -> x   random -> x   session -> x   principal -> x   object -> x   token -> x   log TEXT…
//! watch SESSION HANDLER ARGUMENTS… -> x         after N HANDLER ARGUMENTS… -> x
//! cancel ALARM -> x      notify SESSION TEXT…
//! let x VALUE…   add x N   burn N   grow N   LABEL:   goto LABEL   if A = B LABEL   if A != B LABEL
//! return TEXT…   fail TEXT…   abort TEXT…   panic TEXT…   cancelled   continue METHOD ARGUMENTS…
//! ```
//! In every word, `$0`, `$1` … are words of the arguments, `$` is all of them, `$x` is a variable,
//! `\0` a zero byte and `""` nothing. A `P` without a variable ends the method when it is cancelled.

use crate::{
    engine::End,
    host_call::{HostCall, PermitOwner, Wait},
    names::{AlarmId, MethodName, PermitId, SessionId, Time},
};

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    pub(super) words: Vec<String>,
    /// Variable that the answer goes into.
    pub(super) into: Option<String>,
}

impl Instruction {
    /// What stands after the last line of a method.
    pub(super) fn end() -> Self {
        Self { words: vec!["return".into()], into: None }
    }

    pub(super) fn parse(line: &str) -> Result<Self, &'static str> {
        let (line, into) = match line.rsplit_once(" -> ") {
            Some((line, into)) => (line, Some(into.trim().to_owned())),
            None => (line, None),
        };
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() { Err("an empty line") } else { Ok(Self { words, into }) }
    }

    /// Whether it asks for a permit and ends the method when it is cancelled.
    pub(super) fn ends_when_cancelled(&self) -> bool {
        self.into.is_none() && matches!(self.words[0].as_str(), "P" | "acquire" | "hold")
    }
}

/// The end of a body that a line says, if it says one.
pub(super) fn end_of(words: &[String]) -> Option<End> {
    let text = || rest(words, 1);
    Some(match words[0].as_str() {
        "return" => End::Returned(text()),
        "fail" => End::Failed(text()),
        "abort" => End::Aborted(text()),
        "cancelled" => End::Cancelled,
        "continue" => End::Continue { method: method(&words[1]), arguments: rest(words, 2) },
        _ => return None,
    })
}

/// The host call that a line says; an error for one that says none.
pub(super) fn call_of(words: &[String]) -> Result<HostCall, String> {
    let bytes = |place: usize| words.get(place).map(|word| word.clone().into_bytes());
    let name = bytes(1).unwrap_or_default();
    let third = || bytes(2).unwrap_or_default();
    let count = |place: usize| number(words.get(place).map_or("1", String::as_str));
    Ok(match words[0].as_str() {
        "write" => HostCall::Set { key: name, value: rest(words, 2) },
        "read" => HostCall::Get { key: name },
        "remove" => HostCall::Remove { key: name },
        "push" => HostCall::PushBack { deque: name, value: rest(words, 2) },
        "pushfront" => HostCall::PushFront { deque: name, value: rest(words, 2) },
        "pop" => HostCall::PopFront { deque: name },
        "popback" => HostCall::PopBack { deque: name },
        "at" => HostCall::DequeGet { deque: name, index: count(2)? },
        "length" => HostCall::Length { collection: name },
        "insert" => HostCall::MapInsert { map: name, key: third(), value: rest(words, 3) },
        "lookup" => HostCall::MapGet { map: name, key: third() },
        "delete" => HostCall::MapRemove { map: name, key: third() },
        "scan" => scan(name, &words[2..])?,
        "P" => ask(name, &words[2..], PermitOwner::Nobody)?,
        "acquire" => ask(name, &words[2..], PermitOwner::Invocation)?,
        "hold" => ask(name, &words[2..], PermitOwner::Session)?,
        "try" => HostCall::P { semaphore: name, wait: Wait::Never, owner: PermitOwner::Nobody },
        "V" => HostCall::V { semaphore: name, count: count(2)? },
        "release" => HostCall::Release { permit: PermitId(count(1)?) },
        "count" => HostCall::SetCount { semaphore: name, count: count(2)? },
        "value" => HostCall::Count { semaphore: name },
        "waiters" => HostCall::Waiters { semaphore: name },
        "owners" => HostCall::Owners { semaphore: name },
        "now" => HostCall::Now,
        "random" => HostCall::Random,
        "session" => HostCall::Session,
        "principal" => HostCall::Principal,
        "object" => HostCall::Object,
        "token" => HostCall::Token,
        "log" => HostCall::Log { level: 3, text: text(words, 1) },
        "watch" => HostCall::WatchSession {
            session: SessionId(count(1)?),
            handler: method(&words[2]),
            arguments: rest(words, 3),
        },
        "after" => HostCall::After {
            duration: count(1)?,
            handler: method(&words[2]),
            arguments: rest(words, 3),
        },
        "cancel" => HostCall::CancelAlarm { alarm: AlarmId(count(1)?) },
        "notify" => HostCall::Notify { session: SessionId(count(1)?), payload: rest(words, 2) },
        other => return Err(format!("{other} is no instruction")),
    })
}

fn ask(semaphore: Vec<u8>, wait: &[String], owner: PermitOwner) -> Result<HostCall, String> {
    let wait = match wait {
        [] => Wait::Forever,
        [word, time] if word == "for" => Wait::For(number(time)?),
        [word, time] if word == "until" => Wait::Until(Time(number(time)?)),
        _ => return Err("a wait is `for N` or `until N`".into()),
    };
    Ok(HostCall::P { semaphore, wait, owner })
}

fn scan(collection: Vec<u8>, options: &[String]) -> Result<HostCall, String> {
    let value = |name: &str| {
        let place = options.iter().position(|word| word == name)?;
        options.get(place + 1)
    };
    let most = value("most").map_or(Ok(100), |word| number(word))?;
    Ok(HostCall::Scan {
        collection,
        after: value("after").map(|word| word.clone().into_bytes()),
        reverse: options.iter().any(|word| word == "back"),
        entries: u32::try_from(most).unwrap_or(u32::MAX),
    })
}

/// The number that a word is.
pub(super) fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

fn method(word: &str) -> MethodName {
    MethodName::new(word).expect("scripts name methods by their grammar")
}

/// The words from a place on.
pub(super) fn text(words: &[String], from: usize) -> String {
    words.get(from..).unwrap_or_default().join(" ")
}

fn rest(words: &[String], from: usize) -> Vec<u8> {
    text(words, from).into_bytes()
}
