//! What each command and alarm does: one concern a file.
//!
//! Not here: how bodies run (`execute/`), and what they change (`world/`).

mod admission;
mod alarm;
mod call;
mod cancel;
mod class;
mod fault;
mod migrate;
mod object;
mod replace;
mod session;
mod vote;

pub(crate) use self::call::{Call, Caller};
use crate::{
    command::{Command, Place},
    effect::{Effect, SessionEnd},
    engine::Engine,
    machine::Machine,
    names::{AlarmId, ClassName, InvocationId, ObjectName, PermitId, SessionId},
    outcome::Refusal,
    planted::PlantedBug,
};

/// A piece of a command that ends many invocations at once, done when its turn comes, so that such
/// a step can be run in slices. No body of another command comes between.
#[derive(Debug)]
pub(crate) enum Task {
    /// An invocation that has left its queue cleans up.
    CleanUp(InvocationId),
    /// A permit of a session that is over goes to the next.
    Release(PermitId),
    /// The watch of a session that is over goes off, if no clean-up cancelled it.
    Ring(AlarmId),
    /// An invocation ends with its object.
    EndRemoved(InvocationId),
    /// New code takes the place of a class's old code.
    Replace(ClassName),
    /// The object goes, and who removed it is told.
    Forget(ObjectName, Place),
}

impl<E: Engine> Machine<E> {
    /// The next piece of the current command.
    pub(crate) fn task(&mut self, task: Task) {
        match task {
            Task::CleanUp(invocation) => self.go_on(invocation),
            Task::Release(permit) => {
                if self.world.planted.has(PlantedBug::PermitLostWithSession) {
                    self.world.drop_permit(permit);
                } else {
                    self.world.release(permit);
                }
                self.world.commit();
            }
            Task::Ring(watch) => {
                if let Some(alarm) = self.world.drop_alarm(watch) {
                    self.ring(watch, alarm);
                }
            }
            Task::EndRemoved(invocation) => self.end_removed(invocation),
            Task::Replace(class) => self.replace_now(&class),
            Task::Forget(object, place) => {
                self.forget_object(&object);
                self.world.reply(place.session, place.number, Ok(Vec::new()));
            }
        }
    }

    /// The step of a command, up to the draining of the ready list.
    pub(crate) fn command_step(&mut self, command: Command) {
        match command {
            Command::OpenSession { nonce, principal, timeout } => {
                self.open_session(nonce, principal, timeout);
            }
            Command::CloseSession { session } => self.end_session(session, SessionEnd::Closed),
            Command::ExpireSession { session } => self.end_session(session, SessionEnd::Expired),
            Command::Request(request) => self.request(request),
            Command::Cancel { place, acknowledged } => {
                self.world.acknowledge(place.session, &acknowledged);
                self.cancel_request(place);
            }
            Command::Acknowledge { session, acknowledged } => {
                self.world.acknowledge(session, &acknowledged);
            }
            Command::Compiled { replica, code, failure } => self.compiled(replica, code, failure),
            Command::Migrate { object } => self.migrate_step(&object),
            Command::Vote { replica, step, hash } => self.vote(replica, step, hash),
        }
    }

    /// Turns a request away: it uses up nothing.
    pub(crate) fn refuse(&mut self, session: SessionId, number: u64, refusal: Refusal) {
        self.statistics.refusals += 1;
        self.world.staged.push(Effect::Refused { session, number, refusal });
    }
}
