//! Invocations: what was asked, how far it is, and the journal that can rebuild it.
//!
//! Invariant: a blocked invocation is its frame and its journal and nothing else; running the
//! frame's method again and answering from the journal reaches the same suspension.
//! Not here: stacks and instances. They belong to the engine and may be dropped at any time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    class::{ClassInterface, Method, MethodKind},
    code::CodeHash,
    encoding,
    host_call::{Answer, HostCall, PermitOwner},
    names::{
        AlarmId, Incarnation, InvocationId, MethodName, ObjectName, PermitId, SessionId, Step, Time,
    },
    outcome::CancelReason,
    sum::{Kind, Sum},
};

/// One call of one method on one object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Invocation {
    pub(crate) id: InvocationId,
    pub(crate) origin: Origin,
    /// The session it runs under: mostly the one that asked, none for a handler.
    pub(crate) session: Option<SessionId>,
    /// Shared with its session.
    pub(crate) principal: Arc<str>,
    /// What runs. The stack of frames is one deep until objects may call objects.
    pub(crate) frame: Frame,
    pub(crate) detached: bool,
    pub(crate) deadline: Option<AlarmId>,
    /// Permits it acquired, oldest first; those no longer owned by it do not count.
    pub(crate) permits: Vec<PermitId>,
    pub(crate) status: Status,
    pub(crate) cancelled: Option<CancelReason>,
    pub(crate) started: Time,
    /// Sum of its record as it stands in the sum of its object.
    pub(crate) sum: Sum,
    #[serde(skip)]
    pub(crate) running: Running,
}

/// Who made an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// A client.
    Request { session: SessionId, number: u64 },
    /// The scheduler, for a timer or watch.
    Alarm(AlarmId),
}

/// A method that runs on an object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub(crate) object: ObjectName,
    pub(crate) incarnation: Incarnation,
    pub(crate) code: CodeHash,
    pub(crate) method: MethodName,
    #[serde(with = "serde_bytes")]
    pub(crate) arguments: Vec<u8>,
    /// Memory of its instance, bytes: the limit when the frame began. A change of the limit counts
    /// for frames to come, so that a live body and a rebuilt one run under the same.
    pub(crate) memory: u64,
    pub(crate) journal: Journal,
}

/// Whether an invocation waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// It has the processor.
    Running,
    /// It waits for a permit.
    Blocked(Blocked),
    /// It is in the ready list, or about to have the processor.
    Ready(WakeUp),
}

/// What an invocation waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Blocked {
    /// Shared with its object.
    pub(crate) semaphore: Arc<[u8]>,
    pub(crate) ticket: u64,
    pub(crate) owner: PermitOwner,
    /// Goes off when the wait is over.
    pub(crate) timeout: Option<AlarmId>,
    pub(crate) since: Time,
    /// Checksum of the `P`.
    pub(crate) checksum: u64,
}

/// Why an invocation goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WakeUp {
    /// It has a permit in flight.
    Granted(Blocked),
    /// The time of its `P` is up.
    TimedOut(Blocked),
    /// It is cancelled.
    Cancelled(Blocked),
}

/// What matters only while a step runs, or to statistics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    /// Step in which the budget below was begun.
    pub(crate) step: Step,
    pub(crate) fuel: u64,
    pub(crate) segments: u32,
    /// Whether it has yet to block for the first time. Until then nothing of it is in the state.
    pub(crate) never_blocked: bool,
    /// Its deadline, with the number of its alarm, while it has not blocked.
    pub(crate) deadline: Option<(AlarmId, Time)>,
    /// What its method is, once that was looked up.
    pub(crate) method: Option<RunningMethod>,
    /// Semaphore it last went on from without a permit of it.
    pub(crate) woken_in_vain: Option<Arc<[u8]>>,
}

/// What matters of a method while it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningMethod {
    pub(crate) kind: MethodKind,
    /// Whether objects of its class are transient.
    pub(crate) transient: bool,
}

impl RunningMethod {
    pub(crate) const fn of(interface: &ClassInterface, method: &Method) -> Self {
        Self { kind: method.kind, transient: interface.transient }
    }
}

impl Invocation {
    /// The session it runs under, if that is another than the one that asked.
    pub(crate) fn lender(&self) -> Option<SessionId> {
        match self.origin {
            Origin::Request { session, .. } => self.session.filter(|lender| *lender != session),
            Origin::Alarm(_) => None,
        }
    }

    /// Sum of its record.
    pub(crate) fn record(&self) -> Sum {
        let frame = &self.frame;
        Sum::of(
            Kind::Invocation,
            &(
                (self.id, self.origin, self.session, &self.principal, self.detached, self.deadline),
                (&frame.object, frame.incarnation, frame.code, &frame.method),
                (&frame.arguments, frame.memory),
                (frame.journal.digest(), &self.permits, &self.status, self.cancelled, self.started),
            ),
        )
    }
}

/// The host calls of a frame so far: for each, a checksum of the call and the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    /// Digest of the sealed part: the chain of its pieces.
    digest: Sum,
    /// Where each piece ends.
    seals: Vec<u64>,
}

/// Room that a journal has from its beginning, bytes.
const JOURNAL_ROOM: usize = 32;

impl Journal {
    /// An empty journal in the room of another.
    pub(crate) fn in_room(room: Vec<u8>) -> Self {
        assert!(room.is_empty(), "a journal begins without calls");
        Self { bytes: room, ..Self::default() }
    }

    /// Its room, for the next journal; none where it has grown: one that is kept is to be small.
    pub(crate) fn into_room(mut self) -> Vec<u8> {
        self.bytes.clear();
        if self.bytes.capacity() > JOURNAL_ROOM { Vec::new() } else { self.bytes }
    }

    /// Records one call and its answer.
    pub(crate) fn record(&mut self, checksum: u64, answer: &Answer) {
        if self.bytes.capacity() == 0 {
            // Most have room for all calls of a segment in this, and would grow to it in three steps.
            self.bytes.reserve_exact(JOURNAL_ROOM);
        }
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        encoding::encode_into(answer, &mut self.bytes);
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Brings the digest up to date; done at each suspension.
    pub(crate) fn seal(&mut self) {
        let sealed = self.seals.last().copied().unwrap_or(0);
        if sealed < self.len() {
            let sealed = usize::try_from(sealed).expect("a journal fits into memory");
            self.digest = self.digest.chain(&self.bytes[sealed..]);
            self.seals.push(self.len());
        }
    }

    /// Digest of all of it.
    pub(crate) fn digest(&self) -> Sum {
        let sealed = self.seals.last().copied().unwrap_or(0);
        assert_eq!(sealed, self.len(), "a journal is sealed before it is hashed");
        self.digest
    }

    /// Whether the digest is that of the bytes, and all of them decode.
    pub(crate) fn is_sound(&self) -> bool {
        let mut digest = Sum::default();
        let mut from = 0;
        for seal in &self.seals {
            let Some(piece) = usize::try_from(*seal).ok().and_then(|to| self.bytes.get(from..to))
            else {
                return false;
            };
            digest = digest.chain(piece);
            from += piece.len();
        }
        digest == self.digest && from == self.bytes.len() && self.decodes()
    }

    fn decodes(&self) -> bool {
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let entry = rest.split_first_chunk::<8>().map(|(_, answer)| answer);
            match entry.map(encoding::decode_prefix::<Answer>) {
                Some(Ok((_, used))) => rest = &rest[8 + used..],
                _ => return false,
            }
        }
        true
    }

    /// Reads it from its beginning.
    pub(crate) fn reader(&self) -> JournalReader<'_> {
        JournalReader { rest: &self.bytes }
    }
}

/// Reads a journal.
#[derive(Debug)]
pub(crate) struct JournalReader<'a> {
    rest: &'a [u8],
}

impl JournalReader<'_> {
    /// The next checksum and answer.
    pub(crate) fn next(&mut self) -> Option<(u64, Answer)> {
        let (checksum, rest) = self.rest.split_first_chunk::<8>()?;
        let (answer, used) =
            encoding::decode_prefix(rest).expect("a journal holds what was recorded in it");
        self.rest = &rest[used..];
        Some((u64::from_le_bytes(*checksum), answer))
    }
}

/// Checksum of a call: half of the hash of its encoding.
pub(crate) fn checksum(call: &HostCall) -> u64 {
    encoding::hash_as_stored(call) as u64
}

#[cfg(test)]
mod tests;
