//! A bound on recursion that does not depend on how large the compiler makes a frame.
//!
//! Where the native stack ends differs between builds, so a body that recursed until then would end
//! in different states on different replicas. So, before it is compiled, a module gets a counter
//! that each function which calls another takes its weight from when it is entered, and gives it
//! back when it returns; below zero it traps. A weight counts what a frame can hold: the function's
//! parameters and locals, a byte of body for each value it computes, and the parameters and results
//! of its calls and blocks, which come many at a time.
//! Invariants: what a module computes does not change; every path out of a function gives its
//! weight back, since `return` becomes a branch out of a block around the body; a function that
//! calls none of the module's needs no weight, since only one of its frames is on the stack.
//! The native stack has [`NATIVE_BYTES`] for each byte of weight. That this is ample is a measured
//! figure, not a proof: a module that finds a way past it meets the native check, which is the same
//! trap, at a depth that is equal on equal builds only.

use wasmparser::{BinaryReader, BlockType, FunctionBody, Operator, Parser, Payload, ValType};

use super::{renewal::RENEWED, settings::FEATURES};

/// Weight that can be on the stack.
pub(crate) const DEPTH: i32 = 384 << 10;

/// Weight of a call beside its values: the frame's own words.
pub(crate) const FRAME: usize = 32;

/// Native stack for each unit of [`DEPTH`].
pub(crate) const NATIVE_BYTES: usize = 8;

/// Name under which the counter is exported, so that its trap can be told from others.
pub(super) const DEPTH_EXPORT: &str = "gesmas.depth";

/// Exports that begin with this are refused, since the counter's does.
pub(super) const RESERVED: &str = "gesmas.";

type Result<T> = wasmparser::Result<T>;

/// Sections that get something appended, by their number.
const TYPE: u8 = 1;
const GLOBAL: u8 = 6;
const EXPORT: u8 = 7;
const CODE: u8 = 10;

/// The order of the sections of a module, by their number.
const ORDER: [u8; 12] = [TYPE, 2, 3, 4, 5, GLOBAL, EXPORT, 8, 9, 12, CODE, 11];

/// The module with its calls counted, and with exports of the globals that make an instance of it like
/// new (`renewal.rs`), if those are known. Custom sections are left out: nothing of them is compiled.
pub(super) fn bounded(module: &[u8], renewed: Option<&[u32]>) -> Result<Vec<u8>> {
    let mut plan = Plan::default();
    let mut parser = Parser::new(0);
    parser.set_features(FEATURES);
    let mut sections: [Option<&[u8]>; 13] = [None; 13];
    for payload in parser.parse_all(module) {
        let payload = payload?;
        if let Some((id @ 1..13, range)) = payload.as_section() {
            sections[usize::from(id)] = Some(&module[range]);
        }
        plan.visit(payload)?;
    }
    let code = plan.code(module)?;
    let mut out = module[..8].to_vec();
    for id in ORDER {
        let old = sections[usize::from(id)];
        let content = match id {
            TYPE => Some(append(old, &plan.block_types)?),
            GLOBAL => Some(append(old, &[counter()])?),
            EXPORT => Some(append(old, &plan.exports(renewed))?),
            CODE if old.is_some() => Some(code.clone()),
            _ => old.map(<[u8]>::to_vec),
        };
        if let Some(content) = content {
            out.push(id);
            led(&mut out, &content);
        }
    }
    Ok(out)
}

/// What is counted of a function.
struct Measure {
    weight: usize,
    /// Where it returns early, and how many blocks are open there.
    returns: Vec<(usize, usize)>,
    /// Whether it calls a function of the module.
    calls: bool,
}

/// What is read of a module before its code is written.
#[derive(Default)]
struct Plan<'a> {
    types: Vec<wasmparser::FuncType>,
    /// Types of the functions that are not imported.
    functions: Vec<u32>,
    imported: u32,
    globals: u32,
    bodies: Vec<FunctionBody<'a>>,
    /// Types of blocks with several results, to be appended.
    block_types: Vec<Vec<u8>>,
}

impl<'a> Plan<'a> {
    fn visit(&mut self, payload: Payload<'a>) -> Result<()> {
        match payload {
            Payload::TypeSection(types) => {
                self.types = types.into_iter_err_on_gc_types().collect::<Result<_>>()?;
            }
            Payload::ImportSection(imports) => {
                self.imported = u32::try_from(imports.into_imports().count()).unwrap_or(u32::MAX);
            }
            Payload::FunctionSection(functions) => {
                self.functions = functions.into_iter().collect::<Result<_>>()?;
            }
            Payload::GlobalSection(globals) => self.globals = globals.count(),
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            _ => {}
        }
        Ok(())
    }

    /// The counter, and with the globals to be renewed once more.
    fn exports(&self, renewed: Option<&[u32]>) -> Vec<Vec<u8>> {
        let mut exports = vec![export(DEPTH_EXPORT, self.globals)];
        if let Some(globals) = renewed {
            exports.push(export(RENEWED, self.globals));
            let name = |global: &u32| export(&format!("{RENEWED}.{global}"), *global);
            exports.extend(globals.iter().map(name));
        }
        exports
    }

    /// The code section. `module` is what the offsets of operators count in.
    fn code(&mut self, module: &[u8]) -> Result<Vec<u8>> {
        let bodies = std::mem::take(&mut self.bodies);
        let mut code = Vec::new();
        unsigned(&mut code, bodies.len());
        for (body, index) in bodies.iter().zip(0..) {
            led(&mut code, &self.function(module, body, index)?);
        }
        Ok(code)
    }

    fn function(
        &mut self,
        module: &[u8],
        body: &FunctionBody<'_>,
        index: usize,
    ) -> Result<Vec<u8>> {
        let measure = self.measure(body, index)?;
        if !measure.calls {
            return Ok(body.as_bytes().to_vec());
        }
        let operators = body.get_operators_reader()?.original_position();
        let mut out = module[body.range().start..operators].to_vec();
        self.take(&mut out, measure.weight);
        out.push(0x02);
        self.block_type(&mut out, index);
        let mut copied = operators;
        for (offset, nesting) in measure.returns {
            out.extend(&module[copied..offset]);
            out.push(0x0c);
            unsigned(&mut out, nesting);
            copied = offset + 1;
        }
        // The end of the body becomes the end of the block.
        out.extend(&module[copied..body.range().end]);
        self.give(&mut out, measure.weight);
        out.push(0x0b);
        Ok(out)
    }

    fn measure(&self, body: &FunctionBody<'_>, index: usize) -> Result<Measure> {
        let mut weight = FRAME + body.range().len() + self.values(self.functions.get(index));
        for local in body.get_locals_reader()? {
            weight += local?.0 as usize;
        }
        let (mut returns, mut nesting, mut calls) = (Vec::new(), 0usize, false);
        for operator in body.get_operators_reader()?.into_iter_with_offsets() {
            match operator? {
                (
                    Operator::Block { blockty }
                    | Operator::Loop { blockty }
                    | Operator::If { blockty },
                    _,
                ) => {
                    nesting += 1;
                    if let BlockType::FuncType(ty) = blockty {
                        weight += self.values(Some(&ty));
                    }
                }
                (Operator::End, _) => nesting = nesting.saturating_sub(1),
                (Operator::Return, offset) => returns.push((offset, nesting)),
                (Operator::Call { function_index }, _) => {
                    if let Some(callee) = function_index.checked_sub(self.imported) {
                        calls = true;
                        weight += self.values(self.functions.get(callee as usize));
                    }
                }
                (Operator::CallIndirect { type_index, .. }, _) => {
                    calls = true;
                    weight += self.values(Some(&type_index));
                }
                _ => {}
            }
        }
        Ok(Measure { weight, returns, calls })
    }

    /// How many parameters and results a type has.
    fn values(&self, ty: Option<&u32>) -> usize {
        let ty = ty.and_then(|ty| self.types.get(*ty as usize));
        ty.map_or(0, |ty| ty.params().len() + ty.results().len())
    }

    /// The type of a block that gives the results of a function.
    fn block_type(&mut self, out: &mut Vec<u8>, function: usize) {
        let ty = self.functions.get(function).and_then(|ty| self.types.get(*ty as usize));
        match ty.map_or(&[][..], |ty| ty.results()) {
            [] => out.push(0x40),
            [one] => out.push(value_type(*one)),
            results => {
                let mut ty = vec![0x60, 0];
                unsigned(&mut ty, results.len());
                ty.extend(results.iter().map(|result| value_type(*result)));
                let known = self.block_types.iter().position(|known| *known == ty);
                let index = known.unwrap_or_else(|| {
                    self.block_types.push(ty);
                    self.block_types.len() - 1
                });
                signed(out, (self.types.len() + index) as i64);
            }
        }
    }

    /// Takes a weight from the counter, and traps when it is below zero.
    fn take(&self, out: &mut Vec<u8>, weight: usize) {
        self.count(out, weight, 0x6b);
        out.push(0x23);
        unsigned(out, self.globals as usize);
        out.extend([0x41, 0x00, 0x48, 0x04, 0x40, 0x00, 0x0b]);
    }

    /// Gives a weight back to the counter.
    fn give(&self, out: &mut Vec<u8>, weight: usize) {
        self.count(out, weight, 0x6a);
    }

    fn count(&self, out: &mut Vec<u8>, weight: usize, operator: u8) {
        out.push(0x23);
        unsigned(out, self.globals as usize);
        out.push(0x41);
        signed(out, weight as i64);
        out.push(operator);
        out.push(0x24);
        unsigned(out, self.globals as usize);
    }
}

/// An export of a global.
fn export(name: &str, global: u32) -> Vec<u8> {
    let mut export = Vec::new();
    led(&mut export, name.as_bytes());
    export.push(3);
    unsigned(&mut export, global as usize);
    export
}

/// The counter: a mutable number that begins at [`DEPTH`].
fn counter() -> Vec<u8> {
    let mut global = vec![0x7f, 0x01, 0x41];
    signed(&mut global, DEPTH.into());
    global.push(0x0b);
    global
}

fn value_type(ty: ValType) -> u8 {
    match ty {
        ValType::I32 => 0x7f,
        ValType::I64 => 0x7e,
        ValType::F32 => 0x7d,
        ValType::F64 => 0x7c,
        ValType::V128 => 0x7b,
        // The only references without garbage collection.
        ValType::Ref(_) => 0x70,
    }
}

/// A section with items appended; it may not have been there.
fn append(section: Option<&[u8]>, items: &[Vec<u8>]) -> Result<Vec<u8>> {
    let section = section.unwrap_or(&[0]);
    let mut reader = BinaryReader::new_features(section, 0, FEATURES);
    let count = reader.read_var_u32()?;
    let mut out = Vec::new();
    unsigned(&mut out, count as usize + items.len());
    out.extend(&section[reader.original_position()..]);
    out.extend(items.concat());
    Ok(out)
}

/// Bytes led by their length.
fn led(out: &mut Vec<u8>, bytes: &[u8]) {
    unsigned(out, bytes.len());
    out.extend(bytes);
}

/// A number of a module, seven bits a byte.
fn unsigned(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The same with a sign.
fn signed(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}
