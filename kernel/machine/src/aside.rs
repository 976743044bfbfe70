//! Work on a copy of the state, of which nothing stays: trials, and reads that need a changed state.
//!
//! Invariant: while the machine works aside, everything that bodies and tasks can change is the
//! copy's own: state, ready list, effects, undo log, agenda, drawn numbers, activations and counts.
//! Code that is not listed here cannot leave a trace, because it has nothing to leave it in.
//! Not here: what is tried (`trial.rs`, `read.rs`, `steps/migrate.rs`).

use std::collections::VecDeque;

use crate::{
    code::CodeHash, engine::Engine, execute::Live, machine::Machine, planted::PlantedBug,
    statistics::Statistics, steps::Task, world::World,
};

/// A copy of all that work can change.
#[derive(Debug)]
pub(crate) struct Aside {
    world: World,
    live: Live,
    agenda: VecDeque<Task>,
    draws: u64,
    metered: u64,
    paused: VecDeque<CodeHash>,
    statistics: Statistics,
}

impl Aside {
    /// A copy of a machine between two steps. The state shares what does not change.
    pub(crate) fn of<E: Engine>(machine: &Machine<E>) -> Self {
        assert!(machine.is_between_steps(), "a copy is of a state that stands");
        Self {
            world: machine.world.copy(),
            live: Live::default(),
            agenda: VecDeque::new(),
            draws: machine.draws,
            metered: 0,
            paused: VecDeque::new(),
            statistics: Statistics::default(),
        }
    }

    /// Exchanges the machine's own with the copy.
    fn exchange<E: Engine>(&mut self, machine: &mut Machine<E>) {
        self.live.follow(&machine.live);
        std::mem::swap(&mut self.world, &mut machine.world);
        std::mem::swap(&mut self.live, &mut machine.live);
        std::mem::swap(&mut self.agenda, &mut machine.agenda);
        std::mem::swap(&mut self.draws, &mut machine.draws);
        std::mem::swap(&mut self.metered, &mut machine.metered);
        std::mem::swap(&mut self.paused, &mut machine.paused);
        std::mem::swap(&mut self.statistics, &mut machine.statistics);
    }
}

impl<E: Engine> Machine<E> {
    /// Works on a copy, which may be worked on again later.
    pub(crate) fn aside<T>(&mut self, copy: &mut Aside, work: impl FnOnce(&mut Self) -> T) -> T {
        copy.exchange(self);
        let result = work(self);
        self.world.commit();
        self.world.staged.clear();
        // A body that waits on the copy is rebuilt if it is to go on.
        while let Some(waiting) = self.live.oldest() {
            self.drop_activation(waiting);
        }
        let planted = self.world.planted;
        copy.exchange(self);
        if planted.has(PlantedBug::TrialStays) {
            self.world.state = copy.world.state.clone();
        }
        result
    }
}
