//! Signs of life of a session, and what their answers prove.
//!
//! The rule, in all clients: a session is held for safe until its timeout has passed since
//! - the *first* attempt to open it left, if nobody can have opened it before, or
//! - a keep-alive left that was answered, whichever is later.
//!
//! Nothing else proves anything. In particular an opening that is sent again does not: the cluster counts
//! from the first copy that it saw, and does not hear a session by another one. Nor does an attachment,
//! nor the reply to a request.
//! Invariant: the session is held for safe only from the *sending* of a message that the cluster has
//! answered, never from the arrival of the answer nor from the sending of another message, so that
//! the client doubts before the cluster expires.

use std::time::Duration;

use gesmas_protocol::Alive;

use crate::clock::Moment;

/// The keep-alives of one session.
#[derive(Debug)]
pub(super) struct KeepAlives {
    next: Option<Moment>,
    correlation: u64,
    unanswered: bool,
    /// When the keep-alive of this correlation left.
    sent_at: Moment,
    /// Whether nobody can have opened the session before.
    fresh: bool,
    /// When the first attempt to open it left.
    opening_at: Option<Moment>,
    /// When the last message left whose answer has proved that the session lives.
    safe_since: Option<Moment>,
    /// It is open, and nothing says since when.
    unproven: bool,
    doubtful: bool,
    /// How many were answered since the session was attached.
    answers: u64,
    /// Highest numbers that had been sent when the last and the last but one left.
    marks: (u64, u64),
}

impl KeepAlives {
    /// Those of a session that nobody can have opened before, or perhaps somebody has.
    pub(super) const fn new(fresh: bool) -> Self {
        Self {
            next: None,
            correlation: 0,
            unanswered: false,
            sent_at: Moment::at(0),
            fresh,
            opening_at: None,
            safe_since: None,
            unproven: false,
            doubtful: false,
            answers: 0,
            marks: (0, 0),
        }
    }

    /// The session is attached: the first one is due.
    pub(super) const fn start(&mut self, now: Moment) {
        self.next = Some(now);
        self.answers = 0;
        self.marks = (0, 0);
    }

    /// The next one is due now. An answer to an older one no longer counts once it has left.
    pub(super) const fn hurry(&mut self, now: Moment) {
        self.next = Some(now);
        self.unanswered = false;
    }

    /// The session is no longer attached.
    pub(super) const fn stop(&mut self) {
        self.next = None;
        self.unanswered = false;
    }

    /// When the next one is due.
    pub(super) const fn next(&self) -> Option<Moment> {
        self.next
    }

    /// An attempt to open the session leaves.
    pub(super) fn opening(&mut self, now: Moment) {
        self.opening_at.get_or_insert(now);
    }

    /// One of the attempts was answered; nobody knows which.
    pub(super) fn opened(&mut self) {
        if self.fresh {
            self.safe_since = self.safe_since.max(self.opening_at);
        }
        self.unproven = self.safe_since.is_none();
    }

    /// One leaves; gives its correlation.
    pub(super) fn send(&mut self, now: Moment, interval: Duration, last_sent: u64) -> u64 {
        self.next = Some(now + interval);
        self.correlation += 1;
        self.unanswered = true;
        self.sent_at = now;
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
        self.safe_since = self.safe_since.max(Some(self.sent_at));
        self.unproven = false;
        Some(self.marks.1)
    }

    /// Whether the answers since the session was attached are 1, 2, 4, 8 …
    pub(super) const fn is_time_to_repeat(&self) -> bool {
        self.answers.is_power_of_two()
    }

    /// Whether the next one is due and the last one is not answered. Says so once.
    pub(super) fn is_unanswered(&mut self, now: Moment) -> bool {
        let due = self.next.is_some_and(|next| next <= now);
        due && std::mem::take(&mut self.unanswered)
    }

    /// Until when the session is held for safe; the first moment of all when nothing says so.
    pub(super) fn safe_until(&self, timeout: Duration) -> Moment {
        self.safe_since.map_or_else(Moment::default, |since| since + timeout)
    }

    /// When the session becomes doubtful if nothing is heard.
    pub(super) fn doubt_at(&self, timeout: Duration) -> Option<Moment> {
        self.safe_since.filter(|_| !self.doubtful).map(|since| since + timeout)
    }

    /// Whether the session has become doubtful, or stopped being so; none when nothing changed.
    pub(super) fn weigh(&mut self, now: Moment, timeout: Duration) -> Option<bool> {
        let passed = self.safe_since.is_some_and(|since| now >= since + timeout);
        let doubtful = passed || self.unproven;
        let changed = doubtful != self.doubtful;
        self.doubtful = doubtful;
        changed.then_some(doubtful)
    }
}
