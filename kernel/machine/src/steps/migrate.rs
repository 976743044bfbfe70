//! Objects come up to date with their class, each when it is next needed.
//!
//! An object keeps the layout of the code it was made by, or last brought up to date by. Before a
//! call or handler of newer code runs on it, it is brought through every layout between: for each,
//! the `migrate` of the newest code of that layout that has one runs on it, in the segment of whoever
//! came. So a `migrate` that fails is mended by replacing the class once more, with the same layout.
//! Invariants: a body finds the layout that its code was written for; a migration that fails leaves
//! the object as it was.
//! Not here: which code a class has (`replace.rs`).

use std::ops::Bound::{Excluded, Unbounded};

use crate::{
    aside::Aside,
    class::MethodKind,
    code::CodeHash,
    engine::{End, Engine},
    machine::Machine,
    names::{ClassName, MethodName, ObjectName},
    outcome::{CallError, Forbidden, Trap},
    state::{Class, Version},
    steps::{Call, Caller},
};

/// Code that an object passes on its way.
struct Stage {
    code: CodeHash,
    /// The method that brings the object here; none where the layout stays.
    migrate: Option<MethodName>,
}

impl<E: Engine> Machine<E> {
    /// Whether an object that is there has the layout of an older version of its class, or one of
    /// another code.
    pub(crate) fn is_out_of_date(&self, name: &ObjectName) -> bool {
        let state = &self.world.state;
        state.objects.get(name).is_some_and(|object| object.code != state.classes[&name.class].code)
    }

    /// Brings an object that is there up to date; whoever asks undoes it where it fails.
    pub(crate) fn bring_up_to_date(
        &mut self,
        name: &ObjectName,
        caller: &Caller,
    ) -> Result<(), CallError> {
        if !self.is_out_of_date(name) {
            return Ok(());
        }
        let state = &self.world.state;
        for stage in stages(&state.classes[&name.class], state.objects[name].code) {
            self.world.set_code(name, stage.code);
            if let Some(migrate) = stage.migrate {
                self.migrate(name, migrate, caller).map_err(CallError::MigrateFailed)?;
            }
        }
        Ok(())
    }

    /// Runs one `migrate`. It cannot block, so it needs no journal.
    fn migrate(
        &mut self,
        name: &ObjectName,
        method: MethodName,
        caller: &Caller,
    ) -> Result<(), Trap> {
        let call = Call { object: name.clone(), method, signature: 0, arguments: Vec::new() };
        match self.run_within(MethodKind::Migrate, call, caller) {
            End::Returned(_) => Ok(()),
            End::Failed(_) | End::Aborted(_) | End::Cancelled => Err(Trap::MigrateRefused),
            End::Continue { .. } => Err(Trap::Forbidden(Forbidden::ContinueHere)),
            End::Trapped(trap) => Err(trap),
        }
    }

    /// The step in which an object comes up to date for the sake of a read, which may not do it
    /// itself. Nobody waits for it: the read comes again.
    pub(super) fn migrate_step(&mut self, name: &ObjectName) {
        let savepoint = self.world.savepoint();
        if self.bring_up_to_date(name, &Caller::scheduler()).is_err() {
            self.world.undo_to(savepoint);
        }
        self.world.commit();
    }

    /// Whether an object can be brought up to date, tried on a copy of the state.
    pub(crate) fn try_migration(&mut self, name: &ObjectName) -> Result<(), CallError> {
        let mut copy = Aside::of(self);
        self.aside(&mut copy, |machine| machine.bring_up_to_date(name, &Caller::scheduler()))
    }

    /// The next object of a class, by name.
    pub(crate) fn object_after(
        &self,
        class: &ClassName,
        last: Option<&ObjectName>,
    ) -> Option<ObjectName> {
        let first = ObjectName::before_all(class);
        let range = (Excluded(last.unwrap_or(&first)), Unbounded);
        let found = self.world.state.objects.range::<_, ObjectName>(range).next();
        found.map(|(name, _)| name.clone()).filter(|name| name.class == *class)
    }
}

/// What an object with this code passes until it is up to date.
fn stages(class: &Class, from: CodeHash) -> Vec<Stage> {
    let place = class.older.iter().position(|version| version.code == from);
    let place = place.expect("a class keeps the code of its objects");
    let mut layout = class.older[place].interface.layout;
    let newer: Vec<_> = class.passed_from(place).map(Newer::of).collect();
    let newer: Vec<_> = newer.into_iter().chain([Newer::current(class)]).collect();
    let mut stages = Vec::new();
    for run in newer.chunk_by(|one, next| one.layout == next.layout) {
        if run[0].layout == layout {
            continue;
        }
        layout = run[0].layout;
        let able = run.iter().rev().find_map(|version| Some((version.code, version.migrate?)));
        let (code, migrate) = able.expect("a change of layout brings a `migrate`");
        stages.push(Stage { code, migrate: Some(migrate.clone()) });
    }
    if stages.last().is_none_or(|stage| stage.code != class.code) {
        stages.push(Stage { code: class.code, migrate: None });
    }
    stages
}

/// A version as `stages` looks at it.
struct Newer<'a> {
    code: CodeHash,
    layout: u64,
    migrate: Option<&'a MethodName>,
}

impl<'a> Newer<'a> {
    fn of(version: &'a Version) -> Self {
        let Version { code, interface, .. } = version;
        Self { code: *code, layout: interface.layout, migrate: interface.migrate() }
    }

    fn current(class: &'a Class) -> Self {
        let (code, interface) = (class.code, &class.interface);
        Self { code, layout: interface.layout, migrate: interface.migrate() }
    }
}
