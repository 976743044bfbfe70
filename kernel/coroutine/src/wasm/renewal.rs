//! Which modules leave an instance that can be made like new, and what it takes.
//!
//! Instantiating costs more than most bodies do, so an instance whose body has returned is used
//! again: its memory gets the bytes that it had at first, and its mutable globals their values. That
//! is the whole of an instance's state if the module cannot change its table and cannot drop a segment;
//! of other modules each body gets an instance of its own.
//! Globals are reached by exports that are added before the module is compiled.
//! Invariant: a body cannot tell a renewed instance from a new one.
//! Not here: which instances are renewed (`instance.rs`).

use wasmparser::{FunctionBody, Operator, Parser, Payload, Result};

use super::settings::FEATURES;

/// What the names of these exports begin with. The counter of calls (`depth.rs`) is exported under
/// this name alone, so that a module which can be renewed has at least one.
pub(super) const RENEWED: &str = "gesmas.renewed";

/// The mutable globals of a module, by their index; none if an instance of it cannot be renewed.
pub(super) fn mutable_globals(module: &[u8]) -> Result<Option<Vec<u32>>> {
    let mut parser = Parser::new(0);
    parser.set_features(FEATURES);
    let mut globals = Vec::new();
    for payload in parser.parse_all(module) {
        match payload? {
            Payload::GlobalSection(section) => {
                for (global, index) in section.into_iter().zip(0..) {
                    globals.extend(global?.ty.mutable.then_some(index));
                }
            }
            Payload::CodeSectionEntry(body) if leaves_traces(&body)? => return Ok(None),
            _ => {}
        }
    }
    Ok(Some(globals))
}

/// Whether a function can change more of its instance than memory and globals.
fn leaves_traces(body: &FunctionBody<'_>) -> Result<bool> {
    for operator in body.get_operators_reader()? {
        if let Operator::TableSet { .. }
        | Operator::TableGrow { .. }
        | Operator::TableFill { .. }
        | Operator::TableCopy { .. }
        | Operator::TableInit { .. }
        | Operator::ElemDrop { .. }
        | Operator::DataDrop { .. } = operator?
        {
            return Ok(true);
        }
    }
    Ok(false)
}
