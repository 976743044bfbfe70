//! Events of a session on their way to whoever consumes them.
//!
//! Invariant: the queue is bounded; when it is full the oldest events make way and a gap stands in
//! their place, as in the cluster itself. An event is acknowledged when the next one is asked for,
//! so one that was being handled when the process died is sent again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

use crate::{
    command::{Command, Commands},
    session::core::SessionEvent,
};

/// As many as the cluster keeps for a session by default, and the gap before them; more would not be
/// complete anyway.
const EVENTS_MAX: usize = 1_001;

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<SessionEvent>,
    over: bool,
}

/// The queue between the hub and the consumer.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    waiting: Mutex<Waiting>,
    arrival: Notify,
}

const fn numbers(event: &SessionEvent) -> (u64, u64) {
    match *event {
        SessionEvent::Event { number, .. } => (number, number),
        SessionEvent::Gap { from, to } => (from, to),
    }
}

impl Waiting {
    fn push(&mut self, event: SessionEvent) {
        if self.events.len() == EVENTS_MAX {
            let first = self.events.pop_front().expect("a full queue has a first event");
            let second = self.events.pop_front().expect("a full queue has a second event");
            let gap = SessionEvent::Gap { from: numbers(&first).0, to: numbers(&second).1 };
            self.events.push_front(gap);
        }
        self.events.push_back(event);
    }
}

impl EventQueue {
    pub(crate) fn push(&self, event: SessionEvent) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        self.arrival.notify_one();
    }

    /// The session is over: after what is there, nothing comes.
    pub(crate) fn end(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.arrival.notify_one();
    }

    fn pop(&self) -> Option<Option<SessionEvent>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.events.pop_front() {
            Some(event) => Some(Some(event)),
            None if waiting.over => Some(None),
            None => None,
        }
    }
}

/// The events of a session, in order.
#[derive(Debug)]
pub struct Events {
    pub(crate) queue: Arc<EventQueue>,
    pub(crate) commands: Commands,
    pub(crate) session: u64,
    pub(crate) handed_out: u64,
    /// Whether asking for the next event says that the one before was consumed.
    pub(crate) acknowledges: bool,
}

impl Events {
    /// The next event or gap; none when the session is over. Acknowledges the one before, unless the
    /// events are those of an [`Attachment`](crate::Attachment), which says so itself.
    /// Cancel safe: an event is lost by no dropped future.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        if self.handed_out > 0 && self.acknowledges {
            self.commands.send(Command::EventsConsumed {
                session: self.session,
                number: std::mem::take(&mut self.handed_out),
            });
        }
        loop {
            let arrival = self.queue.arrival.notified();
            if let Some(event) = self.queue.pop() {
                self.handed_out = event.as_ref().map_or(0, |event| numbers(event).1);
                return event;
            }
            arrival.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use gesmas_protocol::{Bytes, Position};

    use super::*;

    #[test]
    fn a_full_queue_says_what_is_gone() {
        let mut waiting = Waiting::default();
        let last = EVENTS_MAX as u64 + 2;
        for number in 1..=last {
            let position = Position::default();
            waiting.push(SessionEvent::Event { number, position, payload: Bytes::new() });
        }
        assert_eq!(waiting.events.len(), EVENTS_MAX);
        assert_eq!(waiting.events[0], SessionEvent::Gap { from: 1, to: 3 });
        assert_eq!(numbers(&waiting.events[1]), (4, 4));
        assert_eq!(numbers(&waiting.events[EVENTS_MAX - 1]), (last, last));
    }
}
