//! The log at work: gathers the calls of a turn, makes them durable, and reads entries back.
//!
//! ```text
//! record, record, …  →  sync: one write, one fdatasync  →  record, …
//! ```
//!
//! The fdatasync may run on another thread: `begin_sync`, the [`Syncing`], `end_sync`. Between the two
//! entries can be read and decided indices be recorded, nothing else.
//!
//! Reads see calls at once, durable or not; whoever tells others about them must sync first.
//! A turn in which nothing but decided indices changed costs no sync: they wait for the next turn
//! that has something to say, since losing one is safe.
//!
//! Invariants: one fdatasync per turn; offsets only grow; after a failure nothing is written. A full
//! disk is no failure, nor is a lack of file descriptors: either is noticed before the last room is used,
//! and the log waits.
//! Not here: opening (`recovery.rs`), and reading (`lookup.rs`).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::call::{self, Call, Instance};
use super::error::LogError;
use super::file_header::{FileHeader, HEADER_BYTES, Identity};
use super::record::{self, MAX_RECORD_BYTES, RECORD_ALIGNMENT, RECORD_HEADER_BYTES};
use super::repo::{FileSync, Repo, RepoError};
use super::state::{Place, State};

/// The smallest file that makes sense: a header and some records.
const MIN_FILE_BYTES: u64 = 4096;
/// Bytes of every file that are left for the turn that drops entries when there is no room for the
/// next file.
const RESERVE_BYTES: u64 = 512;
/// A turn's buffer larger than this is given back after use.
const KEPT_BUFFER_BYTES: usize = 4 << 20;

/// How a log is kept.
#[derive(Clone, Copy, Debug)]
pub struct LogSettings {
    /// Whose log it is.
    pub identity: Identity,
    /// Bytes per file; a single turn that needs more gets a file of its own size.
    pub file_bytes: u64,
    /// Bytes of recent entries that are kept in memory.
    pub cache_bytes: u64,
    /// A number that clients cannot know, so that none can plant a false record in an entry.
    pub salt: u64,
}

impl LogSettings {
    pub(crate) fn check(&self) -> Result<(), LogError> {
        if self.file_bytes < MIN_FILE_BYTES {
            return Err(LogError::FileTooSmall { bytes: self.file_bytes, least: MIN_FILE_BYTES });
        }
        Ok(())
    }

    pub(crate) fn header(&self, number: u64, size: u64) -> FileHeader {
        FileHeader { identity: self.identity, number, size, salt: self.salt }
    }
}

/// The file that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActiveFile {
    pub(crate) header: FileHeader,
    /// Where the next record goes.
    pub(crate) offset: u64,
}

/// What is left to do to make a turn durable, on any thread.
#[must_use = "a turn that is written is not durable"]
pub struct Syncing(FileSync);

/// How that went: for [`Log::end_sync`].
#[must_use = "the log has to know"]
pub struct Synced(Result<(), RepoError>);

impl Syncing {
    /// Does it.
    pub fn run(self) -> Synced {
        Synced(self.0())
    }
}

/// The durable log of one replica, for all of its Paxos instances.
pub struct Log {
    pub(super) repo: Box<dyn Repo>,
    settings: LogSettings,
    pub(super) state: State,
    pub(super) active: ActiveFile,
    next_sequence: u64,
    /// Files after the active one that exist and hold nothing yet.
    spares: BTreeMap<u64, FileHeader>,
    /// The file that is being made ahead of its need, if any.
    ahead: Option<FileHeader>,
    /// The first file that is kept.
    pub(super) oldest: u64,
    /// Whether entries were dropped since files were last given back.
    trimmed: bool,
    /// The record of this turn: room for its header, then its calls.
    turn: Vec<u8>,
    /// Whether there is more in it than entries at the end.
    turn_has_more: bool,
    /// Where the record of this turn is written, and its length, while it is being made durable.
    syncing: Option<(Place, u64)>,
    /// Instances whose decided index is not in the files yet.
    undecided_on_disk: BTreeSet<Instance>,
    poison: Option<String>,
    /// Why there is no next file, if there can be none now.
    lack: Option<String>,
    /// Turns that were made durable since the log was opened.
    pub(super) syncs: u64,
}

impl Log {
    pub(crate) fn with(
        repo: Box<dyn Repo>,
        settings: LogSettings,
        state: State,
        active: ActiveFile,
        next_sequence: u64,
        spares: Vec<FileHeader>,
        oldest: u64,
    ) -> Self {
        Self {
            repo,
            settings,
            state,
            active,
            next_sequence,
            spares: spares.into_iter().map(|header| (header.number, header)).collect(),
            ahead: None,
            oldest,
            trimmed: true,
            turn: vec![0; RECORD_HEADER_BYTES],
            turn_has_more: false,
            syncing: None,
            undecided_on_disk: BTreeSet::new(),
            poison: None,
            lack: None,
            syncs: 0,
        }
    }

    /// Makes a change, which becomes durable with the next [`sync`](Self::sync) and all or nothing
    /// with the other changes of its turn. Changes nothing if it fails.
    pub fn record(&mut self, instance: Instance, call: &Call) -> Result<(), LogError> {
        self.check_poison()?;
        if let Call::Decided(index) = call {
            self.state.get_mut(instance).decided = *index;
            self.undecided_on_disk.insert(instance);
            return Ok(());
        }
        assert!(self.syncing.is_none(), "a turn that is being made durable does not change");
        self.turn_has_more |= !matches!(call, Call::Append(_));
        match call {
            Call::AppendOnPrefix(from, _) => {
                let before = self.state.get(instance);
                let (first, end) = before.map_or((0, 0), |state| (state.first(), state.end()));
                if *from < first {
                    return Err(LogError::Compacted { index: *from, first });
                }
                if !self.state.truncate(instance, *from) {
                    return Err(LogError::Hole { index: *from, end });
                }
            }
            Call::Promise(ballot) => self.state.get_mut(instance).promise = Some(*ballot),
            Call::AcceptedRound(ballot) => {
                self.state.get_mut(instance).accepted_round = Some(*ballot);
            }
            Call::Trim(index) => {
                self.state.trim(instance, *index);
                self.trimmed = true;
            }
            Call::Compacted(index) => self.state.get_mut(instance).compacted = *index,
            Call::StopSign(bytes) => self.state.get_mut(instance).stop_sign = bytes.clone(),
            Call::Disk { replica, disk } => {
                self.state.get_mut(instance).disks.insert(*replica, *disk);
            }
            Call::Admitted => self.state.get_mut(instance).admitted = true,
            Call::Append(_) | Call::Decided(_) => {}
        }
        self.encode(instance, call);
        Ok(())
    }

    /// Puts the call into the record of the turn and its entries into the index.
    fn encode(&mut self, instance: Instance, call: &Call) {
        let entries: &[Bytes] = match call {
            Call::Append(entries) | Call::AppendOnPrefix(_, entries) => entries,
            _ => &[],
        };
        let mut entries = entries.iter();
        let state = &mut self.state;
        call::encode(&mut self.turn, instance, call, |offset| {
            let bytes = entries.next().expect("every entry is placed once").clone();
            state.push(instance, Place { file: 0, offset: offset as u64 }, bytes);
        });
    }

    /// True if something waits that others must not hear of before it is durable.
    pub fn needs_sync(&self) -> bool {
        self.turn.len() > RECORD_HEADER_BYTES
    }

    /// Bytes that wait. One record has room for 256 MiB; a driver of many groups ends its turn
    /// before that, with a sync in between.
    pub fn waiting_bytes(&self) -> u64 {
        self.turn.len() as u64
    }

    /// Whether all that waits are entries at the end: then what is durable is as it was before the
    /// turn, but for its end.
    pub fn only_appends(&self) -> bool {
        !self.turn_has_more
    }

    /// Makes the turn durable. With an error that [passes](LogError::passes) nothing is written, and the
    /// turn waits for another attempt. After any other error the log is poisoned: the replica must stop, and what
    /// really reached the disk is found out by opening the log again.
    pub fn sync(&mut self) -> Result<(), LogError> {
        match self.begin_sync()? {
            Some(syncing) => self.end_sync(syncing.run()),
            None => Ok(()),
        }
    }

    /// Writes the turn, and returns what makes it durable; none if there is nothing to be made so.
    /// Errors are those of [`sync`](Self::sync).
    pub fn begin_sync(&mut self) -> Result<Option<Syncing>, LogError> {
        self.check_poison()?;
        assert!(self.syncing.is_none(), "one sync at a time");
        if !self.needs_sync() {
            return Ok(None);
        }
        let (turn, undecided) = (self.turn.len(), self.undecided_on_disk.clone());
        let begun = self.write_turn();
        match &begun {
            Ok(_) => {}
            Err(error) if error.passes() => {
                self.turn.truncate(turn);
                self.undecided_on_disk = undecided;
                self.lack = Some(error.to_string());
            }
            Err(error) => self.poison = Some(error.to_string()),
        }
        begun.map(|sync| Some(Syncing(sync)))
    }

    /// Takes note that the turn is durable, or could not be made so.
    pub fn end_sync(&mut self, synced: Synced) -> Result<(), LogError> {
        let (place, total) = self.syncing.take().expect("a sync ends that has begun");
        let ended =
            synced.0.map_err(LogError::from).and_then(|()| self.turn_is_durable(place, total));
        if let Err(error) = &ended {
            self.poison = Some(error.to_string());
        }
        ended
    }

    /// Why there can be no next file now, if there cannot: what is left in the current one is for a turn
    /// that gives files back, no more.
    pub fn lack(&self) -> Option<&str> {
        self.lack.as_deref()
    }

    /// Tries again to make the next file. True when it is there.
    pub fn make_room(&mut self) -> Result<bool, LogError> {
        self.check_poison()?;
        if self.lack.is_some() {
            self.secure_next_file().inspect_err(|error| self.poison = Some(error.to_string()))?;
        }
        Ok(self.lack.is_none())
    }

    fn write_turn(&mut self) -> Result<FileSync, LogError> {
        for instance in std::mem::take(&mut self.undecided_on_disk) {
            let state = self.state.get_mut(instance);
            let stop_sign = u64::from(state.stop_sign.is_some());
            assert!(state.decided <= state.end() + stop_sign, "what is decided is in the log");
            let decided = Call::Decided(state.decided);
            self.encode(instance, &decided);
        }
        // Without a next file only the turn that may give files back comes here.
        let reserve = if self.lack.is_some() { 0 } else { RESERVE_BYTES };
        if self.active.offset + self.turn_bytes() + reserve > self.active.header.size {
            for (instance, base) in self.state.settled() {
                call::encode_base(&mut self.turn, instance, base);
            }
            self.check_turn()?;
            self.rotate(self.turn_bytes())?;
        }
        self.check_turn()?;
        let total = self.turn_bytes();
        let (file, offset) = (self.active.header.number, self.active.offset);
        let seed = self.active.header.checksum_seed();
        record::seal(&mut self.turn, seed, offset, self.next_sequence);
        self.repo.write(file, offset, &self.turn)?;
        let sync = self.repo.begin_sync(file)?;
        self.syncing = Some((Place { file, offset }, total));
        Ok(sync)
    }

    fn turn_is_durable(&mut self, place: Place, total: u64) -> Result<(), LogError> {
        self.syncs += 1;
        self.active.offset += total;
        self.next_sequence += 1;
        self.state.place(place);
        self.turn.truncate(RECORD_HEADER_BYTES);
        self.turn.shrink_to(KEPT_BUFFER_BYTES);
        self.turn_has_more = false;
        self.give_files_back()?;
        self.prepare_next_file()
    }

    /// Bytes of the record of this turn.
    fn turn_bytes(&self) -> u64 {
        self.turn.len().next_multiple_of(RECORD_ALIGNMENT) as u64
    }

    fn check_turn(&self) -> Result<(), LogError> {
        let bytes = self.turn_bytes();
        if bytes > MAX_RECORD_BYTES {
            return Err(LogError::TurnTooLarge { bytes, limit: MAX_RECORD_BYTES });
        }
        Ok(())
    }

    /// Removes the files in which no entry is kept. That entries were dropped is durable by now, and
    /// everything else that those files said stands at the head of the next one.
    fn give_files_back(&mut self) -> Result<(), LogError> {
        if !std::mem::take(&mut self.trimmed) {
            return Ok(());
        }
        let active = self.active.header.number;
        let keep = self.state.oldest_file().map_or(active, |oldest| oldest.min(active));
        while self.oldest < keep {
            self.repo.remove(self.oldest)?;
            self.oldest += 1;
        }
        Ok(())
    }

    /// Goes on in the next file, which will have room for `total` bytes.
    fn rotate(&mut self, total: u64) -> Result<(), LogError> {
        let number = self.active.header.number + 1;
        let least = HEADER_BYTES + total + RESERVE_BYTES;
        let size = self.settings.file_bytes.max(least);
        self.wait_for_next_file(number);
        let header = match self.spares.remove(&number) {
            Some(header) if header.size >= least => header,
            spare => {
                if spare.is_some() {
                    // It holds nothing, and takes room that may be lacking.
                    self.repo.remove(number)?;
                }
                self.create_file(number, size)?
            }
        };
        self.active = ActiveFile { header, offset: HEADER_BYTES };
        self.lack = None;
        Ok(())
    }

    /// Waits for a file that is being made ahead. One that could not be made is made again when it
    /// is needed, and it is that attempt that counts.
    fn wait_for_next_file(&mut self, number: u64) {
        let ahead = self.ahead.take();
        if self.repo.wait_created(number).unwrap_or(false) {
            self.spares.insert(number, ahead.expect("only begun files are waited for"));
        }
    }

    fn create_file(&mut self, number: u64, size: u64) -> Result<FileHeader, LogError> {
        let header = self.settings.header(number, size);
        match self.repo.create(number, size, &header.encode()) {
            Ok(()) => Ok(header),
            Err(RepoError::Full { .. }) => Err(LogError::NoRoom { file: number, bytes: size }),
            Err(RepoError::NoDescriptor { .. }) => Err(LogError::NoDescriptor { file: number }),
            Err(error) => Err(error.into()),
        }
    }

    /// Begins to make the next file once the active one is half full, so that no turn waits for it;
    /// and has it by the time when a quarter is left, so that a full disk is noticed while there is
    /// room for what may help.
    fn prepare_next_file(&mut self) -> Result<(), LogError> {
        let number = self.active.header.number + 1;
        let ActiveFile { header: FileHeader { size, .. }, offset } = self.active;
        if offset < size / 2 || self.spares.contains_key(&number) {
            return Ok(());
        }
        if offset >= size / 4 * 3 {
            return self.secure_next_file();
        }
        if self.ahead.is_none() {
            let header = self.settings.header(number, self.settings.file_bytes);
            self.repo.create_ahead(number, header.size, &header.encode());
            self.ahead = Some(header);
        }
        Ok(())
    }

    /// Has the next file, or notes why there can be none now.
    fn secure_next_file(&mut self) -> Result<(), LogError> {
        let number = self.active.header.number + 1;
        self.wait_for_next_file(number);
        if !self.spares.contains_key(&number) {
            match self.create_file(number, self.settings.file_bytes) {
                Ok(header) => {
                    self.spares.insert(number, header);
                }
                Err(error) if error.passes() => {
                    self.lack = Some(error.to_string());
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.lack = None;
        Ok(())
    }

    fn check_poison(&self) -> Result<(), LogError> {
        match &self.poison {
            Some(cause) => Err(LogError::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }
}
