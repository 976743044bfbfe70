//! What segments change in sessions: events. And the sessions' own records and replies.
//!
//! Invariant: `head` of a session is the sum of its own record whenever no method here runs.

use crate::{
    effect::Effect,
    limits::within,
    names::SessionId,
    outcome::{Outcome, Trap},
    planted::PlantedBug,
    state::{Event, StoredReply},
    sum::Sum,
    world::{World, undo::Undo},
};

impl World {
    /// Puts an event into a session's queue; the oldest make way. False when the session is over.
    pub(crate) fn notify(&mut self, id: SessionId, payload: Vec<u8>) -> Result<bool, Trap> {
        let limits = self.state.limits();
        within("event_bytes", limits.event_bytes, payload.len() as u64)?;
        let most = limits.events_per_session;
        let position = self.state.position();
        let told = self.state.with_session(id, |session| {
            let number = session.next_event;
            session.next_event += 1;
            let (epoch, step) = (position.epoch, position.step.0);
            let event = Event { number, epoch, step, payload: payload.clone() };
            let mut minus = Sum::default();
            let mut dropped = Vec::new();
            while session.events.len() as u64 >= most.max(1) {
                let oldest = session.events.pop_front().expect("it has at least one");
                minus += oldest.record(id);
                dropped.push(oldest);
            }
            let plus = event.record(id);
            session.events.push_back(event);
            ((number, dropped), minus, plus)
        });
        let Some((number, dropped)) = told else {
            return Ok(false);
        };
        self.refresh_session(id);
        self.record(Undo::Event { session: id, dropped });
        self.staged.push(Effect::Event { session: id, number, position, payload });
        Ok(true)
    }

    /// The inverse of [`World::notify`].
    pub(super) fn take_back_event(&mut self, id: SessionId, dropped: Vec<Event>) {
        let taken = self.state.with_session(id, |session| {
            let event = session.events.pop_back().expect("the event was pushed");
            session.next_event -= 1;
            assert_eq!(event.number, session.next_event, "events are taken back in reverse");
            let mut plus = Sum::default();
            for oldest in dropped.into_iter().rev() {
                plus += oldest.record(id);
                session.events.push_front(oldest);
            }
            ((), event.record(id), plus)
        });
        taken.expect("a segment ends no session");
        self.refresh_session(id);
    }

    /// Brings the sum of a session's own record up to date.
    fn refresh_session(&mut self, id: SessionId) {
        self.state.change_session(id, |_| {});
    }

    /// Ends a request: its reply is stored and goes out. Dropped when the session is over.
    pub(crate) fn reply(&mut self, id: SessionId, number: u64, outcome: Outcome) {
        let position = self.state.position();
        let told = self.state.with_session(id, |session| {
            session.open.remove(&number);
            let (epoch, step) = (position.epoch, position.step.0);
            let stored = StoredReply { epoch, step, outcome: outcome.clone() };
            let sum = stored.record(id, number);
            let twice = session.replies.insert(number, stored);
            assert!(twice.is_none(), "a request ends once");
            ((), Sum::default(), sum)
        });
        if told.is_none() {
            return;
        }
        self.staged.push(Effect::Reply { session: id, number, position, outcome });
        if self.planted.has(PlantedBug::ReplyNotKept) {
            let replies = vec![(number, number)];
            self.acknowledge(id, &crate::Acknowledged { replies, events: 0 });
        }
    }

    /// Forgets replies and events that the client has received.
    pub(crate) fn acknowledge(&mut self, id: SessionId, acknowledged: &crate::Acknowledged) {
        let fresh = self.state.with_session(id, |session| {
            let mut minus = Sum::default();
            for &(from, to) in acknowledged.replies.iter().filter(|(from, to)| from <= to) {
                while let Some((&number, _)) = session.replies.range(from..=to).next() {
                    let reply = session.replies.remove(&number).expect("it was just found");
                    minus += reply.record(id, number);
                }
            }
            let last = acknowledged.events.min(session.next_event - 1);
            let fresh = last > session.events_acknowledged;
            if fresh {
                session.events_acknowledged = last;
                while session.events.front().is_some_and(|event| event.number <= last) {
                    let event = session.events.pop_front().expect("it was just found");
                    minus += event.record(id);
                }
            }
            (fresh, minus, Sum::default())
        });
        if fresh == Some(true) {
            self.refresh_session(id);
        }
    }
}
