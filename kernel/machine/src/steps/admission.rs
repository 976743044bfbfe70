//! Admission: exactly once, in the order in which the client made its requests.
//!
//! A request names the one before it, and is admitted only if that is the last one admitted. So
//! pipelined requests start in their order, through whatever replicas they travel; a request that
//! comes again attaches to its invocation, or gets its stored reply.
//! Invariant: a request that is refused changes nothing; one that is admitted gets one reply.

use std::sync::Arc;

use crate::{
    code::CodeHash,
    command::{Acknowledged, Place, Request, RequestBody},
    effect::Effect,
    engine::Engine,
    limits::{Limits, within},
    machine::Machine,
    outcome::{CallError, LimitExceeded, Refusal},
    planted::{Planted, PlantedBug},
    state::{Class, ClassStatus, Session, State},
    sum::Sum,
};

/// What a place says about a request.
pub(crate) enum Standing {
    /// It is the next one.
    Next,
    /// It was admitted and has not ended.
    Open,
    /// It was admitted and has ended; its reply is stored.
    Answered,
    /// It cannot be admitted.
    Refused(Refusal),
}

impl<E: Engine> Machine<E> {
    pub(super) fn request(&mut self, request: Request) {
        let place = request.place;
        match self.admit_if_next(&request) {
            Standing::Next => {}
            Standing::Answered => {
                self.statistics.duplicates += 1;
                return self.send_again(place);
            }
            Standing::Open => {
                self.statistics.duplicates += 1;
                return;
            }
            Standing::Refused(refusal) => return self.refuse(place.session, place.number, refusal),
        }
        if let Err(limit) = request.body.check(self.world.state.limits()) {
            return self.world.reply(place.session, place.number, Err(CallError::Limit(limit)));
        }
        match request.body {
            RequestBody::Call { object, method, signature, arguments, on_behalf } => {
                let call = super::call::Call { object, method, signature, arguments };
                self.call(place, request.time_left, on_behalf, call);
            }
            RequestBody::CreateObject { object, signature, arguments } => {
                self.create_object(place, object, signature, arguments);
            }
            RequestBody::RemoveObject { object } => self.remove_object(place, &object),
            RequestBody::PutClass { class, module, replace } => {
                self.put_class(place, class, module, replace);
            }
            RequestBody::Kill { invocation } => self.kill(place, invocation),
            RequestBody::KillSession { session } => self.kill_session(place, session),
            RequestBody::RemoveClass { class } => self.remove_class(place, &class),
            RequestBody::SetLimit { name, value } => self.set_limit(place, &name, value),
            RequestBody::EndFault { object, fault, retry } => {
                self.end_fault(place, &object, fault, retry);
            }
        }
    }

    /// An operator changes a limit, which counts from the next request on.
    fn set_limit(&mut self, place: Place, name: &str, value: u64) {
        let genesis = self.world.state.genesis.as_mut();
        let limits = &mut genesis.expect("no step runs before the first entry of the log").limits;
        let outcome = limits.set(name, value).map_err(CallError::LimitNotChanged);
        self.world.reply(place.session, place.number, outcome.map(|()| Vec::new()));
    }

    /// Takes note of what the client has received, and admits the request if it is the next one and
    /// nothing stands against it: in one look at the session.
    fn admit_if_next(&mut self, request: &Request) -> Standing {
        let place = request.place;
        let class = self.check_class(&request.body);
        let planted = self.world.planted;
        let State { genesis, sessions, total, .. } = &mut self.world.state;
        let limits = &genesis.as_ref().expect("there is a session, so there was a genesis").limits;
        let Some(session) = sessions.get_mut(&place.session).map(Arc::make_mut) else {
            return Standing::Refused(Refusal::SessionUnknown);
        };
        let (mut minus, mut plus) = (Sum::default(), Sum::default());
        let mut changed = session.forget(place.session, &request.acknowledged, &mut minus);
        let mut standing = session.standing(place, planted);
        if matches!(standing, Standing::Answered)
            && place.number == session.last_admitted
            && planted.has(PlantedBug::DoubleApply)
        {
            let replies = vec![(place.number, place.number)];
            session.forget(place.session, &Acknowledged { replies, events: 0 }, &mut minus);
            standing = Standing::Next;
        }
        if matches!(standing, Standing::Next) {
            match session.check_room(limits).and(class) {
                Ok(()) => {
                    session.last_admitted = place.number;
                    changed = true;
                }
                Err(refusal) => standing = Standing::Refused(refusal),
            }
        }
        if changed {
            let (old, new) = session.refresh(place.session);
            minus += old;
            plus = new;
        }
        session.sum -= minus;
        session.sum += plus;
        *total -= minus;
        *total += plus;
        standing
    }

    /// Where a place stands.
    pub(super) fn standing(&self, place: Place) -> Standing {
        match self.world.state.sessions.get(&place.session) {
            Some(session) => session.standing(place, self.world.planted),
            None => Standing::Refused(Refusal::SessionUnknown),
        }
    }

    /// Sends the stored reply of a request that has ended.
    pub(super) fn send_again(&mut self, place: Place) {
        let reply = &self.world.state.sessions[&place.session].replies[&place.number];
        self.world.staged.push(Effect::Reply {
            session: place.session,
            number: place.number,
            position: reply.position(),
            outcome: reply.outcome.clone(),
        });
    }

    /// Uses up a number.
    pub(super) fn admit(&mut self, place: Place) {
        self.world.state.change_session(place.session, |session| {
            session.last_admitted = place.number;
        });
    }

    /// The session of a place that is known to have one, to change what is no part of its record.
    pub(super) fn session(&mut self, place: Place) -> &mut Session {
        self.world.state.session_mut(&place.session).expect("its standing was looked up")
    }

    /// Whether one more reply may be stored.
    pub(super) fn check_replies(&self, place: Place) -> Result<(), Refusal> {
        let limits = self.world.state.limits();
        self.known_session(place).room_for_reply(limits).map_err(Refusal::Limit)
    }

    /// The same, to look at it.
    pub(super) fn known_session(&self, place: Place) -> &Session {
        &self.world.state.sessions[&place.session]
    }

    /// A call on a class that is not there is not admitted: the client ships it and sends again. A
    /// replacement waits its turn in the same way.
    fn check_class(&self, body: &RequestBody) -> Result<(), Refusal> {
        let classes = &self.world.state.classes;
        match body {
            RequestBody::Call { object, .. } | RequestBody::CreateObject { object, .. } => {
                let class = || object.class.clone();
                match classes.get(&object.class).map(|class| &class.status) {
                    None => Err(Refusal::ClassUnknown { class: class() }),
                    Some(ClassStatus::Pending { .. }) => {
                        Err(Refusal::ClassPending { class: class() })
                    }
                    Some(ClassStatus::Ready) => Ok(()),
                }
            }
            RequestBody::PutClass { class: name, module, replace: Some(_) } => {
                let compiling = classes.get(name).and_then(Class::compiling);
                match compiling {
                    Some(code) if code != CodeHash::of(module) => {
                        Err(Refusal::ClassPending { class: name.clone() })
                    }
                    _ => Ok(()),
                }
            }
            RequestBody::RemoveClass { class: name } => {
                match classes.get(name).and_then(Class::compiling) {
                    Some(_) => Err(Refusal::ClassPending { class: name.clone() }),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

impl Session {
    /// Where a place of it stands.
    fn standing(&self, place: Place, planted: Planted) -> Standing {
        let last = self.last_admitted;
        if place.number > last {
            return if place.previous == last || planted.has(PlantedBug::AdmissionIgnoresOrder) {
                Standing::Next
            } else {
                Standing::Refused(Refusal::OutOfOrder { last })
            };
        }
        if self.open.contains_key(&place.number) {
            return Standing::Open;
        }
        if self.replies.contains_key(&place.number) {
            Standing::Answered
        } else {
            Standing::Refused(Refusal::Forgotten)
        }
    }

    /// Whether one more request may be open, and its reply be stored.
    fn check_room(&self, limits: &Limits) -> Result<(), Refusal> {
        let open = self.open.len() as u64 + 1;
        within("requests_per_session", limits.requests_per_session, open)
            .and_then(|()| self.room_for_reply(limits))
            .map_err(Refusal::Limit)
    }

    fn room_for_reply(&self, limits: &Limits) -> Result<(), LimitExceeded> {
        let replies = self.replies.len() as u64 + 1;
        within("replies_per_session", limits.replies_per_session, replies)
    }
}
