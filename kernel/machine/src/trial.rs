//! How replacing the code of a class would go: tried on a copy of the state, in slices.
//!
//! ```text
//! begin_trial ─► cancel what is in the way ─► clean-ups ─► new code ─► migrate each object ─► report
//! ```
//!
//! The order is that of the replacement itself (`steps/replace.rs`), so that a `migrate` meets what
//! it would meet there.
//! Invariants: a trial changes nothing (`aside.rs`); a slice ends after the body that used up its
//! fuel; a trial ends when its whole fuel is used up, and says that there is more.
//! Not here: who asks, and when slices run (the server).

use crate::{
    aside::Aside,
    class::ClassInterface,
    code::CodeHash,
    command::Replace,
    engine::Engine,
    machine::Machine,
    names::{ClassName, InvocationId, ObjectName},
    outcome::{CallError, CancelReason},
    state::Version,
    steps::{Caller, Task},
};

/// Pieces of work without fuel of their own, such as calls that leave their queues, in one slice.
const PIECES: u32 = 1_000;

/// How a replacement went on a copy of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialReport {
    /// Objects that were brought up to date.
    pub migrated: u64,
    /// Objects whose `migrate` failed, and how; at most [`TrialReport::FAILURES_MAX`].
    pub failures: Vec<(ObjectName, String)>,
    /// Whether there are objects that were not tried.
    pub more: bool,
}

impl TrialReport {
    /// Failures that are reported.
    pub const FAILURES_MAX: usize = 100;
}

/// A replacement that is being tried.
#[derive(Debug)]
pub struct Trial {
    copy: Aside,
    class: ClassName,
    code: CodeHash,
    interface: ClassInterface,
    replace: Replace,
    stage: Stage,
    /// Fuel that is left of the whole.
    fuel: u64,
    report: TrialReport,
}

/// How far a trial is.
#[derive(Debug)]
enum Stage {
    /// Blocked calls leave their queues, the last of these first to go.
    Cancel(Vec<InvocationId>),
    /// They clean up.
    CleanUp,
    /// Objects come up to date, those after this one.
    Migrate(Option<ObjectName>),
}

/// What a slice comes to.
enum Sliced {
    /// The trial goes on.
    More,
    /// Everything was tried.
    Done,
    /// The replacement would be refused by now.
    Refused(CallError),
}

impl<E: Engine> Machine<E> {
    /// Begins to try a replacement with the state as it is, for as much fuel in all.
    ///
    /// # Errors
    /// Why the replacement would be refused.
    ///
    /// # Panics
    /// When the class is not there, an entry is half applied, or the machine waits for code: the
    /// caller looks first.
    pub fn begin_trial(
        &self,
        class: &ClassName,
        code: CodeHash,
        interface: &ClassInterface,
        replace: Replace,
        fuel: u64,
    ) -> Result<Trial, CallError> {
        assert!(self.is_between_entries(), "a trial sees whole entries");
        assert!(self.waits_for_code().is_none(), "a trial runs all code of the class");
        self.check_replacement(class, code, interface, replace)?;
        let layout_changes = interface.layout != self.world.state.classes[class].interface.layout;
        let cancels = layout_changes && replace.cancel_pinned;
        let mut blocked = if cancels { self.blocked_in(class) } else { Vec::new() };
        blocked.reverse();
        Ok(Trial {
            copy: Aside::of(self),
            class: class.clone(),
            code,
            interface: interface.clone(),
            replace,
            stage: Stage::Cancel(blocked),
            fuel,
            report: TrialReport::default(),
        })
    }

    /// Goes on with a trial for about so much fuel. Some at its end: the report, or why the
    /// replacement would be refused after all.
    pub fn go_on_with_trial(
        &mut self,
        trial: &mut Trial,
        fuel: u64,
    ) -> Option<Result<TrialReport, CallError>> {
        let Trial { copy, class, code, interface, replace, stage, fuel: left, report } = trial;
        let tried = Tried { class, code: *code, interface, replace: *replace };
        let sliced = self.aside(copy, |machine| {
            let before = machine.spent;
            for _ in 0..PIECES {
                match machine.try_piece(&tried, stage, report) {
                    Sliced::More => {}
                    end => return end,
                }
                let spent = machine.spent - before;
                if spent >= *left {
                    *left = 0;
                    report.more = true;
                    return Sliced::Done;
                }
                if spent >= fuel {
                    break;
                }
            }
            *left -= machine.spent - before;
            Sliced::More
        });
        match sliced {
            Sliced::More => None,
            Sliced::Done => Some(Ok(std::mem::take(report))),
            Sliced::Refused(error) => Some(Err(error)),
        }
    }

    /// The next piece of a trial, on its copy.
    fn try_piece(
        &mut self,
        tried: &Tried<'_>,
        stage: &mut Stage,
        report: &mut TrialReport,
    ) -> Sliced {
        match stage {
            Stage::Cancel(blocked) => match blocked.pop() {
                Some(invocation) => {
                    self.leave_for_cleanup(invocation, CancelReason::Operator);
                    self.agenda.push_back(Task::CleanUp(invocation));
                }
                None => *stage = Stage::CleanUp,
            },
            Stage::CleanUp => match self.agenda.pop_front() {
                Some(task) => self.task(task),
                None => {
                    // Clean-ups may have set timers.
                    let Tried { class, code, interface, replace } = *tried;
                    if let Err(error) = self.check_replacement(class, code, interface, replace) {
                        return Sliced::Refused(error);
                    }
                    let module = std::sync::Arc::from([]);
                    let version = Version { code, module, interface: interface.clone() };
                    let class = self.world.state.classes.get_mut(class);
                    class.expect("it was there when the trial began").replace_code(version);
                    *stage = Stage::Migrate(None);
                }
            },
            Stage::Migrate(last) => {
                let Some(object) = self.object_after(tried.class, last.as_ref()) else {
                    return Sliced::Done;
                };
                self.try_object(&object, report);
                *last = Some(object);
            }
        }
        Sliced::More
    }

    fn try_object(&mut self, object: &ObjectName, report: &mut TrialReport) {
        let savepoint = self.world.savepoint();
        match self.bring_up_to_date(object, &Caller::scheduler()) {
            Ok(()) => report.migrated += 1,
            Err(error) => {
                self.world.undo_to(savepoint);
                if report.failures.len() < TrialReport::FAILURES_MAX {
                    report.failures.push((object.clone(), error.to_string()));
                }
            }
        }
        self.world.commit();
        self.world.staged.clear();
        self.world.touched.clear();
    }
}

/// What is tried.
struct Tried<'a> {
    class: &'a ClassName,
    code: CodeHash,
    interface: &'a ClassInterface,
    replace: Replace,
}
