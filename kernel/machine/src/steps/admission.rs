//! Admission: exactly once, in the order in which the client made its requests.
//!
//! A request names the one before it, and is admitted only if that is the last one admitted. So
//! pipelined requests start in their order, through whatever replicas they travel; a request that
//! comes again attaches to its invocation, or gets its stored reply.
//! Invariant: a request that is refused changes nothing; one that is admitted gets one reply.

use crate::{
    code::CodeHash,
    command::{Acknowledged, Place, Request, RequestBody},
    effect::Effect,
    engine::Engine,
    limits::{Limits, within},
    machine::Machine,
    outcome::{CallError, LimitExceeded, Refusal},
    planted::PlantedBug,
    state::{Class, ClassStatus, Session},
};

/// What a place says about a request.
pub(crate) enum Standing {
    /// It is the next one.
    Next,
    /// It was admitted and has not ended.
    Open,
    /// It was admitted and has ended; the reply was sent again.
    Answered,
    /// It cannot be admitted.
    Refused(Refusal),
}

impl<E: Engine> Machine<E> {
    pub(super) fn request(&mut self, request: Request) {
        let place = request.place;
        self.world.acknowledge(place.session, &request.acknowledged);
        match self.standing(place) {
            Standing::Next => {}
            Standing::Open | Standing::Answered => {
                self.statistics.duplicates += 1;
                return;
            }
            Standing::Refused(refusal) => return self.refuse(place.session, place.number, refusal),
        }
        if let Err(refusal) = self.check_room(place).and_then(|()| self.check_class(&request.body))
        {
            return self.refuse(place.session, place.number, refusal);
        }
        self.admit(place);
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

    /// Where a place stands; sends the stored reply of a request that has ended.
    pub(super) fn standing(&mut self, place: Place) -> Standing {
        let Some(session) = self.world.state.sessions.get(&place.session) else {
            return Standing::Refused(Refusal::SessionUnknown);
        };
        let last = session.last_admitted;
        if place.number > last {
            let next = place.previous == last;
            return if next || self.world.planted.has(PlantedBug::AdmissionIgnoresOrder) {
                Standing::Next
            } else {
                Standing::Refused(Refusal::OutOfOrder { last })
            };
        }
        if session.open.contains_key(&place.number) {
            return Standing::Open;
        }
        match session.replies.get(&place.number) {
            Some(_) if place.number == last && self.world.planted.has(PlantedBug::DoubleApply) => {
                let replies = vec![(last, last)];
                self.world.acknowledge(place.session, &Acknowledged { replies, events: 0 });
                Standing::Next
            }
            Some(reply) => {
                self.world.staged.push(Effect::Reply {
                    session: place.session,
                    number: place.number,
                    position: reply.position(),
                    outcome: reply.outcome.clone(),
                });
                Standing::Answered
            }
            None => Standing::Refused(Refusal::Forgotten),
        }
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

    fn check_room(&self, place: Place) -> Result<(), Refusal> {
        let (session, limits) = (self.known_session(place), self.world.state.limits());
        let open = session.open.len() as u64 + 1;
        within("requests_per_session", limits.requests_per_session, open)
            .and_then(|()| room_for_reply(session, limits))
            .map_err(Refusal::Limit)
    }

    /// Whether one more reply may be stored.
    pub(super) fn check_replies(&self, place: Place) -> Result<(), Refusal> {
        let (session, limits) = (self.known_session(place), self.world.state.limits());
        room_for_reply(session, limits).map_err(Refusal::Limit)
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
                let class = object.class.clone();
                match classes.get(&class).map(|class| &class.status) {
                    None => Err(Refusal::ClassUnknown { class }),
                    Some(ClassStatus::Pending { .. }) => Err(Refusal::ClassPending { class }),
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

fn room_for_reply(session: &Session, limits: &Limits) -> Result<(), LimitExceeded> {
    let replies = session.replies.len() as u64 + 1;
    within("replies_per_session", limits.replies_per_session, replies)
}
