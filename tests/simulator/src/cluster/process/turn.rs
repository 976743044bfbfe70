//! A turn of a replica, as the product's driver does it, in one piece or in several.
//!
//! A turn that is closed may stay so for a while: its log is being made durable, and only what the core
//! takes meanwhile is taken from the inbox. A power cut then finds it half done.
//! Not here: what inputs mean (`process.rs`), and when turns come (`cluster`).

use std::collections::VecDeque;

use bytes::Bytes;
use gesmas::{
    log::{LogError, Syncing},
    paxos::{self, NodeError, SharedLog},
    replica::{Moment, ReplicaError},
};
use gesmas_machine::Progress;

use super::{Input, Process, Stop, Turn};
use crate::{checkers::History, prng::mix};

/// Inputs that are taken in one turn.
const TURN_INPUTS: usize = 64;
/// Entries that are read at once to compare them.
const COMPARED: usize = 64;

/// A turn that is closed.
pub(super) struct Closing {
    /// Whether it is to be opened again.
    closed: bool,
    /// What makes its log durable.
    syncing: Option<(SharedLog, Syncing)>,
    failed: Option<LogError>,
}

/// Puts frames on their connections.
fn sender<'a>(
    outgoing: &'a [Option<u64>],
    frames: &'a mut Vec<(u64, u64, Bytes)>,
) -> impl FnMut(u64, Bytes) + 'a {
    |peer, frame| {
        let at = usize::try_from(peer).expect("ids are small");
        if let Some(connection) = outgoing[at] {
            frames.push((peer, connection, frame));
        }
    }
}

impl Process {
    /// Does a turn. What it put out before it stopped has left, too.
    pub(in crate::cluster) fn turn(
        &mut self,
        now: Moment,
        history: &mut History,
        out: &mut Turn,
    ) -> Result<(), Stop> {
        self.replica.handle_time(now);
        let before = (self.replica.takeovers(), self.replica.transfers());
        let closing = match self.closing.take() {
            Some(closing) => {
                self.take_meanwhile(history, out)?;
                closing
            }
            None => {
                for _ in 0..TURN_INPUTS {
                    let Some(input) = self.inbox.pop_front() else { break };
                    self.handle(input, history, out)?;
                }
                self.replica.take_decided_early()?;
                self.close_turn(history, out)?
            }
        };
        // Counted here too, since the turn may not end now.
        out.takeovers = self.replica.takeovers() - before.0;
        out.transfers = self.replica.transfers() - before.1;
        if closing.syncing.is_some() && !self.disk_is_done(now) {
            self.closing = Some(closing);
            out.more = true;
            return Ok(());
        }
        self.open_turn(closing, history, out)?;
        let progress = self.work(history, true)?;
        self.go_on_with_trial();
        self.route(out);
        let closing = self.close_turn(history, out)?;
        self.open_turn(closing, history, out)?;
        out.reconnect = self.replica.take_reconnect();
        out.takeovers = self.replica.takeovers() - before.0;
        out.transfers = self.replica.transfers() - before.1;
        out.more = progress == Progress::More || !self.inbox.is_empty() || self.trial.is_some();
        out.trials = std::mem::take(&mut self.trials);
        Ok(())
    }

    /// Whether the log has become durable by now. Every fourth second the disk is slow, until faults
    /// stop: so slow that a heartbeat may be missed and the lead change.
    fn disk_is_done(&self, now: Moment) -> bool {
        let second = now.monotonic / 1_000_000_000;
        let is_slow = self.faulty && mix(second ^ self.id).is_multiple_of(4);
        mix(now.monotonic ^ self.id).is_multiple_of(if is_slow { 5 } else { 2 })
    }

    /// Whether its log is being made durable, so that it takes nothing from anybody but peers.
    pub(in crate::cluster) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// As the shell does: the machine works while the log is made durable.
    fn close_turn(&mut self, history: &mut History, out: &mut Turn) -> Result<Closing, Stop> {
        let closed = self.replica.close_turn(&mut sender(&self.outgoing, &mut out.frames))?;
        let unsynced = self.replica.unsynced_log().filter(|_| closed);
        if unsynced.is_none() || !self.replica.machine().is_idle() {
            self.work(history, false)?;
            self.route(out);
        }
        let mut closing = Closing { closed, syncing: None, failed: None };
        if let Some(log) = unsynced {
            match paxos::begin_sync(&log) {
                Ok(syncing) => closing.syncing = syncing.map(|syncing| (log, syncing)),
                Err(error) => closing.failed = Some(error),
            }
        }
        Ok(closing)
    }

    fn open_turn(
        &mut self,
        closing: Closing,
        history: &mut History,
        out: &mut Turn,
    ) -> Result<(), Stop> {
        let Closing { closed, syncing, failed } = closing;
        let failed = failed.map_or(Ok(()), Err);
        let synced = syncing.map_or(failed, |(log, syncing)| paxos::end_sync(&log, syncing.run()));
        if closed {
            self.replica.open_turn(synced, &mut sender(&self.outgoing, &mut out.frames))?;
        }
        while let Some(job) = self.replica.poll_job() {
            out.jobs.push(job);
        }
        self.compared = self.compared.max(self.replica.node().first_index());
        loop {
            let entries = self
                .replica
                .node()
                .read_decided(self.compared, COMPARED, u64::MAX)
                .map_err(|error: NodeError| ReplicaError::from(error))?;
            if entries.is_empty() {
                return Ok(());
            }
            for (index, entry) in entries {
                history.decided(self.id, index, &entry)?;
                self.compared = index + 1;
            }
        }
    }

    /// As the shell does: takes from the inbox what can be taken while the log is made durable.
    fn take_meanwhile(&mut self, history: &mut History, out: &mut Turn) -> Result<(), Stop> {
        let mut settled = 0;
        let mut later: VecDeque<Input> = VecDeque::new();
        for input in std::mem::take(&mut self.inbox) {
            let taken = match &input {
                Input::Peer { peer, connection, frame } => {
                    let overtakes = later.iter().any(|other| match other {
                        Input::Client(..) | Input::Tick => false,
                        Input::Peer { peer: other, .. } => other == peer,
                        _ => true,
                    });
                    let index = usize::try_from(*peer).expect("ids are small");
                    let current = self.incoming[index] == *connection;
                    let mut sender = sender(&self.outgoing, &mut out.frames);
                    current
                        && !overtakes
                        && self.replica.handle_meanwhile(*peer, frame, &mut sender)?
                }
                _ => false,
            };
            settled += u64::from(taken);
            if !taken {
                later.push_back(input);
            }
        }
        self.inbox = later;
        if settled > 0 {
            out.settled += settled;
            self.work(history, false)?;
            self.route(out);
        }
        Ok(())
    }
}
