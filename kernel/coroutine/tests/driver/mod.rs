//! What the tests of the engines share: modules made from text, and a small stand-in for the
//! machine that answers host calls from a store of its own.

#![allow(dead_code, reason = "each test program uses its part of the driver")]

use std::collections::{BTreeMap, VecDeque};

use gesmas_abi::interface::{Interface, Method, MethodKind, TypeOwned};
use gesmas_coroutine::{Settings, WasmEngine};
use gesmas_machine::{
    ActivationId, Answer, CodeHash, End, Engine, Entry, HostCall, MethodName, PAnswer, Trap, Turn,
};

/// Fuel that is enough for everything that ends.
pub(crate) const FUEL: u64 = 50_000_000;
/// Memory of an instance.
pub(crate) const MEMORY: u64 = 4 << 20;

/// The parts that every module of the tests has: the imports, a memory, and `$return`.
const PRELUDE: &str = r#"
    (import "gesmas1" "call" (func $call (param i32 i32 i32 i32 i32) (result i32)))
    (import "gesmas1" "fetch" (func $fetch (param i32 i32)))
    (memory (export "memory") 1)
    (func $op (param i32) (drop (call $call (local.get 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 64))))
    (func $return_number (param i64)
        (i64.store (i32.const 1025) (local.get 0))
        (drop (call $call (i32.const 50) (i32.const 1024) (i32.const 9)
            (i32.const 0) (i32.const 0))))
"#;

/// The interface of a class with these methods, all without parameters.
pub(crate) fn interface(class: &str, methods: &[&str]) -> Interface {
    let method = |name: &&str| Method {
        name: (*name).into(),
        docs: String::new(),
        kind: MethodKind::Update,
        detached: false,
        parameters: Vec::new(),
        result: TypeOwned::Unit,
        error: None,
        signature: 0,
    };
    Interface {
        abi: gesmas_abi::ABI_VERSION,
        class: class.into(),
        docs: String::new(),
        transient: false,
        layout: 0,
        fields: Vec::new(),
        methods: methods.iter().map(method).collect(),
    }
    .sealed()
}

/// A module with an interface section at its end.
pub(crate) fn with_interface(mut module: Vec<u8>, section: &[u8]) -> Vec<u8> {
    let mut custom = Vec::new();
    leb(&mut custom, gesmas_abi::INTERFACE_SECTION.len());
    custom.extend(gesmas_abi::INTERFACE_SECTION.as_bytes());
    custom.extend(section);
    module.push(0);
    leb(&mut module, custom.len());
    module.extend(custom);
    module
}

fn leb(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A whole module from text.
pub(crate) fn text(module: &str) -> Vec<u8> {
    wat::parse_str(module).expect("the text of the test is WebAssembly")
}

/// A class of these methods, with the prelude.
pub(crate) fn class(methods: &[&str], body: &str) -> Vec<u8> {
    let module = text(&format!("(module {PRELUDE} {body})"));
    with_interface(module, &interface("Test", methods).encode())
}

/// A class whose one method `run` has this body.
pub(crate) fn body(body: &str) -> Vec<u8> {
    class(&["run"], &format!("(func (export \"m_run\") (param $length i32) {body})"))
}

/// An engine with room for many bodies.
pub(crate) fn engine() -> WasmEngine {
    WasmEngine::new(Settings { slots: 200, ..Settings::default() }).expect("the host can run it")
}

/// Checks, compiles and installs a module.
pub(crate) fn install(engine: &mut WasmEngine, module: &[u8]) -> CodeHash {
    engine
        .inspect("Test", module, 1, &gesmas_machine::ModuleLimits::default())
        .expect("it is valid");
    let code = CodeHash::of(module);
    let compiled = engine.compiler().compile(module).expect("it compiles");
    engine.install(code, compiled);
    assert!(engine.is_compiled(code));
    code
}

/// A name of a method.
pub(crate) fn method(name: &str) -> MethodName {
    MethodName::new(name).expect("the test's names are names")
}

/// Starts a body.
pub(crate) fn start(
    engine: &mut impl Engine,
    id: u64,
    code: CodeHash,
    name: &str,
    arguments: &[u8],
    fuel: u64,
) -> Turn {
    let method = method(name);
    let entry = Entry { code, method: &method, arguments, memory: MEMORY };
    engine.start(ActivationId(id), entry, fuel)
}

/// How a run of a body went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) calls: Vec<HostCall>,
    pub(crate) end: End,
    pub(crate) left: u64,
}

/// Runs a body to its end; what is left of the fuel is what it goes on with.
pub(crate) fn run(
    engine: &mut impl Engine,
    code: CodeHash,
    name: &str,
    arguments: &[u8],
    mut answer: impl FnMut(&HostCall) -> Answer,
) -> Run {
    let mut turn = start(engine, 1, code, name, arguments, FUEL);
    let mut calls = Vec::new();
    loop {
        match turn {
            Turn::End(end, left) => return Run { calls, end, left },
            Turn::Call(call, left) => {
                let answer = answer(&call);
                calls.push(call);
                turn = engine.resume(ActivationId(1), &answer, left);
            }
        }
    }
}

/// The end of a class's method `run`, which makes no host calls that matter.
pub(crate) fn end_of(module: &[u8]) -> End {
    let mut engine = engine();
    let code = install(&mut engine, module);
    run(&mut engine, code, "run", &[], |_| Answer::Number(7)).end
}

/// The trap of a body.
pub(crate) fn trap_of(text: &str) -> Trap {
    match end_of(&body(text)) {
        End::Trapped(trap) => trap,
        end => panic!("it did not trap: {end:?}"),
    }
}

/// A store with deques and semaphores, enough for the classes of the tests. Nothing blocks in it:
/// a `P` without a permit is told that it would.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) values: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) deques: BTreeMap<Vec<u8>, VecDeque<Vec<u8>>>,
    pub(crate) counts: BTreeMap<Vec<u8>, u64>,
}

impl Store {
    pub(crate) fn answer(&mut self, call: &HostCall) -> Answer {
        match call {
            HostCall::Get { key } => Answer::Optional(self.values.get(key).cloned()),
            HostCall::Set { key, value } => {
                self.values.insert(key.clone(), value.clone());
                Answer::Unit
            }
            HostCall::PushBack { deque, value } => {
                self.deques.entry(deque.clone()).or_default().push_back(value.clone());
                Answer::Unit
            }
            HostCall::PopFront { deque } => {
                Answer::Optional(self.deques.entry(deque.clone()).or_default().pop_front())
            }
            HostCall::Length { collection } => {
                Answer::Number(self.deques.get(collection).map_or(0, |deque| deque.len() as u64))
            }
            HostCall::SetCount { semaphore, count } => {
                self.counts.insert(semaphore.clone(), *count);
                Answer::Unit
            }
            HostCall::V { semaphore, count } => {
                *self.counts.entry(semaphore.clone()).or_default() += count;
                Answer::Unit
            }
            HostCall::P { semaphore, .. } => {
                let count = self.counts.entry(semaphore.clone()).or_default();
                if *count == 0 {
                    return Answer::P(PAnswer::WouldBlock);
                }
                *count -= 1;
                Answer::P(PAnswer::Granted)
            }
            other => panic!("the test's store does not know {other:?}"),
        }
    }
}
