//! Links between replicas: one for each direction, in which frames keep their order.
//!
//! A link has at most one connection. When it breaks, what is in flight loses a suffix; frames that
//! are sent meanwhile are lost. A new connection is announced to the receiver before anything of it
//! arrives, and to the sender before it sends. This is what the transport promises to the core.
//! Not here: when links break; messages of clients.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::prng::Prng;

/// Frames that wait on a link that stands still; one more breaks the connection.
const CAPACITY: usize = 2_000;

/// Something on its way.
#[derive(Clone, Debug)]
pub(crate) enum Flight {
    /// A connection begins.
    Connected(u64),
    /// A frame of a connection.
    Frame(u64, Bytes),
}

/// A link in one direction.
#[derive(Debug, Default)]
pub(crate) struct Link {
    connection: Option<u64>,
    queue: VecDeque<(u64, Flight)>,
    last_arrival: u64,
    /// Nothing arrives until it is cleared.
    pub(crate) held: bool,
    /// No connection can be made.
    pub(crate) forbidden: bool,
    /// A delivery is scheduled.
    pub(crate) scheduled: bool,
    /// The sender knows that nobody listens.
    told: bool,
}

impl Link {
    /// Whether a connection stands.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Begins a connection.
    pub(crate) fn connect(&mut self, connection: u64, arrival: u64) {
        self.connection = Some(connection);
        self.told = false;
        self.push(arrival, Flight::Connected(connection));
    }

    /// Nobody listens there. True when the sender does not know yet: it hears so once after each
    /// connection.
    pub(crate) fn refuse(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }

    /// Sends a frame on a connection; it is lost when that does not stand any more.
    pub(crate) fn send(&mut self, connection: u64, frame: Bytes, arrival: u64) {
        if self.connection != Some(connection) {
            return;
        }
        if self.queue.len() >= CAPACITY {
            self.connection = None;
            return;
        }
        self.push(arrival, Flight::Frame(connection, frame));
    }

    fn push(&mut self, arrival: u64, flight: Flight) {
        self.last_arrival = self.last_arrival.max(arrival);
        self.queue.push_back((self.last_arrival, flight));
    }

    /// Swaps the last two frames: a planted fault.
    pub(crate) fn overtake(&mut self) {
        let length = self.queue.len();
        let is_frame =
            |entry: Option<&(u64, Flight)>| matches!(entry, Some((_, Flight::Frame(..))));
        if length >= 2 && is_frame(self.queue.get(length - 2)) && is_frame(self.queue.back()) {
            let (first, second) = (self.queue[length - 2].0, self.queue[length - 1].0);
            self.queue.swap(length - 2, length - 1);
            self.queue[length - 2].0 = first;
            self.queue[length - 1].0 = second;
        }
    }

    /// The connection breaks: what is in flight loses a suffix.
    pub(crate) fn break_off(&mut self, prng: &mut Prng) {
        self.connection = None;
        self.told = false;
        let kept = prng.index(self.queue.len() + 1);
        self.queue.truncate(kept);
    }

    /// The receiver is gone, and everything with it.
    pub(crate) fn clear(&mut self) {
        self.connection = None;
        self.queue.clear();
    }

    /// When the next arrives, if it may.
    pub(crate) fn next_arrival(&self) -> Option<u64> {
        if self.held { None } else { self.queue.front().map(|(arrival, _)| *arrival) }
    }

    /// Takes what has arrived by now.
    pub(crate) fn take(&mut self, now: u64) -> Option<Flight> {
        if self.next_arrival()? > now {
            return None;
        }
        self.queue.pop_front().map(|(_, flight)| flight)
    }
}
