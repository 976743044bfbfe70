//! The engine: embedded classes by their hash, activations by their number.
//!
//! Invariants: a body is in `suspended` exactly while it is; the engine translates requests and counts
//! charges on its own stack, so a body that runs out of fuel is unwound like one that is discarded;
//! stacks are used again, last in first out.

use std::collections::BTreeMap;

use corosensei::stack::DefaultStack;
use gesmas_abi::interface::Interface;
use gesmas_machine::{
    ActivationId, Answer, ClassInterface, CodeHash, End, Engine, EngineIdentity, Entry, MethodName,
    ModuleError, ModuleLimits, Trap, Turn,
};
use gesmas_sdk::{class::Finish, host::NativeClass};

use super::line::{Body, Remains, Stop};
use crate::{
    charge, identity, interface,
    suspended::Suspended,
    translate::{self, Asked, asked},
};

/// Stack of a body, bytes; below it lies a page that nobody may touch, so that a body which
/// overflows it ends the process and corrupts nothing. Pages are used only when they are touched.
const STACK: usize = 1 << 20;

/// Stacks that are kept for the next bodies.
const SPARE_STACKS: usize = 1_024;

/// The text that stands for the module of a native class.
#[must_use]
pub fn native_module(class: &NativeClass) -> Vec<u8> {
    format!("native/{}/{}", class.name, class.version).into_bytes()
}

/// Runs classes that are compiled into this program. Stays on the thread that made it.
#[derive(Default)]
pub struct NativeEngine {
    classes: BTreeMap<CodeHash, NativeClass>,
    suspended: Suspended<Body>,
    spare: Vec<Remains>,
    /// Room for responses.
    response: Vec<u8>,
}

impl NativeEngine {
    /// An engine with these classes.
    ///
    /// # Panics
    /// When two of them have the same name and version.
    pub fn new(classes: impl IntoIterator<Item = NativeClass>) -> Self {
        let mut engine = Self::default();
        for class in classes {
            let code = CodeHash::of(&native_module(&class));
            let other = engine.classes.insert(code, class);
            assert!(other.is_none(), "class {} {} is there twice", class.name, class.version);
        }
        engine
    }

    /// Its classes.
    pub fn classes(&self) -> impl Iterator<Item = &NativeClass> {
        self.classes.values()
    }

    /// The interface of one of its classes.
    #[must_use]
    pub fn interface(&self, code: CodeHash) -> Option<Interface> {
        let class = self.classes.get(&code)?;
        Some(Interface::decode(class.interface).expect("the SDK has encoded it"))
    }

    /// How many bodies are suspended.
    #[must_use]
    pub fn suspended(&self) -> usize {
        self.suspended.len()
    }

    /// Whether this activation is suspended here.
    pub(crate) fn holds(&self, id: ActivationId) -> bool {
        self.suspended.contains(id)
    }

    fn remains(&mut self) -> Remains {
        self.spare.pop().unwrap_or_else(|| {
            Remains::new(DefaultStack::new(STACK).unwrap_or_else(|error| {
                panic!("no stack for a native body, {} are suspended: {error}", self.suspended())
            }))
        })
    }

    /// Unwinds a body, if it is suspended, and keeps its stack.
    fn retire(&mut self, body: Body) {
        let remains = body.into_remains();
        if self.spare.len() < SPARE_STACKS {
            self.spare.push(remains);
        }
    }

    fn out_of_fuel(&mut self, body: Body, fuel: u64) -> Turn {
        self.retire(body);
        Turn::End(End::Trapped(Trap::OutOfFuel(fuel)), 0)
    }

    /// Runs a body to its next stop. Of `fuel`, `charged` is used up already.
    fn turn(
        &mut self,
        id: ActivationId,
        mut body: Body,
        response: &[u8],
        charged: u64,
        fuel: u64,
    ) -> Turn {
        let Some(left) = fuel.checked_sub(charged) else {
            return self.out_of_fuel(body, fuel);
        };
        match body.resume(response) {
            Stop::Asked => {}
            Stop::Finished(finish) => {
                let Some(left) = left.checked_sub(charge::request(length(&finish))) else {
                    return self.out_of_fuel(body, fuel);
                };
                self.retire(body);
                return Turn::End(end(finish), left);
            }
        }
        let (op, request) = body.request();
        let Some(left) = left.checked_sub(charge::request(request.len())) else {
            return self.out_of_fuel(body, fuel);
        };
        match asked(op, request) {
            Ok(Asked::Call(call)) => {
                self.suspended.add(id, body);
                Turn::Call(call, left)
            }
            Ok(Asked::Returned(end) | Asked::Ended(end)) => {
                self.retire(body);
                Turn::End(end, left)
            }
            Err(trap) => {
                self.retire(body);
                Turn::End(End::Trapped(trap), left)
            }
        }
    }
}

/// Length of the request by which a module would end this way.
fn length(finish: &Finish) -> usize {
    match finish {
        Finish::Returned(payload) | Finish::Failed(payload) => 1 + payload.len(),
        Finish::Cancelled => 1,
        Finish::Aborted(payload) => payload.len(),
        Finish::Continue { method, arguments } => 4 + method.len() + arguments.len(),
        Finish::Panicked(message) | Finish::ArgumentsMalformed(message) => message.len(),
    }
}

/// How a body ended.
fn end(finish: Finish) -> End {
    match finish {
        Finish::Returned(result) => End::Returned(result),
        Finish::Failed(error) => End::Failed(error),
        Finish::Cancelled => End::Cancelled,
        Finish::Aborted(error) => End::Aborted(error),
        Finish::Continue { method, arguments } => match MethodName::new(&method) {
            Ok(method) => End::Continue { method, arguments },
            Err(error) => End::Trapped(Trap::HostCallMalformed(error.to_string())),
        },
        Finish::Panicked(message) => End::Trapped(Trap::Panicked(message)),
        Finish::ArgumentsMalformed(message) => End::Trapped(Trap::ArgumentsMalformed(message)),
    }
}

impl Engine for NativeEngine {
    fn identity(&self) -> EngineIdentity {
        identity::native()
    }

    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        _rules: u32,
        limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError> {
        let Some(embedded) = self.classes.get(&CodeHash::of(module)) else {
            let what = "it names no class that is compiled into this program";
            return Err(ModuleError::Invalid(what.into()));
        };
        interface::extract(class, embedded.interface, limits)
    }

    fn is_compiled(&self, code: CodeHash) -> bool {
        self.classes.contains_key(&code)
    }

    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn {
        assert!(!self.holds(id), "activation {} is in use", id.0);
        let class = *self.classes.get(&entry.code).expect("only embedded code is started");
        let (method, arguments) = (entry.method.clone(), entry.arguments.to_vec());
        let body = Body::new(self.remains(), class, method, arguments);
        let charged = charge::ACTIVATION + charge::request(entry.arguments.len());
        self.turn(id, body, &[], charged, fuel)
    }

    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn {
        let body = self.suspended.take(id).expect("only suspended bodies are resumed");
        let mut response = std::mem::take(&mut self.response);
        response.clear();
        translate::response(answer, &mut response);
        let charged = charge::bytes(response.len());
        let turn = self.turn(id, body, &response, charged, fuel);
        self.response = response;
        turn
    }

    fn discard(&mut self, id: ActivationId) {
        let body = self.suspended.take(id).expect("only suspended bodies are discarded");
        self.retire(body);
    }
}
