//! What compiling a function can cost, from its code alone.
//!
//! The compiler's work on a function grows with the square of what it has to follow at once, and no
//! count of the operand stack bounds that: it computes a value where it is needed, so that whatever
//! a function computes can be alive at the same time. So a function has a *weight*: its operators,
//! the parameters and results of its calls and blocks, and, wherever ways meet, the locals that may
//! differ by way, once for each way. The *effort* of a module is the sum of the squares of weights,
//! and a fixed amount for each loop.
//! Invariants: linear in the code times the locals; never less for more code; a function of the
//! module's validated code is measured, so that what does not fit together cannot occur.
//! That effort bounds time is a measured figure (`examples/compile_bombs.rs`), not a proof: the
//! child's limits on time and memory stay the last word.

use wasmparser::{BlockType, FunctionBody, Operator, Result, types::TypesRef};

/// Effort of a loop, however small: its fuel is checked each time around.
const LOOP: u64 = 20_000;

/// What is measured of a function.
pub(super) struct Measure {
    pub(super) effort: u64,
    /// Most loops that are open at one place.
    pub(super) loop_depth: u64,
}

/// Measures the body of a function.
pub(super) fn measure(body: &FunctionBody<'_>, types: TypesRef<'_>) -> Result<Measure> {
    let open = vec![Open::default()];
    let mut meter = Meter { types, weight: 0, loops: 0, nested: 0, deepest: 0, open };
    for operator in body.get_operators_reader()? {
        meter.count(&operator?);
    }
    let effort = meter.weight.saturating_mul(meter.weight).saturating_add(LOOP * meter.loops);
    Ok(Measure { effort, loop_depth: meter.deepest })
}

/// A block, loop or branch of an `if` that is not at its end.
#[derive(Default)]
struct Open {
    is_loop: bool,
    /// Values that go along with a branch to it.
    values: u64,
    /// Branches to it so far.
    branches: u64,
    /// Locals that are written in it.
    written: Locals,
    /// Locals that are read or written in it.
    used: Locals,
}

/// A bit for each local.
#[derive(Default)]
struct Locals(Vec<u64>);

impl Locals {
    fn insert(&mut self, local: u32) {
        let (word, bit) = (local as usize / 64, local % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    fn merge(&mut self, others: &Self) {
        if self.0.len() < others.0.len() {
            self.0.resize(others.0.len(), 0);
        }
        self.0.iter_mut().zip(&others.0).for_each(|(ours, theirs)| *ours |= theirs);
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

impl Open {
    /// Values that may differ by way where the ways meet, for all of them. Where a loop begins, the
    /// compiler cannot know yet which locals are written in it, and follows all that are used.
    fn meeting(&self) -> u64 {
        let locals = if self.is_loop { self.used.len() } else { self.written.len() };
        (locals + self.values).saturating_mul(self.branches + 1)
    }
}

struct Meter<'a> {
    types: TypesRef<'a>,
    weight: u64,
    loops: u64,
    /// Loops that are open.
    nested: u64,
    deepest: u64,
    open: Vec<Open>,
}

impl Meter<'_> {
    fn count(&mut self, operator: &Operator<'_>) {
        self.add(1);
        match operator {
            Operator::Block { blockty } | Operator::If { blockty } => self.begin(*blockty, false),
            Operator::Loop { blockty } => self.begin(*blockty, true),
            Operator::Else => self.branch(0),
            Operator::End => self.end(),
            Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                self.branch(*relative_depth);
            }
            Operator::BrTable { targets } => {
                targets.targets().flatten().for_each(|target| self.branch(target));
                self.branch(targets.default());
            }
            Operator::LocalGet { local_index } => self.use_local(*local_index, false),
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                self.use_local(*local_index, true);
            }
            Operator::Call { function_index } => {
                let ty = self.types.core_function_at(*function_index);
                let (parameters, results) = arity(self.types, ty);
                self.add(parameters + results);
            }
            Operator::CallIndirect { type_index, .. } => {
                let (parameters, results) = self.arity_at(*type_index);
                self.add(parameters + results);
            }
            _ => {}
        }
    }

    fn add(&mut self, weight: u64) {
        self.weight = self.weight.saturating_add(weight);
    }

    fn begin(&mut self, ty: BlockType, is_loop: bool) {
        let (parameters, results) = match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(index) => self.arity_at(index),
        };
        self.add(parameters + results);
        let values = if is_loop { parameters } else { results };
        self.open.push(Open { is_loop, values, ..Open::default() });
        self.loops += u64::from(is_loop);
        self.nested += u64::from(is_loop);
        self.deepest = self.deepest.max(self.nested);
    }

    fn use_local(&mut self, local: u32, write: bool) {
        let around = self.open.last_mut().expect("validated code is within its function");
        around.used.insert(local);
        if write {
            around.written.insert(local);
        }
    }

    fn branch(&mut self, depth: u32) {
        let target = self.open.iter_mut().rev().nth(depth as usize);
        target.expect("a validated branch has a target").branches += 1;
    }

    fn end(&mut self) {
        let ended = self.open.pop().expect("validated code is nested");
        self.add(ended.meeting());
        self.nested -= u64::from(ended.is_loop);
        if let Some(around) = self.open.last_mut() {
            around.written.merge(&ended.written);
            around.used.merge(&ended.used);
        }
    }

    fn arity_at(&self, ty: u32) -> (u64, u64) {
        arity(self.types, self.types.core_type_at_in_module(ty))
    }
}

/// How many parameters and results a type of functions has.
fn arity(types: TypesRef<'_>, ty: wasmparser::types::CoreTypeId) -> (u64, u64) {
    match &types.get(ty).map(|ty| &ty.composite_type.inner) {
        Some(wasmparser::CompositeInnerType::Func(ty)) => {
            (ty.params().len() as u64, ty.results().len() as u64)
        }
        _ => (0, 0),
    }
}
