//! Signs of life of a session, and what their answers prove.
//!
//! Invariant: the session is held for safe only from the *sending* of a message that the cluster has
//! answered, never from the arrival of the answer, so that the client doubts before the cluster
//! expires.

use std::time::{Duration, Instant};

use gesmas_protocol::Alive;

/// The keep-alives of one session.
#[derive(Debug, Default)]
pub(super) struct KeepAlives {
    next: Option<Instant>,
    correlation: u64,
    unanswered: bool,
    sent_at: Option<Instant>,
    /// When the last message left that the cluster has answered.
    safe_since: Option<Instant>,
    doubtful: bool,
    /// How many were answered since the session was attached.
    answers: u64,
    /// Highest numbers that had been sent when the last and the last but one left.
    marks: (u64, u64),
}

impl KeepAlives {
    /// The session is attached: the first one is due.
    pub(super) const fn start(&mut self, now: Instant) {
        self.next = Some(now);
        self.answers = 0;
        self.marks = (0, 0);
    }

    /// The next one is due now. An answer to an older one no longer counts once it has left.
    pub(super) const fn hurry(&mut self, now: Instant) {
        self.next = Some(now);
        self.unanswered = false;
    }

    /// The session is no longer attached.
    pub(super) const fn stop(&mut self) {
        self.next = None;
        self.unanswered = false;
    }

    /// When the next one is due.
    pub(super) const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// A message leaves whose answer proves that the session lives.
    pub(super) const fn note_sending(&mut self, now: Instant) {
        self.sent_at = Some(now);
    }

    /// The last of these messages was answered.
    pub(super) const fn prove_safe(&mut self) {
        self.safe_since = self.sent_at;
    }

    /// One leaves; gives its correlation.
    pub(super) fn send(&mut self, now: Instant, interval: Duration, last_sent: u64) -> u64 {
        self.next = Some(now + interval);
        self.correlation += 1;
        self.unanswered = true;
        self.note_sending(now);
        self.marks = (last_sent, self.marks.0);
        self.correlation
    }

    /// One was answered; gives the number up to which requests had long been sent. None for an
    /// answer that is out of date.
    pub(super) fn answer(&mut self, alive: &Alive) -> Option<u64> {
        if !self.unanswered || alive.correlation != self.correlation {
            return None;
        }
        self.unanswered = false;
        self.answers += 1;
        self.prove_safe();
        Some(self.marks.1)
    }

    /// Whether the answers since the session was attached are 1, 2, 4, 8 …
    pub(super) const fn is_time_to_repeat(&self) -> bool {
        self.answers.is_power_of_two()
    }

    /// Whether the next one is due and the last one is not answered. Says so once.
    pub(super) fn is_unanswered(&mut self, now: Instant) -> bool {
        let due = self.next.is_some_and(|next| next <= now);
        due && std::mem::take(&mut self.unanswered)
    }

    /// When the session becomes doubtful if nothing is heard.
    pub(super) fn doubt_at(&self, timeout: Duration) -> Option<Instant> {
        self.safe_since.filter(|_| !self.doubtful).map(|since| since + timeout)
    }

    /// Whether the session has become doubtful, or stopped being so; none when nothing changed.
    pub(super) fn weigh(&mut self, now: Instant, timeout: Duration) -> Option<bool> {
        let doubtful = self.safe_since.is_some_and(|since| now >= since + timeout);
        let changed = doubtful != self.doubtful;
        self.doubtful = doubtful;
        changed.then_some(doubtful)
    }
}
