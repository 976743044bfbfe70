//! The native engine: the same bodies as coroutines of the process.

mod driver;

use std::cell::Cell;

use driver::{FUEL, Run, Store, install, interface, method, run, start};
use gesmas_coroutine::{ACTIVATION, BothEngines, CALL, NativeEngine, native_module};
use gesmas_machine::{
    ActivationId, Answer, CodeHash, End, Engine, HostCall, ModuleError, ModuleLimits, Trap, Turn,
};
use gesmas_sdk::{
    class::Finish,
    ctx,
    host::{NativeClass, catch},
};

thread_local! {
    /// Witnesses that were dropped on this thread.
    static DROPPED: Cell<u64> = const { Cell::new(0) };
}

/// Makes a host call when it is dropped, as a guard of a class would.
struct Witness;

impl Drop for Witness {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
        ctx::log("dropped");
    }
}

fn body(method: &str, arguments: &[u8]) -> Finish {
    catch(|| match method {
        "sum" => {
            let _witness = Witness;
            let sum = ctx::random() + ctx::random() + ctx::random();
            Finish::Returned(sum.to_le_bytes().to_vec())
        }
        "fail" => {
            let _witness = Witness;
            let number = ctx::random();
            panic!("no use: {} {number}", arguments.len());
        }
        other => unreachable!("the test starts no {other}"),
    })
}

fn class() -> NativeClass {
    let section = interface("Test", &["sum", "fail"]).encode();
    NativeClass { name: "Test", version: "1.2.3", interface: section.leak(), run: body }
}

fn native() -> (NativeEngine, CodeHash) {
    let engine = NativeEngine::new([class()]);
    (engine, CodeHash::of(b"native/Test/1.2.3"))
}

#[test]
fn a_native_class_is_named_by_a_text() {
    let (engine, code) = native();
    assert_eq!(native_module(&class()), b"native/Test/1.2.3");
    assert!(engine.is_compiled(code));
    let limits = ModuleLimits::default();
    let interface = engine.inspect("Test", b"native/Test/1.2.3", 1, &limits).unwrap();
    assert!(interface.methods.contains_key(&method("sum")));
    let unknown = engine.inspect("Test", b"native/Test/1.2.4", 1, &limits);
    assert!(matches!(unknown, Err(ModuleError::Invalid(_))));
    let other = engine.inspect("Other", b"native/Test/1.2.3", 1, &limits);
    assert_eq!(other, Err(ModuleError::OtherClass("Test".into())));
}

#[test]
fn native_bodies_interleave_and_some_are_dropped() {
    let (mut engine, code) = native();
    DROPPED.set(0);
    for id in 0..100 {
        let turn = start(&mut engine, id, code, "sum", &[], FUEL);
        assert_eq!(turn, Turn::Call(HostCall::Random, FUEL - ACTIVATION - 2 * CALL));
    }
    for id in (0..100).rev() {
        if id % 4 == 0 {
            engine.discard(ActivationId(id));
        } else {
            engine.resume(ActivationId(id), &Answer::Number(id), FUEL);
        }
    }
    assert_eq!(DROPPED.get(), 25, "discarding unwinds, and its host calls are ignored");
    for id in (0..100).filter(|id| id % 4 != 0) {
        let turn = engine.resume(ActivationId(id), &Answer::Number(10), FUEL);
        assert!(matches!(turn, Turn::Call(HostCall::Random, _)));
        let turn = engine.resume(ActivationId(id), &Answer::Number(100), FUEL);
        assert!(matches!(turn, Turn::Call(HostCall::Log { .. }, _)));
        let Turn::End(end, _) = engine.resume(ActivationId(id), &Answer::Unit, FUEL) else {
            panic!("it ends");
        };
        assert_eq!(end, End::Returned((id + 110).to_le_bytes().to_vec()));
    }
    assert_eq!(engine.suspended(), 0);
}

#[test]
fn a_panic_is_a_trap_with_its_message_and_place() {
    let (mut engine, code) = native();
    DROPPED.set(0);
    let run = run(&mut engine, code, "fail", b"abc", |_| Answer::Number(1));
    let End::Trapped(Trap::Panicked(message)) = run.end else {
        panic!("it panics: {run:?}");
    };
    assert!(message.starts_with("no use: 3 1"), "{message}");
    assert!(message.contains("native.rs"), "{message}");
    assert_eq!(run.calls, [HostCall::Random], "host calls made while unwinding are ignored");
    assert_eq!(DROPPED.get(), 1);
}

#[test]
fn a_native_body_can_run_out_of_the_fuel_of_its_calls() {
    let (mut engine, code) = native();
    let end = |fuel| Turn::End(End::Trapped(Trap::OutOfFuel(fuel)), 0);
    assert_eq!(start(&mut engine, 1, code, "sum", &[], ACTIVATION - 1), end(ACTIVATION - 1));
    for little in [ACTIVATION + CALL - 1, ACTIVATION + 2 * CALL - 1] {
        assert_eq!(start(&mut engine, 1, code, "sum", &[], little), end(little));
    }
    start(&mut engine, 1, code, "sum", &[], FUEL);
    assert_eq!(engine.resume(ActivationId(1), &Answer::Number(1), 7), end(7));
    assert_eq!(engine.suspended(), 0);
}

#[test]
fn both_engines_run_side_by_side() {
    let (native, native_code) = native();
    let mut wasm = driver::engine();
    let wasm_code = install(
        &mut wasm,
        &driver::body("(call $op (i32.const 31)) (call $return_number (i64.load (i32.const 0)))"),
    );
    let mut both = BothEngines { native, wasm };
    start(&mut both, 1, native_code, "sum", &[], FUEL);
    start(&mut both, 2, wasm_code, "run", &[], FUEL);
    start(&mut both, 3, native_code, "sum", &[], FUEL);
    both.discard(ActivationId(1));
    let Turn::End(end, _) = both.resume(ActivationId(2), &Answer::Number(5), FUEL) else {
        panic!("it ends");
    };
    assert_eq!(end, End::Returned(5u64.to_le_bytes().to_vec()));
    both.discard(ActivationId(3));
    let limits = ModuleLimits::default();
    assert!(both.inspect("Test", b"native/Test/1.2.3", 1, &limits).is_ok());
    assert!(both.inspect("Test", &driver::body(""), 1, &limits).is_ok());
    assert_ne!(both.identity(), both.wasm.identity());
}

#[test]
fn both_engines_without_native_classes_are_as_one_of_modules() {
    let both = BothEngines { native: NativeEngine::default(), wasm: driver::engine() };
    assert_eq!(both.identity(), both.wasm.identity());
    let limits = ModuleLimits::default();
    assert!(both.inspect("Test", b"native/Test/1.2.3", 1, &limits).is_err());
    assert!(both.inspect("Test", &driver::body(""), 1, &limits).is_ok());
}

/// Runs a class's calls one after the other on one store.
fn history(engine: &mut impl Engine, code: CodeHash, calls: &[(&str, Vec<u8>)]) -> Vec<Run> {
    let mut store = Store::default();
    let run = |(name, arguments): &(&str, Vec<u8>)| {
        // Fuel differs between the engines; all else is equal.
        let mut run = run(engine, code, name, arguments, |call| store.answer(call));
        run.left = 0;
        run
    };
    calls.iter().map(run).collect()
}

#[test]
fn the_queue_makes_the_same_calls_on_both_engines() {
    let module = gesmas_classes::find("Queue").expect("it is standard").module;
    let class = gesmas_queue::Queue::native();
    let mut native = NativeEngine::new([class]);
    let mut wasm = driver::engine();
    let limits = ModuleLimits::default();
    let text = native_module(&class);
    assert_eq!(
        wasm.inspect("Queue", module, 1, &limits).expect("the standard class is valid"),
        native.inspect("Queue", &text, 1, &limits).expect("the native class is valid"),
    );
    let code = CodeHash::of(module);
    wasm.install(code, wasm.compiler().compile(module).expect("the standard class compiles"));
    let item = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let calls = [
        ("init", 2u32.to_le_bytes().to_vec()),
        ("produce", item("one")),
        ("produce", item(&"long".repeat(2_000))),
        ("consume", Vec::new()),
        ("consume", Vec::new()),
        ("produce", vec![9, 9]),
        ("consume", vec![1]),
    ];
    let on_wasm = history(&mut wasm, code, &calls);
    assert_eq!(on_wasm, history(&mut native, CodeHash::of(&text), &calls));
    assert!(on_wasm[..5].iter().all(|run| matches!(run.end, End::Returned(_))), "{on_wasm:?}");
    for malformed in &on_wasm[5..] {
        assert!(matches!(malformed.end, End::Trapped(Trap::ArgumentsMalformed(_))));
    }
}

#[test]
fn standard_classes_have_one_interface_on_both_engines() {
    let natives = gesmas_classes::native();
    let native = NativeEngine::new(natives);
    let wasm = driver::engine();
    let limits = ModuleLimits::default();
    for class in natives {
        let module = gesmas_classes::find(class.name).expect("it is standard").module;
        assert_eq!(
            wasm.inspect(class.name, module, 1, &limits).expect("the module is valid"),
            native.inspect(class.name, &native_module(&class), 1, &limits).expect("it is known"),
        );
        wasm.compiler().compile(module).expect("the module compiles");
    }
}
