//! What segments change in sessions: events. And the sessions' own records and replies.
//!
//! Invariant: `head` of a session is the sum of its own record whenever no method here runs.

use crate::{
    command::Acknowledged,
    effect::Effect,
    limits::within,
    names::SessionId,
    outcome::{Outcome, Trap},
    planted::PlantedBug,
    state::{Event, Session, StoredReply},
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
            let (epoch, step, sum) = (position.epoch, position.step.0, Sum::default());
            let mut stored = StoredReply { epoch, step, outcome: outcome.clone(), sum };
            stored.sum = stored.record(id, number);
            let sum = stored.sum;
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
            self.acknowledge(id, &Acknowledged { replies, events: 0 });
        }
    }

    /// Forgets replies and events that the client has received.
    pub(crate) fn acknowledge(&mut self, id: SessionId, acknowledged: &Acknowledged) {
        self.state.with_session(id, |session| {
            let (mut minus, mut plus) = (Sum::default(), Sum::default());
            if session.forget(id, acknowledged, &mut minus) {
                let (old, new) = session.refresh(id);
                minus += old;
                plus = new;
            }
            ((), minus, plus)
        });
    }
}

impl Session {
    /// Number of the first stored reply in a range.
    fn first_reply(&self, from: u64, to: u64) -> Option<u64> {
        let &(oldest, _) = self.replies.get_min()?;
        if oldest < from {
            // A client that is told out of order keeps a gap; most acknowledge the oldest.
            return self.replies.range(from..=to).next().map(|(number, _)| *number);
        }
        (oldest <= to).then_some(oldest)
    }

    /// Forgets replies and events that the client has received, and adds their sums to `minus`. True
    /// when its own record has changed by that.
    pub(crate) fn forget(
        &mut self,
        id: SessionId,
        acknowledged: &Acknowledged,
        minus: &mut Sum,
    ) -> bool {
        for &(from, to) in acknowledged.replies.iter().filter(|(from, to)| from <= to) {
            while let Some(number) = self.first_reply(from, to) {
                let reply = self.replies.remove(&number).expect("it was just found");
                *minus += reply.sum;
            }
        }
        let last = acknowledged.events.min(self.next_event - 1);
        if last <= self.events_acknowledged {
            return false;
        }
        self.events_acknowledged = last;
        while self.events.front().is_some_and(|event| event.number <= last) {
            let event = self.events.pop_front().expect("it was just found");
            *minus += event.record(id);
        }
        true
    }
}
