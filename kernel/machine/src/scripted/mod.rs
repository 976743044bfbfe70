//! An engine whose classes are written as short scripts, one host call a line.
//!
//! For tests of whatever is built on the machine: of the machine itself, of a simulator of
//! replicas. A module is the text of its script, so that an invocation's code, hash and journal are
//! what they are for a real class, and a body that was dropped is rebuilt by replay.
//! ```text
//! class Queue
//! init create 1              # kind, name, number of parameters (which is also the signature)
//!   count free $0            # $0, $1 … are the words of the arguments, $ is all of them
//! update consume 0
//!   P filled                 # ends the method as cancelled, where it is
//!   pop items -> item        # answers go into variables
//!   V free
//!   return $item
//! ```
//! Each line costs one unit of fuel, `burn N` costs N, and `grow N` takes N bytes of memory. `instruction.rs` lists all of them.
//! Invariants: as of any [`Engine`]; everything is text.
//! Not here: speed for its own sake, and anything that a production server runs.

mod body;
mod instruction;
mod source;

use std::{collections::BTreeMap, sync::Arc};

use self::{body::Body, source::Source};
use crate::{
    class::ClassInterface,
    code::CodeHash,
    engine::{ActivationId, Engine, EngineIdentity, Entry, Turn},
    host_call::Answer,
    limits::ModuleLimits,
    names::MethodName,
    outcome::ModuleError,
};

/// Runs scripts.
#[derive(Debug, Default)]
pub struct ScriptedEngine {
    sources: BTreeMap<CodeHash, Arc<Source>>,
    bodies: BTreeMap<ActivationId, Body>,
}

impl ScriptedEngine {
    /// An engine that has compiled nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What each of these engines says it is.
    #[must_use]
    pub fn own_identity() -> EngineIdentity {
        EngineIdentity { description: "scripts, version 1".into(), hash: [1; 32] }
    }

    /// The interface of a script.
    ///
    /// # Errors
    /// Says what is wrong with the script.
    pub fn interface_of(script: &str) -> Result<ClassInterface, ModuleError> {
        Source::parse(script.as_bytes()).map(|source| source.interface)
    }

    /// Makes a module ready to run.
    ///
    /// # Errors
    /// Says what is wrong with the script.
    pub fn compile(&mut self, module: &[u8]) -> Result<CodeHash, ModuleError> {
        let code = CodeHash::of(module);
        self.sources.insert(code, Arc::new(Source::parse(module)?));
        Ok(code)
    }

    /// Bodies that are running or suspended.
    #[must_use]
    pub fn activations(&self) -> usize {
        self.bodies.len()
    }

    fn step(&mut self, id: ActivationId, mut body: Body, fuel: u64) -> Turn {
        let turn = body.run(fuel);
        if matches!(turn, Turn::Call(..)) {
            self.bodies.insert(id, body);
        }
        turn
    }
}

impl Engine for ScriptedEngine {
    fn identity(&self) -> EngineIdentity {
        Self::own_identity()
    }

    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        _rules: u32,
        _limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError> {
        let source = Source::parse(module)?;
        if source.class == class {
            Ok(source.interface)
        } else {
            Err(ModuleError::OtherClass(source.class))
        }
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.sources.contains_key(&code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        let source = self.sources.get(&entry.code).expect("only compiled code is started");
        let line = method(source, entry.method);
        let body = Body::new(source.clone(), line, entry.arguments, entry.memory);
        self.step(id, body, fuel)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        let mut body = self.bodies.remove(&id).expect("only a suspended body is resumed");
        match body.take(answer) {
            Some(end) => Turn::End(end, fuel),
            None => self.step(id, body, fuel),
        }
    }

    fn discard(&mut self, id: ActivationId) {
        assert!(self.bodies.remove(&id).is_some(), "only a suspended body is discarded");
    }
}

fn method(source: &Source, name: &MethodName) -> usize {
    *source.starts.get(name).expect("the machine starts methods of the interface only")
}
