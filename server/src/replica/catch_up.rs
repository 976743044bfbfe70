//! Catch-up: a replica that is behind gets a snapshot, piece by piece, and one that is not gives it.
//!
//! ```text
//! peer is behind ─► Behind ─► it asks for pieces ─► Job::Read ─► Piece ─► Job::AddPiece ─► …
//!                  ─► Job::FinishFetch ─► install (`snapshots.rs`)
//! ```
//!
//! A fetch has one piece under way, and takes no more than its share of bytes in a tick, so that
//! nobody's heartbeats wait. Files travel as they are: a fetch goes on from another peer, or in the
//! next life of this replica, where it was. What is being fetched is kept, with the log after it,
//! until its fetcher falls silent; otherwise a slow fetcher would start over for ever.
//! Invariant: a replica that has diverged gives nobody anything.
//! Not here: when snapshots are taken, and what becomes of one that was fetched.

use bytes::Bytes;
use gesmas_machine::Engine;

use super::{
    Output, ReadId, Replica,
    peer::PeerMessage,
    snapshots::{Fetch, FetchStep},
};
use crate::snapshot::{Job, Reader};

/// A fetcher that asked for nothing for so many times the patience for an answer is forgotten.
const FETCHER_PATIENCE: u64 = 120;

/// Whoever makes a backup, among those that fetch: replicas are numbered from 1.
const BACKUP: u64 = 0;

/// After so many questions without an answer another peer's snapshot is fetched.
const UNANSWERED_MAX: u32 = 4;

impl<E: Engine> Replica<E> {
    /// A peer lacks entries that are gone from this log, or that do not fit into a frame.
    pub(super) fn peer_is_behind(&mut self, peer: u64) {
        if let Some(index) = self.snapshots.held.newest.filter(|_| !self.has_diverged()) {
            self.outgoing.push((peer, PeerMessage::Behind { index }));
        }
    }

    /// A peer whose log begins at `first` has no snapshot to begin with.
    pub(super) fn asked_snapshot(&mut self, from: u64, first: u64) {
        let newest = self.snapshots.held.newest.unwrap_or(0);
        if newest < first && first <= self.applied {
            self.snapshots.wanted = true;
        } else {
            self.peer_is_behind(from);
        }
    }

    /// A peer no longer has what is being fetched from it.
    pub(super) fn gone(&mut self, index: u64) {
        self.snapshots.fetch.take_if(|fetch| fetch.index == index);
    }

    /// What a tick brings: a new allowance, and questions again that got no answer.
    pub(super) fn snapshot_tick(&mut self) {
        let share = i64::try_from(self.settings.fetch_bytes).unwrap_or(i64::MAX);
        self.snapshots.allowance = self.snapshots.allowance.saturating_add(share).min(share);
        let patience = self.settings.resend_after;
        self.forget_fetchers();
        if let Some(fetch) = &mut self.snapshots.fetch {
            if let FetchStep::Asked(at) = fetch.step
                && self.now.monotonic.saturating_sub(at) > patience
            {
                fetch.step = FetchStep::Ask;
                fetch.unanswered += 1;
                if fetch.unanswered > UNANSWERED_MAX {
                    // Somebody else may have one.
                    self.snapshots.fetch = None;
                }
            }
        } else if self.snapshots.starving {
            let first = self.node.first_index();
            for peer in self.peers() {
                self.outgoing.push((peer, PeerMessage::AskSnapshot { first }));
            }
        }
        self.ask_piece();
    }

    /// Whoever has not asked for a piece for long does not fetch any more.
    pub(super) fn forget_fetchers(&mut self) {
        let patience = FETCHER_PATIENCE * self.settings.resend_after;
        let forgotten = self.now.monotonic.saturating_sub(patience);
        self.snapshots.fetchers.retain(|_, (_, asked)| *asked >= forgotten);
    }

    /// A peer has a snapshot of everything below `index`.
    pub(super) fn offered(&mut self, from: u64, index: u64) {
        let useful = if self.snapshots.starving {
            index >= self.node.first_index()
        } else {
            index > self.node.decided_index()
        };
        if !useful {
            return;
        }
        if let Some(fetch) = &mut self.snapshots.fetch {
            // One that is under way is not given up for a newer one: that would never end.
            if fetch.index == index && fetch.unanswered > 0 {
                fetch.from = from;
            }
            return;
        }
        tracing::info!(peer = from, index, "this replica is behind and fetches a snapshot");
        let step = FetchStep::Disk;
        self.snapshots.fetch =
            Some(Fetch { from, index, fetched: 0, total: None, step, unanswered: 0 });
        self.snapshots.jobs.push_back(Job::BeginFetch { index });
    }

    /// So much of a snapshot is here.
    pub(super) fn fetched(
        &mut self,
        index: u64,
        result: Result<u64, crate::snapshot::repo::RepoError>,
    ) {
        let Some(fetch) = self.snapshots.fetch.as_mut().filter(|fetch| fetch.index == index) else {
            return;
        };
        match result {
            Err(error) => {
                tracing::error!(%error, "a snapshot cannot be fetched");
                self.snapshots.fetch = None;
            }
            Ok(fetched) if fetch.total.is_some_and(|total| fetched >= total) => {
                self.snapshots.jobs.push_back(Job::FinishFetch { index });
            }
            Ok(fetched) => {
                fetch.fetched = fetched;
                fetch.step = FetchStep::Ask;
                self.ask_piece();
            }
        }
    }

    fn ask_piece(&mut self) {
        let Some(fetch) = &mut self.snapshots.fetch else {
            return;
        };
        if fetch.step != FetchStep::Ask || self.snapshots.allowance <= 0 {
            return;
        }
        fetch.step = FetchStep::Asked(self.now.monotonic);
        let ask = PeerMessage::AskPiece { index: fetch.index, offset: fetch.fetched };
        self.outgoing.push((fetch.from, ask));
    }

    /// A client makes a backup and asks for a piece: it comes as an output. What is read is kept while
    /// it is read; of two backups at once the one that asked last counts.
    pub fn read_piece(&mut self, id: ReadId, index: u64, offset: u64) {
        if self.has_diverged() {
            let result = Err("the replica's state is not the group's".into());
            return self.outputs.push_back(Output::Piece { id, result });
        }
        self.snapshots.fetchers.insert(BACKUP, (index, self.now.monotonic));
        let reader = Reader::Client(id.0);
        self.snapshots.jobs.push_back(Job::Read { reader, index, offset });
    }

    /// A peer asks for a piece. One is read for each at a time.
    pub(super) fn asked_piece(&mut self, peer: u64, index: u64, offset: u64) {
        self.snapshots.fetchers.insert(peer, (index, self.now.monotonic));
        if self.has_diverged() {
            self.outgoing.push((peer, PeerMessage::Gone { index }));
        } else if self.snapshots.reading.insert(peer) {
            let reader = Reader::Peer(peer);
            self.snapshots.jobs.push_back(Job::Read { reader, index, offset });
        }
    }

    pub(super) fn piece_read(
        &mut self,
        peer: u64,
        index: u64,
        offset: u64,
        result: Result<(Bytes, u64), crate::snapshot::repo::RepoError>,
    ) {
        self.snapshots.reading.remove(&peer);
        match result {
            Ok((bytes, total)) => {
                self.snapshots.counts.pieces += 1;
                let bytes = bytes.to_vec();
                self.outgoing.push((peer, PeerMessage::Piece { index, offset, total, bytes }));
            }
            Err(_) => {
                // It is gone: there is a newer one.
                self.snapshots.fetchers.remove(&peer);
                self.outgoing.push((peer, PeerMessage::Gone { index }));
                self.peer_is_behind(peer);
            }
        }
    }

    /// A piece came.
    pub(super) fn piece_came(&mut self, index: u64, offset: u64, total: u64, bytes: Vec<u8>) {
        let Some(fetch) = self.snapshots.fetch.as_mut().filter(|fetch| fetch.index == index) else {
            return;
        };
        if offset != fetch.fetched || !matches!(fetch.step, FetchStep::Asked(_)) {
            return;
        }
        if bytes.is_empty() && offset < total {
            // Whoever answers so has another file.
            self.snapshots.fetch = None;
            return;
        }
        fetch.total = Some(total);
        fetch.unanswered = 0;
        fetch.step = FetchStep::Disk;
        let length = i64::try_from(bytes.len()).expect("a piece is small");
        self.snapshots.allowance = self.snapshots.allowance.saturating_sub(length);
        self.snapshots.jobs.push_back(Job::AddPiece { index, offset, bytes: bytes.into() });
    }
}
