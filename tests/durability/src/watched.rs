//! An engine that tells at which suspension points its bodies wait, and how they have lived.
//!
//! The machine's views name the method and the semaphore that a call waits for; they do not tell the
//! first `P` of a loop from a later one, which a rebuilt body reaches by another way. The engine sees
//! every host call, so it can.
//! Invariant: it changes nothing: calls, answers, fuel and identity are those of the engine inside.

use std::collections::{BTreeMap, BTreeSet};

use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, End, Engine, EngineIdentity, Entry, HostCall,
    ModuleError, ModuleLimits, Turn, Wait,
};

/// A place in a method where its coroutine can wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// The method.
    pub method: String,
    /// Which `P` of the call it is, from 1, those included that did not have to wait.
    pub nth: u32,
    /// The field of the semaphore.
    pub semaphore: String,
}

impl Point {
    /// A point by its parts.
    #[must_use]
    pub fn new(method: &str, nth: u32, semaphore: &str) -> Self {
        Self { method: method.into(), nth, semaphore: semaphore.into() }
    }
}

/// The field that a semaphore belongs to. One that is named at run time has its name before a zero byte.
pub(crate) fn field(semaphore: &[u8]) -> String {
    let field = semaphore.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(field).into_owned()
}

/// All that a body asked and heard, from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// Its method.
    pub method: String,
    /// Its host calls.
    pub calls: Vec<HostCall>,
    /// Their answers. The last call of a body that waits has none yet.
    pub answers: Vec<Answer>,
    /// How it ended, if it has.
    pub end: Option<End>,
}

impl Life {
    /// Where it waits or would, if its last call is a `P`.
    fn point(&self) -> Option<Point> {
        let Some(HostCall::P { semaphore, .. }) = self.calls.last() else {
            return None;
        };
        let asks = self.calls.iter().filter(|call| matches!(call, HostCall::P { .. })).count();
        let nth = u32::try_from(asks).expect("scripts are short");
        Some(Point::new(&self.method, nth, &field(semaphore)))
    }
}

/// See the file's head.
#[derive(Debug)]
pub struct Watched<E> {
    engine: E,
    bodies: BTreeMap<ActivationId, Life>,
    ended: Vec<Life>,
    asked: BTreeSet<Point>,
}

impl<E> Watched<E> {
    /// Watches an engine that has no bodies yet.
    pub const fn new(engine: E) -> Self {
        Self { engine, bodies: BTreeMap::new(), ended: Vec::new(), asked: BTreeSet::new() }
    }

    /// The engine inside.
    pub const fn inner_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Where bodies have asked for a permit and were willing to wait, whether they had to or not.
    pub const fn asked(&self) -> &BTreeSet<Point> {
        &self.asked
    }

    /// Where the bodies wait. Between two entries of the log all that are there do.
    ///
    /// # Panics
    /// When one made another host call last: then it does not wait.
    #[must_use]
    pub fn points(&self) -> BTreeSet<Point> {
        let points = self.bodies.values().map(Life::point);
        points.map(|point| point.expect("only a P suspends a body")).collect()
    }

    /// The bodies that have ended since this was asked last. A body that was rebuilt has lived twice
    /// up to where it waited, and must have lived equally.
    pub fn take_ended(&mut self) -> Vec<Life> {
        std::mem::take(&mut self.ended)
    }

    fn note(&mut self, id: ActivationId, mut life: Life, turn: Turn) -> Turn {
        match &turn {
            Turn::End(end, _) => {
                life.end = Some(end.clone());
                self.ended.push(life);
            }
            Turn::Call(call, _) => {
                life.calls.push(call.clone());
                if !matches!(call, HostCall::P { wait: Wait::Never, .. }) {
                    self.asked.extend(life.point());
                }
                self.bodies.insert(id, life);
            }
        }
        turn
    }
}

impl<E: Engine> Engine for Watched<E> {
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
        let method = entry.method.as_str().into();
        let life = Life { method, calls: Vec::new(), answers: Vec::new(), end: None };
        let turn = self.engine.start(id, entry, fuel);
        self.note(id, life, turn)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        let mut life = self.bodies.remove(&id).expect("only a body is answered");
        life.answers.push(answer.clone());
        let turn = self.engine.resume(id, answer, fuel);
        self.note(id, life, turn)
    }

    fn discard(&mut self, id: ActivationId) {
        self.bodies.remove(&id);
        self.engine.discard(id);
    }
}
