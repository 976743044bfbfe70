//! The calls that change the log, and their bytes in a record.
//!
//! A body is a row of calls: kind (1 byte), group (4), configuration (4), then the operands, all
//! little-endian and of fixed width; entries are a length (4) and their bytes.
//! Invariant: decoding accepts only what encoding makes, to the last byte.
//! Not here: the meaning of the calls, which `state.rs` gives them.

use std::collections::BTreeMap;

use bytes::Bytes;

/// One Paxos instance: a group in one configuration. Indices restart with each configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instance {
    /// The group that orders one log.
    pub group: u32,
    /// The configuration of the group, from 1.
    pub configuration: u32,
}

/// A ballot as the log keeps it; its order is the business of whoever writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedBallot {
    /// The configuration in which it was drawn.
    pub configuration: u32,
    /// Its number.
    pub number: u32,
    /// Its priority among equal numbers.
    pub priority: u32,
    /// The replica that drew it.
    pub replica: u64,
}

/// One change of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Puts entries at the end.
    Append(Vec<Bytes>),
    /// Drops all entries from an index on, then puts entries there.
    AppendOnPrefix(u64, Vec<Bytes>),
    /// Sets the promise.
    Promise(RecordedBallot),
    /// Sets the round in which entries were last accepted.
    AcceptedRound(RecordedBallot),
    /// Sets the decided index.
    Decided(u64),
    /// Drops entries before an index.
    Trim(u64),
    /// Sets the compacted index.
    Compacted(u64),
    /// Sets or clears the mark that ends the configuration, in the bytes of whoever writes it.
    StopSign(Option<Bytes>),
    /// A member has this disk.
    Disk {
        /// The member.
        replica: u64,
        /// Drawn when its log was made.
        disk: u128,
    },
    /// All members know this replica's disk: it may vote.
    Admitted,
}

/// What an instance was before a turn, entries apart. The first record of every file but the first
/// says it for every instance, so that the files before can be given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) promise: Option<RecordedBallot>,
    pub(crate) accepted_round: Option<RecordedBallot>,
    pub(crate) decided: u64,
    pub(crate) compacted: u64,
    /// Index of the first entry.
    pub(crate) first: u64,
    /// One past the index of the last entry.
    pub(crate) end: u64,
    pub(crate) stop_sign: Option<Bytes>,
    /// Disks of members.
    pub(crate) disks: BTreeMap<u64, u128>,
    /// Whether this replica may vote.
    pub(crate) admitted: bool,
}

/// A call as it lies in a record: entries are where they are, nothing is copied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallView<'a> {
    Append(Vec<EntryView<'a>>),
    AppendOnPrefix(u64, Vec<EntryView<'a>>),
    Promise(RecordedBallot),
    AcceptedRound(RecordedBallot),
    Decided(u64),
    Trim(u64),
    Compacted(u64),
    StopSign(Option<&'a [u8]>),
    Base(Base),
    Disk(u64, u128),
    Admitted,
}

/// The bytes of an entry and where in the body they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryView<'a> {
    pub(crate) at: usize,
    pub(crate) bytes: &'a [u8],
}

const APPEND: u8 = 1;
const APPEND_ON_PREFIX: u8 = 2;
const PROMISE: u8 = 3;
const ACCEPTED_ROUND: u8 = 4;
const DECIDED: u8 = 5;
const TRIM: u8 = 6;
const COMPACTED: u8 = 7;
const STOP_SIGN: u8 = 8;
const NO_STOP_SIGN: u8 = 9;
const BASE: u8 = 10;
const DISK: u8 = 11;
const ADMITTED: u8 = 12;

/// Appends `call` to a body; `placed` learns where in `out` the bytes of each entry begin.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    instance: Instance,
    call: &Call,
    mut placed: impl FnMut(usize),
) {
    let head = |out: &mut Vec<u8>, kind: u8| encode_head(out, instance, kind);
    match call {
        Call::Append(entries) => {
            head(out, APPEND);
            encode_entries(out, entries, &mut placed);
        }
        Call::AppendOnPrefix(from, entries) => {
            head(out, APPEND_ON_PREFIX);
            out.extend_from_slice(&from.to_le_bytes());
            encode_entries(out, entries, &mut placed);
        }
        Call::Promise(ballot) => {
            head(out, PROMISE);
            encode_ballot(out, ballot);
        }
        Call::AcceptedRound(ballot) => {
            head(out, ACCEPTED_ROUND);
            encode_ballot(out, ballot);
        }
        Call::Decided(index) => {
            head(out, DECIDED);
            out.extend_from_slice(&index.to_le_bytes());
        }
        Call::Trim(index) => {
            head(out, TRIM);
            out.extend_from_slice(&index.to_le_bytes());
        }
        Call::Compacted(index) => {
            head(out, COMPACTED);
            out.extend_from_slice(&index.to_le_bytes());
        }
        Call::StopSign(Some(bytes)) => {
            head(out, STOP_SIGN);
            out.extend_from_slice(&length(bytes).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        Call::StopSign(None) => head(out, NO_STOP_SIGN),
        Call::Disk { replica, disk } => {
            head(out, DISK);
            out.extend_from_slice(&replica.to_le_bytes());
            out.extend_from_slice(&disk.to_le_bytes());
        }
        Call::Admitted => head(out, ADMITTED),
    }
}

/// Appends what an instance was before the turn.
pub(crate) fn encode_base(out: &mut Vec<u8>, instance: Instance, base: &Base) {
    encode_head(out, instance, BASE);
    for number in [base.decided, base.compacted, base.first, base.end] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for ballot in [&base.promise, &base.accepted_round] {
        out.push(u8::from(ballot.is_some()));
        encode_ballot(out, &ballot.unwrap_or_default());
    }
    out.push(u8::from(base.stop_sign.is_some()));
    let stop_sign = base.stop_sign.clone().unwrap_or_default();
    out.extend_from_slice(&length(&stop_sign).to_le_bytes());
    out.extend_from_slice(&stop_sign);
    out.push(u8::from(base.admitted));
    let disks = u32::try_from(base.disks.len()).expect("there are few members");
    out.extend_from_slice(&disks.to_le_bytes());
    for (replica, disk) in &base.disks {
        out.extend_from_slice(&replica.to_le_bytes());
        out.extend_from_slice(&disk.to_le_bytes());
    }
}

fn encode_head(out: &mut Vec<u8>, instance: Instance, kind: u8) {
    out.push(kind);
    out.extend_from_slice(&instance.group.to_le_bytes());
    out.extend_from_slice(&instance.configuration.to_le_bytes());
}

fn encode_entries(out: &mut Vec<u8>, entries: &[Bytes], placed: &mut impl FnMut(usize)) {
    let count = u32::try_from(entries.len()).expect("a turn is far smaller");
    out.extend_from_slice(&count.to_le_bytes());
    for entry in entries {
        out.extend_from_slice(&length(entry).to_le_bytes());
        placed(out.len());
        out.extend_from_slice(entry);
    }
}

fn encode_ballot(out: &mut Vec<u8>, ballot: &RecordedBallot) {
    out.extend_from_slice(&ballot.configuration.to_le_bytes());
    out.extend_from_slice(&ballot.number.to_le_bytes());
    out.extend_from_slice(&ballot.priority.to_le_bytes());
    out.extend_from_slice(&ballot.replica.to_le_bytes());
}

fn length(bytes: &Bytes) -> u32 {
    u32::try_from(bytes.len()).expect("an entry is far smaller")
}

/// Reads the calls of a body in order and gives each to `apply`; stops at the first complaint.
pub(crate) fn decode_all(
    body: &[u8],
    mut apply: impl FnMut(Instance, CallView<'_>) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let mut reader = Reader { body, at: 0 };
    while reader.at < body.len() {
        let kind = reader.take(1)?[0];
        let instance = Instance { group: reader.half()?, configuration: reader.half()? };
        let call = match kind {
            APPEND => CallView::Append(reader.entries()?),
            APPEND_ON_PREFIX => CallView::AppendOnPrefix(reader.word()?, reader.entries()?),
            PROMISE => CallView::Promise(reader.ballot()?),
            ACCEPTED_ROUND => CallView::AcceptedRound(reader.ballot()?),
            DECIDED => CallView::Decided(reader.word()?),
            TRIM => CallView::Trim(reader.word()?),
            COMPACTED => CallView::Compacted(reader.word()?),
            STOP_SIGN => {
                let length = reader.half()? as usize;
                CallView::StopSign(Some(reader.take(length)?))
            }
            NO_STOP_SIGN => CallView::StopSign(None),
            BASE => CallView::Base(reader.base()?),
            DISK => CallView::Disk(reader.word()?, reader.wide()?),
            ADMITTED => CallView::Admitted,
            _ => return Err("a call is of an unknown kind"),
        };
        apply(instance, call)?;
    }
    Ok(())
}

struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let rest = &self.body[self.at..];
        let bytes = rest.get(..length).ok_or("a call is longer than its record")?;
        self.at += length;
        Ok(bytes)
    }

    fn half(&mut self) -> Result<u32, &'static str> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("4 bytes")))
    }

    fn word(&mut self) -> Result<u64, &'static str> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("8 bytes")))
    }

    fn base(&mut self) -> Result<Base, &'static str> {
        let (decided, compacted) = (self.word()?, self.word()?);
        let (first, end) = (self.word()?, self.word()?);
        let promise = self.flag()?.then_some(self.ballot()?);
        let accepted_round = self.flag()?.then_some(self.ballot()?);
        let has_stop_sign = self.flag()?;
        let length = self.half()? as usize;
        let bytes = Bytes::copy_from_slice(self.take(length)?);
        let stop_sign = has_stop_sign.then_some(bytes);
        let admitted = self.flag()?;
        let count = self.half()?;
        let disks = (0..count).map(|_| Ok((self.word()?, self.wide()?)));
        let disks = disks.collect::<Result<_, &'static str>>()?;
        Ok(Base {
            promise,
            accepted_round,
            decided,
            compacted,
            first,
            end,
            stop_sign,
            disks,
            admitted,
        })
    }

    fn wide(&mut self) -> Result<u128, &'static str> {
        Ok(u128::from_le_bytes(self.take(16)?.try_into().expect("16 bytes")))
    }

    fn flag(&mut self) -> Result<bool, &'static str> {
        match self.take(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err("a flag is neither set nor clear"),
        }
    }

    fn ballot(&mut self) -> Result<RecordedBallot, &'static str> {
        Ok(RecordedBallot {
            configuration: self.half()?,
            number: self.half()?,
            priority: self.half()?,
            replica: self.word()?,
        })
    }

    fn entries(&mut self) -> Result<Vec<EntryView<'a>>, &'static str> {
        let count = self.half()? as usize;
        // Each entry has a length of four bytes, which bounds what a count may claim.
        if count > (self.body.len() - self.at) / 4 {
            return Err("a call claims more entries than its record holds");
        }
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let length = self.half()? as usize;
            let at = self.at;
            entries.push(EntryView { at, bytes: self.take(length)? });
        }
        Ok(entries)
    }
}
