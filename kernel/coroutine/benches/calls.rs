//! What a call costs in the engines alone: `cargo bench --profile release -p gesmas-coroutine`.
//!
//! Prints microseconds of wall time per call, the least of nine rounds, and nothing else; the
//! machine's share of a call (its state, journal and scheduling) is not in these figures.

#[path = "../tests/driver/mod.rs"]
mod driver;

use std::time::Instant;

use driver::{FUEL, class, engine, install, interface, start};
use gesmas_coroutine::NativeEngine;
use gesmas_machine::{ActivationId, Answer, CodeHash, Engine, Turn};
use gesmas_sdk::{
    class::Finish,
    ctx,
    host::{NativeClass, catch},
};

const ROUNDS: usize = 9;

/// The least time of some rounds of calls, microseconds a call.
fn least(calls: u32, mut call: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        (0..calls).for_each(|_| call());
        best = best.min(begin.elapsed().as_secs_f64() * 1e6 / f64::from(calls));
    }
    best
}

/// One call to its end.
fn whole(engine: &mut impl Engine, code: CodeHash, method: &str) {
    let mut turn = start(engine, 1, code, method, &[], FUEL);
    while let Turn::Call(_, left) = turn {
        turn = engine.resume(ActivationId(1), &Answer::Number(1), left);
    }
}

fn print(kind: &str, engine: &mut impl Engine, code: CodeHash) {
    for (method, what) in [("trivial", "no host call"), ("three", "three host calls")] {
        let cost = least(5_000, || whole(engine, code, method));
        println!("{kind:<7} {what:<34} {cost:8.2} us");
    }
    let suspended = 100;
    let cost = least(50, || {
        (0..suspended).for_each(|id| drop(start(engine, id, code, "three", &[], FUEL)));
        (0..suspended).for_each(|id| engine.discard(ActivationId(id)));
    }) / suspended as f64;
    println!("{kind:<7} {:<34} {cost:8.2} us", "start and discard, 100 suspended");
}

fn body(method: &str, _: &[u8]) -> Finish {
    catch(|| {
        let number = match method {
            "three" => ctx::random() + ctx::random() + ctx::random(),
            _ => 1,
        };
        Finish::Returned(number.to_le_bytes().to_vec())
    })
}

fn main() {
    let module = class(
        &["trivial", "three"],
        r#"(func (export "m_trivial") (param i32) (call $return_number (i64.const 1)))
           (func (export "m_three") (param i32)
              (call $op (i32.const 31)) (call $op (i32.const 31)) (call $op (i32.const 31))
              (call $return_number (i64.load (i32.const 0))))"#,
    );
    let mut wasm = engine();
    let code = install(&mut wasm, &module);
    print("wasm", &mut wasm, code);
    let section = interface("Test", &["trivial", "three"]).encode().leak();
    let class = NativeClass { name: "Test", version: "1", interface: section, run: body };
    let mut native = NativeEngine::new([class]);
    print("native", &mut native, CodeHash::of(b"native/Test/1"));
    let compiler = wasm.compiler();
    let artifact = compiler.artifact(&module).expect("it compiles");
    let cost = least(20, || drop(compiler.load(&artifact).expect("it loads")));
    println!("{:<7} {:<34} {cost:8.2} us", "wasm", "load compiled code");
}
