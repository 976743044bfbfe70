//! What each host call does: checks of who may, then the change in the world.
//!
//! Host calls act in program order, and a segment sees its own effects. One that fails is a trap.
//! Not here: recording in the journal (`segment.rs`).

use crate::{
    class::MethodKind,
    effect::Effect,
    engine::Engine,
    execute::Segment,
    host_call::{Answer, HostCall, PAnswer, PermitOwner, Wait},
    machine::Machine,
    names::{AlarmId, MethodName, SessionId, Time},
    outcome::{CancelReason, Forbidden, Trap},
    planted::PlantedBug,
    state::{AlarmAction, Blocked, Invocation},
    world::{World, store},
};

/// What became of a host call.
pub(crate) enum Performed {
    /// The body goes on with this.
    Answer(Answer),
    /// The body blocks.
    Block(Blocked),
}

/// Part of a `P`.
struct Ask {
    semaphore: Vec<u8>,
    wait: Wait,
    owner: PermitOwner,
    checksum: u64,
}

impl<E: Engine> Machine<E> {
    pub(crate) fn perform(
        &mut self,
        invocation: &mut Invocation,
        segment: &Segment,
        call: HostCall,
        checksum: u64,
    ) -> Result<Performed, Trap> {
        if segment.kind == MethodKind::Read {
            forbid_in_read(&call)?;
        }
        let answer = match call {
            HostCall::P { semaphore, wait, owner } => {
                let ask = Ask { semaphore, wait, owner, checksum };
                return self.perform_p(invocation, segment, ask);
            }
            HostCall::V { .. }
            | HostCall::Release { .. }
            | HostCall::SetCount { .. }
            | HostCall::Count { .. }
            | HostCall::Waiters { .. }
            | HostCall::Owners { .. } => self.perform_semaphore(invocation, segment, call)?,
            HostCall::Now
            | HostCall::Random
            | HostCall::Session
            | HostCall::Principal
            | HostCall::Object
            | HostCall::Token
            | HostCall::Log { .. } => self.perform_context(invocation, call),
            HostCall::WatchSession { .. }
            | HostCall::After { .. }
            | HostCall::CancelAlarm { .. }
            | HostCall::Notify { .. } => self.perform_life(invocation, call)?,
            _ => self.perform_store(invocation, call)?,
        };
        Ok(Performed::Answer(answer))
    }

    fn perform_store(&mut self, invocation: &Invocation, call: HostCall) -> Result<Answer, Trap> {
        let object = &invocation.frame.object;
        let world = &mut self.world;
        let owned = |bytes: &[u8]| bytes.to_vec();
        Ok(match call {
            HostCall::Get { key } => Answer::Optional(world.get(object, &key).map(owned)),
            HostCall::Set { key, value } => {
                world.set(object, key, value)?;
                Answer::Unit
            }
            HostCall::Remove { key } => Answer::Optional(world.remove(object, &key)),
            HostCall::Scan { collection, after, reverse, entries } => {
                let after = after.as_deref();
                Answer::Entries(world.scan(object, &collection, after, reverse, entries))
            }
            HostCall::PushBack { deque, value } => {
                world.push(object, deque, value, store::End::Back)?;
                Answer::Unit
            }
            HostCall::PushFront { deque, value } => {
                world.push(object, deque, value, store::End::Front)?;
                Answer::Unit
            }
            HostCall::PopBack { deque } => {
                Answer::Optional(world.pop(object, deque, store::End::Back)?)
            }
            HostCall::PopFront { deque } => {
                Answer::Optional(world.pop(object, deque, store::End::Front)?)
            }
            HostCall::DequeGet { deque, index } => {
                Answer::Optional(world.deque_get(object, &deque, index).map(owned))
            }
            HostCall::Length { collection } => Answer::Number(world.length(object, &collection)),
            HostCall::MapInsert { map, key, value } => {
                Answer::Optional(world.map_insert(object, map, &key, value)?)
            }
            HostCall::MapGet { map, key } => {
                Answer::Optional(world.get(object, &store::entry_key(&map, &key)).map(owned))
            }
            HostCall::MapRemove { map, key } => {
                Answer::Optional(world.map_remove(object, map, &key)?)
            }
            other => panic!("{other:?} does not concern the store"),
        })
    }

    fn perform_semaphore(
        &mut self,
        invocation: &Invocation,
        segment: &Segment,
        call: HostCall,
    ) -> Result<Answer, Trap> {
        let object = &invocation.frame.object;
        let semaphores = &self.world.state.objects[object].semaphores;
        Ok(match call {
            HostCall::V { semaphore, count } => {
                let twice = self.world.planted.has(PlantedBug::VTwice);
                self.world.give(object, &semaphore, if twice { count * 2 } else { count })?;
                Answer::Unit
            }
            HostCall::Release { permit } => {
                let here = self.world.state.permits.get(&permit);
                let here = here.is_some_and(|permit| permit.object == *object);
                Answer::Flag(here && self.world.release(permit))
            }
            HostCall::SetCount { semaphore, count } => {
                if segment.kind != MethodKind::Init {
                    return Err(Trap::Forbidden(Forbidden::SetOutsideInit));
                }
                self.world.set_count(object, semaphore, count)?;
                Answer::Unit
            }
            HostCall::Count { semaphore } => Answer::Number(
                semaphores.get(&semaphore[..]).map_or(0, |semaphore| semaphore.count),
            ),
            HostCall::Waiters { semaphore } => {
                let waiters = |semaphore: &crate::state::Semaphore| semaphore.waiters.len() as u64;
                Answer::Number(
                    semaphores.get(&semaphore[..]).map_or(0, |semaphore| waiters(semaphore)),
                )
            }
            HostCall::Owners { semaphore } => Answer::Owners(self.world.owners(object, &semaphore)),
            other => panic!("{other:?} does not concern semaphores"),
        })
    }

    /// P of section 4.2 of the paper: take a permit if one is free and nobody waits, else join the
    /// tail of the queue and suspend.
    fn perform_p(
        &mut self,
        invocation: &mut Invocation,
        segment: &Segment,
        ask: Ask,
    ) -> Result<Performed, Trap> {
        let object = &invocation.frame.object;
        let answer = |answer| Ok(Performed::Answer(Answer::P(answer)));
        let session = self.session_of(invocation);
        if ask.owner == PermitOwner::Session && session.is_none() {
            return answer(match invocation.session {
                Some(_) => PAnswer::SessionOver,
                None => PAnswer::NoSession,
            });
        }
        if self.world.try_take(object, &ask.semaphore) {
            let Some(holder) = World::holder(ask.owner, invocation.id, session) else {
                return answer(PAnswer::Granted);
            };
            self.world.check_permit(object)?;
            let permit = self.world.own_permit(object, &ask.semaphore, holder);
            if ask.owner == PermitOwner::Invocation {
                invocation.permits.push(permit);
            }
            return answer(PAnswer::Owned(permit));
        }
        let until = match ask.wait {
            Wait::Never => return answer(PAnswer::WouldBlock),
            Wait::Forever => None,
            Wait::For(duration) => Some(self.world.state.now.after(duration)),
            Wait::Until(time) => Some(time),
        };
        match segment.kind {
            MethodKind::Init => return Err(Trap::Forbidden(Forbidden::BlockInInit)),
            MethodKind::Migrate => return Err(Trap::Forbidden(Forbidden::BlockInMigrate)),
            MethodKind::Update | MethodKind::Read | MethodKind::Handler => {}
        }
        if invocation.cancelled.is_some() {
            return answer(PAnswer::Cancelled);
        }
        if until.is_some_and(|until| until <= self.world.state.now) {
            return answer(PAnswer::TimedOut);
        }
        if until.is_none() && self.would_deadlock(invocation, &ask.semaphore) {
            invocation.cancelled = Some(CancelReason::Deadlock);
            return answer(PAnswer::Cancelled);
        }
        self.block(invocation, ask, until).map(Performed::Block)
    }

    /// Joins the queue. The segment ends here and what it did stands, this included.
    fn block(
        &mut self,
        invocation: &Invocation,
        ask: Ask,
        until: Option<Time>,
    ) -> Result<Blocked, Trap> {
        let object = &invocation.frame.object;
        self.world.check_waiter(object, &ask.semaphore)?;
        let ticket = self.world.join_queue(object, &ask.semaphore, invocation.id);
        let earliest = self.world.due_after(0);
        let timeout = until.map(|until| {
            let until = until.max(earliest);
            self.world.make_alarm(object, until, AlarmAction::WaitTimeout(invocation.id))
        });
        Ok(Blocked {
            semaphore: self.world.semaphore_name(object, &ask.semaphore),
            ticket,
            owner: ask.owner,
            timeout,
            since: self.world.state.now,
            checksum: ask.checksum,
        })
    }

    fn perform_context(&mut self, invocation: &Invocation, call: HostCall) -> Answer {
        let state = &mut self.world.state;
        match call {
            HostCall::Now => Answer::Number(state.now.0),
            HostCall::Random => {
                self.draws += 1;
                Answer::Number(self.draw(invocation))
            }
            HostCall::Session => {
                Answer::OptionalNumber(invocation.session.map(|session| session.0))
            }
            HostCall::Principal => Answer::Text(invocation.principal.as_ref().into()),
            HostCall::Object => Answer::Text(invocation.frame.object.name.as_str().into()),
            HostCall::Token => {
                let token = state.next.token;
                let repeats = self.world.planted.has(PlantedBug::TokenRepeats);
                state.next.token += u64::from(!(repeats && state.step.0.is_multiple_of(8)));
                Answer::Number(token)
            }
            HostCall::Log { level, mut text } => {
                let limit = usize::try_from(state.limits().log_bytes).unwrap_or(usize::MAX);
                text.truncate(text.floor_char_boundary(limit));
                self.world.staged.push(Effect::Log {
                    object: invocation.frame.object.clone(),
                    invocation: invocation.id,
                    level,
                    text,
                });
                Answer::Unit
            }
            other => panic!("{other:?} does not concern the context"),
        }
    }

    /// A number that nobody can foresee who does not know the seed, equal on all replicas.
    fn draw(&self, invocation: &Invocation) -> u64 {
        let state = &self.world.state;
        let mut hasher = blake3::Hasher::new_keyed(&state.genesis().seed);
        for number in [state.step.0, invocation.id.0, self.draws] {
            hasher.update(&number.to_le_bytes());
        }
        let hash = hasher.finalize();
        u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }

    fn perform_life(&mut self, invocation: &Invocation, call: HostCall) -> Result<Answer, Trap> {
        let object = &invocation.frame.object;
        Ok(match call {
            HostCall::WatchSession { session, handler, arguments } => {
                self.check_handler(invocation, &handler)?;
                let alarm = self.watch(invocation, session, handler, arguments)?;
                Answer::Number(alarm.0)
            }
            HostCall::After { duration, handler, arguments } => {
                self.check_handler(invocation, &handler)?;
                let due = Some(self.world.due_after(duration));
                let alarm = self.world.make_handler_alarm(object, due, None, handler, arguments)?;
                Answer::Number(alarm.0)
            }
            HostCall::CancelAlarm { alarm } => {
                let here = self.world.state.objects[object].alarms.contains(&alarm);
                Answer::Flag(here && self.world.cancel_alarm(alarm))
            }
            HostCall::Notify { session, payload } => {
                Answer::Flag(self.world.notify(session, payload)?)
            }
            other => panic!("{other:?} does not concern life events"),
        })
    }

    /// A watch of a session that is over goes off at the next later stamp.
    fn watch(
        &mut self,
        invocation: &Invocation,
        session: SessionId,
        handler: MethodName,
        arguments: Vec<u8>,
    ) -> Result<AlarmId, Trap> {
        let lives = self.world.state.sessions.contains_key(&session);
        let due = (!lives).then(|| self.world.due_after(0));
        let object = &invocation.frame.object;
        self.world.make_handler_alarm(object, due, Some(session), handler, arguments)
    }

    fn check_handler(&self, invocation: &Invocation, handler: &MethodName) -> Result<(), Trap> {
        let state = &self.world.state;
        // It is going to run in the class's code, which may no longer be the caller's.
        let (own, current) =
            (state.interface_of(&invocation.frame), &state.classes[&invocation.frame.object.class]);
        if current.interface.has_handler_of(own, handler) {
            Ok(())
        } else {
            Err(Trap::TargetUnknown(handler.clone()))
        }
    }
}

/// Refuses what a `read` may not do.
fn forbid_in_read(call: &HostCall) -> Result<(), Trap> {
    let forbidden = match call {
        HostCall::Get { .. }
        | HostCall::Scan { .. }
        | HostCall::DequeGet { .. }
        | HostCall::Length { .. }
        | HostCall::MapGet { .. }
        | HostCall::Count { .. }
        | HostCall::Waiters { .. }
        | HostCall::Owners { .. }
        | HostCall::Now
        | HostCall::Session
        | HostCall::Principal
        | HostCall::Object
        | HostCall::Log { .. } => return Ok(()),
        HostCall::P { .. } => Forbidden::BlockInRead,
        HostCall::Random | HostCall::Token => Forbidden::DrawInRead,
        _ => Forbidden::WriteInRead,
    };
    Err(Trap::Forbidden(forbidden))
}
