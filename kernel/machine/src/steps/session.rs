//! Sessions open and end.
//!
//! The end is one step, which may be long and runs in slices: the session is over when it begins; its
//! waiters leave their queues, detached calls apart; their clean-ups run in request order; its permits go to
//! the next, newest first; its watchers start in order of registration; then the ready list drains, once.

use std::sync::Arc;

use crate::{
    command::Place,
    effect::{Effect, SessionEnd},
    engine::Engine,
    limits::within,
    machine::Machine,
    names::{InvocationId, SessionId},
    outcome::{CallError, CancelReason, Refusal},
    planted::PlantedBug,
    state::{AlarmAction, Open, Session},
    steps::{Call, Task},
};

impl<E: Engine> Machine<E> {
    pub(super) fn open_session(&mut self, nonce: u128, principal: String, timeout: u64) {
        let session = self.find_or_open(nonce, principal, timeout);
        self.world.staged.push(Effect::SessionOpened { nonce, session });
    }

    fn find_or_open(
        &mut self,
        nonce: u128,
        principal: String,
        timeout: u64,
    ) -> Result<SessionId, Refusal> {
        let state = &mut self.world.state;
        if let Some(id) = state.nonces.get(&nonce) {
            // Who guesses another's nonce gets no session of theirs.
            let own = *state.sessions[id].principal == *principal;
            return if own { Ok(*id) } else { Err(Refusal::SessionUnknown) };
        }
        let limits = state.limits();
        within("sessions", limits.sessions, state.sessions.len() as u64 + 1)
            .and_then(|()| {
                within("principal_bytes", limits.principal_bytes, principal.len() as u64)
            })
            .and_then(|()| within("session_timeout", limits.session_timeout, timeout))
            .map_err(Refusal::Limit)?;
        let id = state.next.take_session();
        let session = Session::new(id, nonce, principal.into(), timeout);
        state.total += session.sum;
        state.nonces.insert(nonce, id);
        state.sessions.insert(id, Arc::new(session));
        Ok(id)
    }

    /// Ends a session; one that is over already stays so.
    pub(super) fn end_session(&mut self, id: SessionId, reason: SessionEnd) {
        let Some(session) = self.world.state.sessions.remove(&id) else {
            return;
        };
        let session = Arc::unwrap_or_clone(session);
        self.world.state.total -= session.sum;
        self.world.state.nonces.remove(&session.nonce);
        self.world.staged.push(Effect::SessionOver { session: id, reason });

        let mut waiters: Vec<_> = session.lent.into_iter().collect();
        for (number, open) in session.open {
            match open {
                Open::Invocation(waiter) => waiters.push(waiter),
                Open::PutClass => self.forget_put(Place { session: id, number, previous: 0 }),
            }
        }
        // Invocations are numbered as requests are admitted, whichever session they came through.
        waiters.sort_unstable();
        if self.world.planted.has(PlantedBug::HashMapOrder) {
            waiters.sort_by_key(|waiter| self.world.planted.disordered(waiter.0));
        }
        for waiter in waiters {
            if self.is_cancellable(waiter) {
                self.leave_for_cleanup(waiter, CancelReason::SessionOver);
                self.agenda.push_back(Task::CleanUp(waiter));
            }
        }
        let permits = session.permits.iter().rev().copied().map(Task::Release);
        self.agenda.extend(permits);
        self.agenda.extend(session.watches.into_iter().map(Task::Ring));
    }

    /// An operator ends another session. The reply goes first: the end's own effects follow it.
    pub(super) fn kill_session(&mut self, place: Place, session: SessionId) {
        let lives = self.world.state.sessions.contains_key(&session);
        let outcome = if lives { Ok(Vec::new()) } else { Err(CallError::SessionUnknown) };
        self.world.reply(place.session, place.number, outcome);
        self.end_session(session, SessionEnd::Killed);
    }

    fn is_cancellable(&self, id: InvocationId) -> bool {
        !self.world.state.invocations[&id].detached
    }

    /// Runs the handler of a timer or watch.
    pub(super) fn ring(&mut self, id: crate::names::AlarmId, alarm: crate::state::Alarm) {
        let AlarmAction::Handler { handler, arguments, .. } = alarm.action else {
            panic!("only timers and watches have handlers");
        };
        let call = Call { object: alarm.object, method: handler, signature: 0, arguments };
        self.run_handler(id, call);
    }
}
