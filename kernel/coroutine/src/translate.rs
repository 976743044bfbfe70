//! Between the ABI's bytes and the machine's host calls and answers, for both engines.
//!
//! Invariant: equal bytes give equal host calls, and equal answers equal bytes, whichever engine
//! runs the body; what only ends a body (its result, an abort, a panic) never reaches the machine
//! as a host call.
//! Not here: the encoding itself (`objects/abi`), and whether a call is allowed (the machine).

use gesmas_abi::call::{self as abi, Request, Response, ReturnKind};
use gesmas_machine::{
    AlarmId, Answer, End, Holder, HostCall, MethodName, PAnswer, PermitId, PermitOwner, SessionId,
    Time, Trap, Wait,
};

/// What a body asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A host call; the body waits for the answer.
    Call(HostCall),
    /// Its result was given; the body returns right after.
    Returned(End),
    /// The body is over, here and now.
    Ended(End),
}

/// Takes a request apart.
pub(crate) fn asked(op: u32, request: &[u8]) -> Result<Asked, Trap> {
    let malformed = |error: gesmas_abi::Malformed| Trap::HostCallMalformed(error.to_string());
    let request = Request::decode(op, request).map_err(malformed)?;
    if let Some(end) = end(&request)? {
        let returned = matches!(request, Request::Return { .. });
        return Ok(if returned { Asked::Returned(end) } else { Asked::Ended(end) });
    }
    state(&request)
        .or_else(|| semaphore(&request))
        .map_or_else(|| context(&request), Ok)
        .map(Asked::Call)
}

/// The calls that end a body.
fn end(request: &Request<'_>) -> Result<Option<End>, Trap> {
    Ok(Some(match *request {
        Request::Return { kind: ReturnKind::Ok, payload } => End::Returned(payload.into()),
        Request::Return { kind: ReturnKind::Error, payload } => End::Failed(payload.into()),
        Request::Return { kind: ReturnKind::Cancelled, .. } => End::Cancelled,
        Request::Abort { payload } => End::Aborted(payload.into()),
        Request::Continue { method: name, arguments } => {
            End::Continue { method: method(name)?, arguments: arguments.into() }
        }
        Request::Panic { message } => End::Trapped(Trap::Panicked(message.into())),
        Request::ArgumentsMalformed { message } => {
            End::Trapped(Trap::ArgumentsMalformed(message.into()))
        }
        _ => return Ok(None),
    }))
}

/// The calls on the object's store.
fn state(request: &Request<'_>) -> Option<HostCall> {
    Some(match *request {
        Request::Get { key } => HostCall::Get { key: key.into() },
        Request::Set { key, value } => HostCall::Set { key: key.into(), value: value.into() },
        Request::Remove { key } => HostCall::Remove { key: key.into() },
        Request::Scan { collection, after, reverse, entries } => HostCall::Scan {
            collection: collection.into(),
            after: after.map(Into::into),
            reverse,
            entries,
        },
        Request::PushBack { deque, value } => {
            HostCall::PushBack { deque: deque.into(), value: value.into() }
        }
        Request::PushFront { deque, value } => {
            HostCall::PushFront { deque: deque.into(), value: value.into() }
        }
        Request::PopBack { deque } => HostCall::PopBack { deque: deque.into() },
        Request::PopFront { deque } => HostCall::PopFront { deque: deque.into() },
        Request::DequeGet { index, deque } => HostCall::DequeGet { deque: deque.into(), index },
        Request::Length { collection } => HostCall::Length { collection: collection.into() },
        Request::MapInsert { map, key, value } => {
            HostCall::MapInsert { map: map.into(), key: key.into(), value: value.into() }
        }
        Request::MapGet { map, key } => HostCall::MapGet { map: map.into(), key: key.into() },
        Request::MapRemove { map, key } => HostCall::MapRemove { map: map.into(), key: key.into() },
        _ => return None,
    })
}

/// The calls on semaphores.
fn semaphore(request: &Request<'_>) -> Option<HostCall> {
    Some(match *request {
        Request::P { wait, owner, semaphore } => HostCall::P {
            semaphore: semaphore.into(),
            wait: match wait {
                abi::Wait::Forever => Wait::Forever,
                abi::Wait::Never => Wait::Never,
                abi::Wait::For(duration) => Wait::For(duration),
                abi::Wait::Until(time) => Wait::Until(Time(time)),
            },
            owner: match owner {
                abi::PermitOwner::Nobody => PermitOwner::Nobody,
                abi::PermitOwner::Invocation => PermitOwner::Invocation,
                abi::PermitOwner::Session => PermitOwner::Session,
            },
        },
        Request::V { count, semaphore } => HostCall::V { semaphore: semaphore.into(), count },
        Request::Release { permit } => HostCall::Release { permit: PermitId(permit) },
        Request::SetCount { count, semaphore } => {
            HostCall::SetCount { semaphore: semaphore.into(), count }
        }
        Request::Count { semaphore } => HostCall::Count { semaphore: semaphore.into() },
        Request::Waiters { semaphore } => HostCall::Waiters { semaphore: semaphore.into() },
        Request::Owners { semaphore } => HostCall::Owners { semaphore: semaphore.into() },
        _ => return None,
    })
}

/// The calls on the context: time, session, alarms, events.
fn context(request: &Request<'_>) -> Result<HostCall, Trap> {
    Ok(match *request {
        Request::Now => HostCall::Now,
        Request::Random => HostCall::Random,
        Request::Session => HostCall::Session,
        Request::Principal => HostCall::Principal,
        Request::Object => HostCall::Object,
        Request::Token => HostCall::Token,
        Request::Log { level, text } => HostCall::Log { level, text: text.into() },
        Request::WatchSession { session, handler, arguments } => HostCall::WatchSession {
            session: SessionId(session),
            handler: method(handler)?,
            arguments: arguments.into(),
        },
        Request::After { duration, handler, arguments } => {
            HostCall::After { duration, handler: method(handler)?, arguments: arguments.into() }
        }
        Request::CancelAlarm { alarm } => HostCall::CancelAlarm { alarm: AlarmId(alarm) },
        Request::Notify { session, payload } => {
            HostCall::Notify { session: SessionId(session), payload: payload.into() }
        }
        _ => unreachable!("every request of {:?} is translated", request.op()),
    })
}

/// A method that a body names.
fn method(name: &str) -> Result<MethodName, Trap> {
    MethodName::new(name).map_err(|error| Trap::HostCallMalformed(error.to_string()))
}

/// Appends the bytes of an answer.
pub(crate) fn response(answer: &Answer, bytes: &mut Vec<u8>) {
    let response = match answer {
        Answer::Optional(found) => return Response::encode_optional(found.as_deref(), bytes),
        Answer::Unit => Response::Unit,
        Answer::Flag(flag) => Response::Flag(*flag),
        Answer::Number(number) => Response::Number(*number),
        Answer::OptionalNumber(number) => Response::OptionalNumber(*number),
        Answer::Text(text) => Response::Text(text.clone()),
        Answer::Entries(entries) => Response::Entries(entries.clone()),
        Answer::P(answer) => p(*answer),
        Answer::Owners(owners) => Response::Owners(owners.iter().map(owner).collect()),
    };
    response.encode(bytes);
}

fn p(answer: PAnswer) -> Response {
    let (status, permit) = match answer {
        PAnswer::Granted => (abi::PStatus::Granted, 0),
        PAnswer::Owned(permit) => (abi::PStatus::Owned, permit.0),
        PAnswer::WouldBlock => (abi::PStatus::WouldBlock, 0),
        PAnswer::TimedOut => (abi::PStatus::TimedOut, 0),
        PAnswer::Cancelled => (abi::PStatus::Cancelled, 0),
        PAnswer::SessionOver => (abi::PStatus::SessionOver, 0),
        PAnswer::NoSession => (abi::PStatus::NoSession, 0),
    };
    Response::P { status, permit }
}

fn owner(owner: &gesmas_machine::Owner) -> abi::Owner {
    let holder = match owner.holder {
        Holder::Invocation(id) => abi::Holder::Invocation(id.0),
        Holder::Session(id) => abi::Holder::Session(id.0),
    };
    abi::Owner { permit: owner.permit.0, holder }
}
