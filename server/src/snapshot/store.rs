//! The snapshots of one replica: writing, finding the newest good one, giving and taking pieces.

use gesmas_machine::Snapshot;

use super::{
    SnapshotError,
    file::{self, FileWriter},
    head::{HEAD_BYTES, Head, Owner},
    repo::{Aside, Repo, RepoError, Stage},
};

/// Bytes of a file that travel to a peer in one piece.
pub const PIECE_BYTES: u64 = 1 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 8 << 20;
/// Files of evidence that are kept; no more are written, so that a divergence that comes again and again
/// does not fill the disk.
const EVIDENCE_MOST: usize = 8;
/// After so many bytes the writer makes them durable, so that the system never has much to write at
/// once while the log waits for its own sync.
const SYNC_BYTES: u64 = 4 << 20;

/// A snapshot that was read and checked.
#[derive(Debug)]
pub struct Loaded {
    /// What it is of.
    pub head: Head,
    /// The state.
    pub snapshot: Snapshot,
    /// Bytes of its file.
    pub bytes: u64,
}

/// See the file's head.
pub struct Store {
    repo: Box<dyn Repo>,
    owner: Owner,
    piece_bytes: u64,
}

impl Store {
    /// The snapshots of `owner` in a folder.
    #[must_use]
    pub fn new(repo: Box<dyn Repo>, owner: Owner) -> Self {
        Self { repo, owner, piece_bytes: PIECE_BYTES }
    }

    /// The same, with pieces of another size.
    #[must_use]
    pub fn with_pieces_of(self, piece_bytes: u64) -> Self {
        Self { piece_bytes, ..self }
    }

    /// Indices of the whole snapshots, in rising order.
    ///
    /// # Errors
    /// When the folder fails.
    pub fn list(&mut self) -> Result<Vec<u64>, RepoError> {
        self.repo.list(Stage::Whole)
    }

    /// Length of the file of a whole snapshot, bytes.
    ///
    /// # Errors
    /// When there is no such snapshot.
    pub fn length(&mut self, index: u64) -> Result<u64, RepoError> {
        self.repo.length(Stage::Whole, index)
    }

    /// Writes a snapshot of everything below `index`, and says how many bytes its file has.
    ///
    /// # Errors
    /// When the folder fails; nothing is left of the file then.
    pub fn write(&mut self, index: u64, snapshot: &Snapshot) -> Result<(Head, u64), SnapshotError> {
        let head = Head::new(self.owner, index, snapshot);
        let bytes = self.write_stage(Stage::Writing, &head, snapshot)?;
        Ok((head, bytes))
    }

    /// Writes the state after a step for whoever looks into a divergence. False when there is enough
    /// evidence.
    ///
    /// # Errors
    /// When the folder fails; nothing is left of the file then.
    pub fn write_evidence(&mut self, step: u64, state: &Snapshot) -> Result<bool, SnapshotError> {
        let there = self.repo.list(Stage::Evidence)?;
        if there.len() >= EVIDENCE_MOST && !there.contains(&step) {
            return Ok(false);
        }
        // A state in the middle of an entry has no index: the step stands for it.
        self.write_stage(Stage::Evidence, &Head::new(self.owner, step, state), state)?;
        Ok(true)
    }

    /// Takes the snapshots of `step` and later ones out of the way: their states may not be the
    /// group's. With `leave_one`, the oldest of them stays should nothing else be left.
    ///
    /// # Errors
    /// When the folder fails.
    pub fn set_aside_after(&mut self, step: u64, leave_one: bool) -> Result<(), SnapshotError> {
        let all = self.list()?;
        let spared = all.first().copied().filter(|_| leave_one);
        for index in all {
            let mut bytes = [0; HEAD_BYTES];
            self.repo.read(Stage::Whole, index, 0, &mut bytes)?;
            // One whose head is damaged is found when it is loaded.
            let later = Head::decode(&bytes, index).is_ok_and(|head| head.step >= step);
            if later && spared != Some(index) {
                self.repo.set_aside(index, Aside::Diverged)?;
            }
        }
        Ok(())
    }

    fn write_stage(
        &mut self,
        stage: Stage,
        head: &Head,
        snapshot: &Snapshot,
    ) -> Result<u64, SnapshotError> {
        let written = self.write_file(stage, head, snapshot);
        written.map_err(|error| {
            // Should this fail as well, the next start removes it.
            let _left = self.repo.remove(stage, head.index);
            error.into()
        })
    }

    fn write_file(
        &mut self,
        stage: Stage,
        head: &Head,
        snapshot: &Snapshot,
    ) -> Result<u64, RepoError> {
        let repo = &mut self.repo;
        repo.begin(stage, head.index)?;
        let (mut bytes, mut loose) = (0, 0);
        let mut sink = |piece: &[u8]| {
            repo.append(stage, head.index, piece)?;
            bytes += piece.len() as u64;
            loose += piece.len() as u64;
            if loose >= SYNC_BYTES {
                repo.sync(stage, head.index)?;
                loose = 0;
            }
            Ok(())
        };
        let mut writer = FileWriter::begin(head, &mut sink)?;
        snapshot.write(&mut |piece| writer.write(piece))?;
        writer.end()?;
        self.repo.finish(stage, head.index)?;
        Ok(bytes)
    }

    /// Reads and checks a snapshot.
    ///
    /// # Errors
    /// When it cannot be trusted.
    pub fn load(&mut self, index: u64) -> Result<Loaded, SnapshotError> {
        self.load_stage(Stage::Whole, index)
    }

    fn load_stage(&mut self, stage: Stage, index: u64) -> Result<Loaded, SnapshotError> {
        let bytes = self.repo.length(stage, index)?;
        let mut whole = vec![0; usize::try_from(bytes).expect("a state fits into memory")];
        let mut offset = 0;
        for part in whole.chunks_mut(READ_BYTES) {
            self.repo.read(stage, index, offset, part)?;
            offset += part.len() as u64;
        }
        let (head, image) = file::decode(&whole, index)?;
        drop(whole);
        head.check_owner(self.owner)?;
        let snapshot =
            Snapshot::read(&image).map_err(|error| SnapshotError::Image { index, error })?;
        if Head::new(self.owner, index, &snapshot) != head {
            let reason = "its head is not that of its state";
            return Err(SnapshotError::Damaged { index, offset: 0, reason });
        }
        Ok(Loaded { head, snapshot, bytes })
    }

    /// The newest snapshot that is good, and why newer ones are not. Those whose bytes are damaged are
    /// set aside: a replica that lacks one gets it from its peers.
    ///
    /// # Errors
    /// When the folder fails, or a snapshot is not this replica's to judge: of another version, of
    /// another owner, or not readable now.
    pub fn newest(&mut self) -> Result<(Option<Loaded>, Vec<SnapshotError>), SnapshotError> {
        for index in self.repo.list(Stage::Writing)? {
            self.repo.remove(Stage::Writing, index)?;
        }
        let mut refused = Vec::new();
        for index in self.list()?.into_iter().rev() {
            match self.load(index) {
                Ok(loaded) => return Ok((Some(loaded), refused)),
                Err(error) if error.is_damage() => {
                    self.repo.set_aside(index, Aside::Damaged)?;
                    refused.push(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok((None, refused))
    }

    /// Removes the snapshots of less than `index`.
    ///
    /// # Errors
    /// When the folder fails.
    pub fn remove_before(&mut self, index: u64) -> Result<(), RepoError> {
        for old in self.list()?.into_iter().filter(|old| *old < index) {
            self.repo.remove(Stage::Whole, old)?;
        }
        Ok(())
    }

    /// A piece of the file of a snapshot, and the length of all of it.
    ///
    /// # Errors
    /// When there is no such snapshot or piece.
    pub fn piece(&mut self, index: u64, offset: u64) -> Result<(Vec<u8>, u64), RepoError> {
        let total = self.repo.length(Stage::Whole, index)?;
        let length = total.saturating_sub(offset).min(self.piece_bytes);
        let mut bytes = vec![0; usize::try_from(length).expect("a piece is small")];
        self.repo.read(Stage::Whole, index, offset, &mut bytes)?;
        Ok((bytes, total))
    }

    /// How much of a snapshot has been fetched already. What was fetched of others is dropped.
    ///
    /// # Errors
    /// When the folder fails.
    pub fn begin_fetch(&mut self, index: u64) -> Result<u64, RepoError> {
        let mut fetched = None;
        for old in self.repo.list(Stage::Fetching)? {
            if old == index {
                fetched = Some(self.repo.length(Stage::Fetching, index)?);
            } else {
                self.repo.remove(Stage::Fetching, old)?;
            }
        }
        if fetched.is_none() {
            self.repo.begin(Stage::Fetching, index)?;
        }
        Ok(fetched.unwrap_or(0))
    }

    /// Adds a piece to what was fetched, durably, and says how much that is. A piece that belongs
    /// elsewhere changes nothing.
    ///
    /// # Errors
    /// When the folder fails.
    pub fn add_piece(&mut self, index: u64, offset: u64, bytes: &[u8]) -> Result<u64, RepoError> {
        let length = self.repo.length(Stage::Fetching, index)?;
        if length != offset {
            return Ok(length);
        }
        self.repo.append(Stage::Fetching, index, bytes)?;
        self.repo.sync(Stage::Fetching, index)?;
        Ok(length + bytes.len() as u64)
    }

    /// Checks what was fetched and makes it a whole snapshot. What is damaged is dropped; what cannot
    /// be read just now stays.
    ///
    /// # Errors
    /// When it cannot be trusted, or the folder fails.
    pub fn finish_fetch(&mut self, index: u64) -> Result<Loaded, SnapshotError> {
        match self.load_stage(Stage::Fetching, index) {
            Ok(loaded) => {
                self.repo.finish(Stage::Fetching, index)?;
                // The log will begin where this one ends: older ones are of no use any more.
                self.remove_before(index)?;
                Ok(loaded)
            }
            // What was fetched is as good as it was, and is checked again.
            Err(error) if error.passes() => Err(error),
            Err(error) => {
                self.repo.remove(Stage::Fetching, index)?;
                Err(error)
            }
        }
    }
}
