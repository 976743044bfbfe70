//! An engine that looks at the clock around every run of a body.
//!
//! Used in rounds of its own, since looking at the clock costs time too.

use std::time::{Duration, Instant};

use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, Engine, EngineIdentity, Entry, ModuleError,
    ModuleLimits, Turn,
};

/// See the file's head.
pub(super) struct TimedEngine<E> {
    pub(super) engine: E,
    /// Whether to look at the clock at all.
    pub(super) on: bool,
    /// Time in the engine.
    pub(super) time: Duration,
    /// Bodies started.
    pub(super) starts: u64,
    /// Host calls answered.
    pub(super) answers: u64,
}

impl<E> TimedEngine<E> {
    pub(super) fn new(engine: E) -> Self {
        Self { engine, on: false, time: Duration::ZERO, starts: 0, answers: 0 }
    }

    fn timed<R>(&mut self, work: impl FnOnce(&mut E) -> R) -> R {
        if !self.on {
            return work(&mut self.engine);
        }
        let begin = Instant::now();
        let result = work(&mut self.engine);
        self.time += begin.elapsed();
        result
    }
}

impl<E: Engine> Engine for TimedEngine<E> {
    fn identity(&self) -> EngineIdentity {
        self.engine.identity()
    }

    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        rules: u32,
        limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError> {
        self.engine.inspect(class, module, rules, limits)
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.engine.is_compiled(code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        self.starts += 1;
        self.timed(|engine| engine.start(id, entry, fuel))
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        self.answers += 1;
        self.timed(|engine| engine.resume(id, answer, fuel))
    }

    fn discard(&mut self, id: ActivationId) {
        self.timed(|engine| engine.discard(id));
    }
}
