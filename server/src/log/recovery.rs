//! Opening a log: new, or from what a stopped or crashed replica left.
//!
//! Recovery applies every record in order, wipes what a crash left of the last turn, writes the last
//! record once more, and syncs the file it goes on in: the record may have been read from the system's
//! memory without being on the disk, and nothing may be promised on its ground before it is. To sync it
//! is not enough: after a sync that failed the system takes what it could not write for written.
//! The decided index may come back lower than it was, since it does not cost a sync of its own; the
//! leader decides the rest again.

use bytes::Bytes;

use super::call::{self, CallView, Instance};
use super::durable::{ActiveFile, Log, LogSettings};
use super::error::LogError;
use super::file_header::{FileHeader, HEADER_BYTES};
use super::record::RECORD_HEADER_BYTES;
use super::repo::Repo;
use super::scan;
use super::state::{InstanceState, Place, State};

/// Wiping writes zeros in pieces of this many bytes.
const WIPE_CHUNK_BYTES: u64 = 1 << 20;

impl Log {
    /// Makes a new log in an empty folder. A replica that lost its log must not vote again under its
    /// old id, since it may have promised or accepted what it no longer knows: whoever uses the log
    /// asks the other members before ([`Log::is_admitted`]).
    pub fn create(mut repo: Box<dyn Repo>, settings: LogSettings) -> Result<Self, LogError> {
        settings.check()?;
        if let Some(file) = repo.list()?.first() {
            return Err(LogError::AlreadyExists { file: *file });
        }
        let header = settings.header(1, settings.file_bytes);
        repo.create(1, header.size, &header.encode())?;
        let active = ActiveFile { header, offset: HEADER_BYTES };
        Ok(Self::with(repo, settings, State::new(settings.cache_bytes), active, 1, vec![], 1))
    }

    /// Opens the log of a replica that ran before.
    pub fn open(mut repo: Box<dyn Repo>, settings: LogSettings) -> Result<Self, LogError> {
        settings.check()?;
        let mut state = State::new(settings.cache_bytes);
        // The file whose first record was read last.
        let mut begun = 0;
        // Each record had a sync of its own, so that no other than the last can be in doubt.
        let mut last = None;
        let identity = Some(settings.identity);
        let walked =
            scan::walk(&mut *repo, identity, &mut Vec::new(), &mut |header, offset, record| {
                if begun != header.number {
                    apply_bases(&mut state, header.number, begun == 0, record.body)?;
                    begun = header.number;
                }
                last = Some((offset, record.total));
                apply_record(&mut state, header, offset, record.body)
            })?;
        let oldest = walked.oldest;
        if begun < oldest || state.oldest_file().is_some_and(|file| file < oldest) {
            // Nothing but what was dropped for good may be in files that are not there.
            if oldest > 1 {
                return Err(LogError::FileMissing { file: oldest - 1, later: oldest });
            }
        }
        for (_, instance) in state.instances() {
            let (file, offset) = (walked.active, walked.offset);
            holds_decided(instance).map_err(|reason| LogError::Nonsense {
                file,
                offset,
                reason,
            })?;
        }
        for (file, at, byte) in &walked.mended {
            tracing::error!(
                file,
                at,
                "a bit of the log had flipped and was mended; watch the disk"
            );
            repo.write(*file, *at, &[*byte])?;
            repo.sync(*file)?;
        }
        for (file, range) in &walked.debris {
            wipe(&mut *repo, *file, range.clone())?;
            if *file != walked.active {
                repo.sync(*file)?;
            }
        }
        if let Some((offset, length)) = last {
            let mut bytes = vec![0; length];
            repo.read(walked.active, offset, &mut bytes)?;
            repo.write(walked.active, offset, &bytes)?;
        }
        repo.sync(walked.active)?;
        for file in walked.leftovers {
            repo.remove(file)?;
        }
        state.settle();
        let mut headers = walked.headers;
        let at = usize::try_from(walked.active - oldest).expect("a file that was read");
        let spares = headers.split_off(at + 1);
        let header = headers.pop().expect("the active file was read");
        let active = ActiveFile { header, offset: walked.offset };
        Ok(Self::with(repo, settings, state, active, walked.sequence, spares, oldest))
    }
}

fn wipe(repo: &mut dyn Repo, file: u64, range: std::ops::Range<u64>) -> Result<(), LogError> {
    let mut at = range.start;
    while at < range.end {
        let length = (range.end - at).min(WIPE_CHUNK_BYTES);
        repo.write(file, at, &vec![0; usize::try_from(length).expect("a chunk")])?;
        at += length;
    }
    Ok(())
}

/// Reads what the first record of a file says of the time before it. That is where the log begins
/// if the files before were given back; otherwise it must be what they have led to.
fn apply_bases(
    state: &mut State,
    file: u64,
    is_oldest: bool,
    body: &[u8],
) -> Result<(), &'static str> {
    call::decode_all(body, |instance, call| match call {
        CallView::Base(base) if base.end < base.first || base.decided > base.end + 1 => {
            Err("it says that an instance ends before it begins")
        }
        CallView::Base(base) if is_oldest => {
            state.begin_at(instance, base, file);
            Ok(())
        }
        CallView::Base(base) if !state.agrees(instance, &base) => {
            Err("it contradicts the files before it")
        }
        _ => Ok(()),
    })
}

fn apply_record(
    state: &mut State,
    header: &FileHeader,
    offset: u64,
    body: &[u8],
) -> Result<(), &'static str> {
    let start = offset + RECORD_HEADER_BYTES as u64;
    call::decode_all(body, |instance, call| {
        apply_call(state, header.number, start, instance, call)
    })?;
    state.evict();
    Ok(())
}

fn holds_decided(instance: &InstanceState) -> Result<(), &'static str> {
    if instance.decided > instance.end() + u64::from(instance.stop_sign.is_some()) {
        return Err("more is decided than the log holds");
    }
    Ok(())
}

fn apply_call(
    state: &mut State,
    file: u64,
    start: u64,
    instance: Instance,
    call: CallView<'_>,
) -> Result<(), &'static str> {
    let push = |state: &mut State, entries: Vec<call::EntryView<'_>>| {
        for entry in entries {
            let place = Place { file, offset: start + entry.at as u64 };
            state.push(instance, place, Bytes::copy_from_slice(entry.bytes));
        }
    };
    match call {
        CallView::Append(entries) => push(state, entries),
        CallView::AppendOnPrefix(from, entries) => {
            if !state.truncate(instance, from) {
                return Err("it puts entries where they leave a hole");
            }
            push(state, entries);
        }
        CallView::Promise(ballot) => state.get_mut(instance).promise = Some(ballot),
        CallView::AcceptedRound(ballot) => state.get_mut(instance).accepted_round = Some(ballot),
        CallView::Decided(index) => {
            let state = state.get_mut(instance);
            state.decided = index;
            // Decided indices are the last calls of their turn.
            return holds_decided(state);
        }
        CallView::Base(_) => {}
        CallView::Disk(replica, disk) => {
            state.get_mut(instance).disks.insert(replica, disk);
        }
        CallView::Admitted => state.get_mut(instance).admitted = true,
        CallView::Trim(index) => state.trim(instance, index),
        CallView::Compacted(index) => state.get_mut(instance).compacted = index,
        CallView::StopSign(bytes) => {
            state.get_mut(instance).stop_sign = bytes.map(Bytes::copy_from_slice);
        }
    }
    Ok(())
}
