//! The code of a class is replaced, and classes are removed.
//!
//! A replacement is compiled while the old code serves, and takes its place in one step. New
//! invocations run the new code; blocked ones go on in theirs, and so does whatever they continue
//! with. Objects come up to date one by one (`migrate.rs`).
//! Invariants: while the layout changes nothing of the class is blocked; a timer or watch that was
//! set finds a handler of the same signature; code that an object or an invocation needs is kept;
//! code that comes back meets no object of a layout that came after it.
//! Source: section 4.8 of the design; the GESMAS paper replaces no classes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    class::{ClassInterface, MethodKind},
    code::CodeHash,
    command::{Place, Replace},
    effect::Effect,
    engine::Engine,
    machine::Machine,
    names::{ClassName, InvocationId, MethodName, ObjectName},
    outcome::{CallError, CancelReason},
    state::{Alarm, AlarmAction, Open, Replacement, State, Status, Version},
    steps::Task,
};

impl<E: Engine> Machine<E> {
    /// Begins to replace the code of a class that is ready, with code that is not its own.
    pub(super) fn replace_class(
        &mut self,
        place: Place,
        name: ClassName,
        version: Version,
        replace: Replace,
    ) {
        let Version { code, interface, .. } = &version;
        if let Err(error) = self.check_replacement(&name, *code, interface, replace) {
            return self.world.reply(place.session, place.number, Err(error));
        }
        let code = version.code;
        let class = self.world.state.classes.get_mut(&name).expect("it was looked up");
        class.next = Some(Box::new(Replacement {
            version,
            replace,
            reports: BTreeMap::new(),
            puts: vec![(place.session, place.number)],
        }));
        self.session(place).open.insert(place.number, Open::PutClass);
        self.world.staged.push(Effect::Compile { class: name, code });
    }

    /// Whether the code of a class may be replaced as things are.
    pub(crate) fn check_replacement(
        &self,
        name: &ClassName,
        code: CodeHash,
        new: &ClassInterface,
        replace: Replace,
    ) -> Result<(), CallError> {
        let state = &self.world.state;
        let current = &state.classes[name].interface;
        if let Some((object, handler)) = find_untypable_alarm(state, name, current, new) {
            return Err(CallError::HandlerChanged { object, handler });
        }
        if new.layout == current.layout {
            return Ok(());
        }
        let objects = state.objects.keys().any(|object| object.class == *name);
        if objects && (new.migrate().is_none() || has_objects_newer_than(state, name, code)) {
            return Err(CallError::MigrateMissing { class: name.clone() });
        }
        let blocked = blocked_in(state, name).count() as u64;
        if blocked > 0 && !replace.cancel_pinned {
            return Err(CallError::ClassPinned { class: name.clone(), blocked });
        }
        Ok(())
    }

    /// A majority has compiled the new code. Blocked calls that are in its way clean up first.
    pub(super) fn replacement_compiled(&mut self, name: &ClassName) {
        let class = &self.world.state.classes[name];
        let next = class.next.as_ref().expect("it is the one that was compiled");
        let (code, interface) = (next.version.code, next.version.interface.clone());
        let replace = next.replace;
        let layout_changes = interface.layout != class.interface.layout;
        if let Err(error) = self.check_replacement(name, code, &interface, replace) {
            return self.give_up_replacement(name, &error);
        }
        if layout_changes && replace.cancel_pinned {
            for invocation in self.blocked_in(name) {
                self.leave_for_cleanup(invocation, CancelReason::Operator);
                self.agenda.push_back(Task::CleanUp(invocation));
            }
        }
        self.agenda.push_back(Task::Replace(name.clone()));
    }

    /// The replacement comes to nothing; the old code goes on serving.
    pub(super) fn give_up_replacement(&mut self, name: &ClassName, error: &CallError) {
        let class = self.world.state.classes.get_mut(name).expect("it is there");
        let next = class.next.take().expect("it was to be replaced");
        self.answer_puts(next.puts, &Err(error.clone()));
    }

    /// Puts the new code in the old one's place.
    pub(super) fn replace_now(&mut self, name: &ClassName) {
        let next = self.world.state.classes[name].next.as_ref();
        let next = next.expect("nothing takes it away within its step");
        let (code, interface) = (next.version.code, next.version.interface.clone());
        // Clean-ups may have set timers.
        if let Err(error) = self.check_replacement(name, code, &interface, next.replace) {
            return self.give_up_replacement(name, &error);
        }
        let class = self.world.state.classes.get_mut(name).expect("it was just looked at");
        let next = class.next.take().expect("it was just looked at");
        let Replacement { version, puts, .. } = *next;
        class.replace_code(version);
        self.world.state.forget_needless_versions(name);
        if !self.engine.is_compiled(code) {
            self.paused.push_back(code);
        }
        self.answer_puts(puts, &Ok(code.0.to_vec()));
    }

    /// Removes a class that nothing needs.
    pub(super) fn remove_class(&mut self, place: Place, name: &ClassName) {
        let state = &mut self.world.state;
        let objects = state.objects.keys().filter(|object| object.class == *name).count() as u64;
        let outcome = if !state.classes.contains_key(name) {
            Err(CallError::ClassMissing { class: name.clone() })
        } else if objects > 0 {
            // What is blocked is blocked on an object.
            let blocked = blocked_in(state, name).count() as u64;
            Err(CallError::ClassInUse { class: name.clone(), objects, blocked })
        } else {
            let class = state.classes.remove(name).expect("it was just found");
            let error = CallError::ClassMissing { class: name.clone() };
            self.answer_puts(class.into_puts(), &Err(error));
            Ok(Vec::new())
        };
        self.world.reply(place.session, place.number, outcome);
    }

    /// Blocked invocations on objects of a class, oldest first.
    pub(crate) fn blocked_in(&self, name: &ClassName) -> Vec<InvocationId> {
        blocked_in(&self.world.state, name).collect()
    }
}

/// Blocked invocations on objects of a class, oldest first.
fn blocked_in(state: &State, name: &ClassName) -> impl Iterator<Item = InvocationId> {
    let of_class = state.invocations.iter().filter(move |(_, invocation)| {
        invocation.frame.object.class == *name && matches!(invocation.status, Status::Blocked(_))
    });
    of_class.map(|(id, _)| *id)
}

/// Whether objects have a layout that came after code of an older layout, so that its `migrate` was
/// not written for them.
fn has_objects_newer_than(state: &State, name: &ClassName, code: CodeHash) -> bool {
    let class = &state.classes[name];
    let Some(place) = class.older.iter().position(|older| older.code == code) else {
        return false;
    };
    let newer: BTreeSet<_> = class.older[place + 1..].iter().map(|older| older.code).collect();
    state.objects.iter().any(|(object, state)| {
        object.class == *name && (state.code == class.code || newer.contains(&state.code))
    })
}

/// A timer or watch whose handler is not in the new code as it is in the current one.
fn find_untypable_alarm(
    state: &State,
    name: &ClassName,
    current: &ClassInterface,
    new: &ClassInterface,
) -> Option<(ObjectName, MethodName)> {
    let handler_of = |alarm: &Alarm| match &alarm.action {
        AlarmAction::Handler { handler, .. } if alarm.object.class == *name => {
            Some((alarm.object.clone(), handler.clone()))
        }
        _ => None,
    };
    let used = state.alarms.values().filter_map(|alarm| handler_of(alarm));
    used.into_iter().find(|(_, handler)| !new.has_handler_of(current, handler))
}

impl ClassInterface {
    /// Whether this code has a handler of this name with the signature that it has in other code.
    pub(crate) fn has_handler_of(&self, other: &Self, handler: &MethodName) -> bool {
        let signature = |interface: &Self| {
            let method = interface.methods.get(handler)?;
            method.kind.can_be_continued_with().then_some(method.signature)
        };
        signature(self).is_some_and(|own| signature(other) == Some(own))
    }

    /// The method that brings objects to this layout, if there is one.
    pub(crate) fn migrate(&self) -> Option<&MethodName> {
        self.methods
            .iter()
            .find(|(_, method)| method.kind == MethodKind::Migrate)
            .map(|(name, _)| name)
    }
}

impl State {
    /// Drops versions that no object passes any more and no invocation runs.
    fn forget_needless_versions(&mut self, name: &ClassName) {
        let objects = self.objects.iter().filter(|(object, _)| object.class == *name);
        let of_objects: BTreeSet<_> = objects.map(|(_, object)| object.code).collect();
        let invocations = self.invocations.values();
        let invocations = invocations.filter(|invocation| invocation.frame.object.class == *name);
        let running: BTreeSet<_> = invocations.map(|invocation| invocation.frame.code).collect();
        let class = self.classes.get_mut(name).expect("the caller has it");
        let mut needed = running;
        for (place, version) in class.older.iter().enumerate() {
            if of_objects.contains(&version.code) && version.code != class.code {
                needed.extend(class.passed_from(place).map(|passed| passed.code));
                needed.insert(version.code);
            }
        }
        class.older.retain(|version| needed.contains(&version.code));
    }
}
