//! Starting, resuming and dropping bodies: what they see, and what their fuel is.

mod driver;

use driver::{FUEL, body, class, engine, install, method, run, start};
use gesmas_coroutine::{ACTIVATION, BYTE, CALL, Settings, WasmEngine};
use gesmas_machine::{ActivationId, Answer, End, Engine, Entry, HostCall, Trap, Turn};

/// Returns the sum of what three host calls answer.
const SUM: &str = "(local $sum i64)
    (call $op (i32.const 30))
    (local.set $sum (i64.load (i32.const 0)))
    (call $op (i32.const 31))
    (local.set $sum (i64.add (local.get $sum) (i64.load (i32.const 0))))
    (call $op (i32.const 35))
    (call $return_number (i64.add (local.get $sum) (i64.load (i32.const 0))))";

fn returned(number: u64) -> End {
    End::Returned(number.to_le_bytes().to_vec())
}

#[test]
fn a_body_is_a_generator_of_host_calls() {
    let mut engine = engine();
    let code = install(&mut engine, &body(SUM));
    let mut answers = [1, 20, 300].into_iter();
    let run = run(&mut engine, code, "run", &[], |_| {
        Answer::Number(answers.next().expect("it asks three times"))
    });
    assert_eq!(run.calls, [HostCall::Now, HostCall::Random, HostCall::Token]);
    assert_eq!(run.end, returned(321));
}

#[test]
fn many_bodies_interleave_and_some_are_dropped() {
    let mut engine = engine();
    let code = install(&mut engine, &body(SUM));
    for id in 0..150 {
        assert!(matches!(
            start(&mut engine, id, code, "run", &[], FUEL),
            Turn::Call(HostCall::Now, _)
        ));
    }
    let answer = |id: u64, turn: u64| Answer::Number(id * 1_000 * turn);
    for id in (0..150).rev() {
        if id % 5 == 0 {
            engine.discard(ActivationId(id));
        } else {
            let turn = engine.resume(ActivationId(id), &answer(id, 1), FUEL);
            assert!(matches!(turn, Turn::Call(HostCall::Random, _)));
        }
    }
    for id in (0..150).filter(|id| id % 5 != 0) {
        let turn = engine.resume(ActivationId(id), &answer(id, 2), FUEL);
        assert!(matches!(turn, Turn::Call(HostCall::Token, _)));
        if id % 7 == 0 {
            engine.discard(ActivationId(id));
        }
    }
    for id in (0..150).rev().filter(|id| id % 5 != 0 && id % 7 != 0) {
        let turn = engine.resume(ActivationId(id), &answer(id, 3), FUEL);
        assert!(matches!(turn, Turn::End(end, _) if end == returned(id * 6_000)));
    }
    assert_eq!(engine.suspended(), 0);
}

#[test]
fn an_engine_with_suspended_bodies_can_be_dropped() {
    let mut engine = engine();
    let code = install(&mut engine, &body(SUM));
    for id in 0..10 {
        start(&mut engine, id, code, "run", &[], FUEL);
    }
    drop(engine);
}

#[test]
fn a_replay_gives_the_same_calls_whatever_fuel_it_had_before() {
    let mut engine = engine();
    let code = install(&mut engine, &body(SUM));
    let mut turns = Vec::new();
    for (id, first) in [(1, FUEL), (2, u64::MAX), (3, 2 * FUEL)] {
        start(&mut engine, id, code, "run", &[], first);
        engine.resume(ActivationId(id), &Answer::Number(1), first);
        turns.push([
            engine.resume(ActivationId(id), &Answer::Number(2), 1_000),
            engine.resume(ActivationId(id), &Answer::Number(3), 1_000),
        ]);
    }
    assert_eq!(turns[0], turns[1]);
    assert_eq!(turns[0], turns[2]);
}

#[test]
fn the_fuel_table_is_what_is_charged() {
    let mut engine = engine();
    let code = install(&mut engine, &body(SUM));
    let Turn::Call(_, left) = start(&mut engine, 1, code, "run", &[], FUEL) else {
        panic!("it makes a host call");
    };
    let instructions = FUEL - left - ACTIVATION - CALL;
    assert!((1..100).contains(&instructions), "{instructions}");
    let Turn::Call(_, left) = engine.resume(ActivationId(1), &Answer::Number(1), FUEL) else {
        panic!("it makes a host call");
    };
    let instructions = FUEL - left - CALL - 8 * BYTE;
    assert!((1..100).contains(&instructions), "{instructions}");
}

#[test]
fn fuel_can_run_out_anywhere() {
    let mut engine = engine();
    let code = install(&mut engine, &body(SUM));
    let whole = run(&mut engine, code, "run", &[], |_| Answer::Number(1));
    let cost = FUEL - whole.left;
    // WebAssembly's own instructions are checked at calls and loops, so the last few are free.
    let tail = 20;
    for fuel in (0..cost - tail).step_by(37).chain([cost - tail - 1]) {
        let mut turn = start(&mut engine, 1, code, "run", &[], fuel);
        while let Turn::Call(_, left) = turn {
            turn = engine.resume(ActivationId(1), &Answer::Number(1), left);
        }
        let Turn::End(End::Trapped(Trap::OutOfFuel(_)), 0) = turn else {
            panic!("{fuel} of {cost} was enough: {turn:?}");
        };
    }
    let Turn::Call(_, left) = start(&mut engine, 1, code, "run", &[], cost) else {
        panic!("it makes a host call");
    };
    assert!(left < cost);
    engine.discard(ActivationId(1));
}

#[test]
fn arguments_and_large_responses_are_fetched() {
    let mut engine = engine();
    // Returns its arguments, after having read a value that does not fit into the output it names.
    let echo = class(
        &["run"],
        r#"(func (export "m_run") (param $length i32) (local $size i32)
              (call $fetch (i32.const 1) (local.get $length))
              (local.set $size (call $call (i32.const 1) (i32.const 1) (local.get $length)
                  (i32.const 8192) (i32.const 4)))
              (call $fetch (i32.const 8192) (local.get $size))
              (drop (call $call (i32.const 50) (i32.const 8192) (local.get $size)
                  (i32.const 0) (i32.const 0))))"#,
    );
    let code = install(&mut engine, &echo);
    let key = b"a key".to_vec();
    let value: Vec<u8> = [&[0], &b"x".repeat(5_000)[..]].concat();
    let stored = value.clone();
    let run = run(&mut engine, code, "run", &key, |_| Answer::Optional(Some(stored.clone())));
    assert_eq!(run.calls, [HostCall::Get { key }]);
    // The response's tag 1 reads as the kind of a result: an error of the class.
    assert_eq!(run.end, End::Failed(value));
}

#[test]
fn ends_other_than_results_are_taken_at_once() {
    let mut engine = engine();
    let mut end = |op: u32, bytes: &str, length: usize| {
        let module = class(
            &["run"],
            &format!(
                r#"(data (i32.const 0) "{bytes}")
                   (func (export "m_run") (param i32)
                      (drop (call $call (i32.const {op}) (i32.const 0) (i32.const {length})
                          (i32.const 0) (i32.const 0)))
                      (loop $again (br $again)))"#,
            ),
        );
        let code = install(&mut engine, &module);
        run(&mut engine, code, "run", &[], |_| Answer::Unit).end
    };
    assert_eq!(end(51, "why", 3), End::Aborted(b"why".to_vec()));
    assert_eq!(end(53, "oh", 2), End::Trapped(Trap::Panicked("oh".into())));
    let malformed = Trap::ArgumentsMalformed("no number".into());
    assert_eq!(end(54, "no number", 9), End::Trapped(malformed));
    let again = End::Continue { method: method("again"), arguments: b"12".to_vec() };
    assert_eq!(end(52, "\\05\\00\\00\\00again12", 11), again);
}

#[test]
#[should_panic(expected = "all 2 slots for WebAssembly instances are in use")]
fn too_many_bodies_are_a_panic_with_a_reason() {
    let mut engine = WasmEngine::new(Settings { slots: 2, ..Settings::default() }).unwrap();
    let code = install(&mut engine, &body(SUM));
    for id in 0..3 {
        start(&mut engine, id, code, "run", &[], FUEL);
    }
}

#[test]
fn an_instance_that_starts_above_its_memory_is_out_of_memory() {
    let mut engine = engine();
    let code = install(&mut engine, &body(SUM));
    let method = method("run");
    let entry = Entry { code, method: &method, arguments: &[], memory: 65_535 };
    let turn = engine.start(ActivationId(1), entry, FUEL);
    assert_eq!(turn, Turn::End(End::Trapped(Trap::OutOfMemory(65_535)), FUEL));
}

#[test]
fn the_default_settings_hold_a_thousand_suspended_bodies() {
    let mut engine = WasmEngine::new(Settings::default()).unwrap();
    let code = install(&mut engine, &body(SUM));
    for _ in 0..2 {
        for id in 0..1_000 {
            start(&mut engine, id, code, "run", &[], FUEL);
        }
        (0..1_000).for_each(|id| engine.discard(ActivationId(id)));
    }
    assert_eq!(engine.suspended(), 0);
}

#[test]
fn engines_and_compilers_can_move_between_threads() {
    let engine = engine();
    let compiler = engine.compiler();
    let module = body("(call $return_number (i64.const 1))");
    let shared = module.clone();
    let compiled = std::thread::spawn(move || compiler.compile(&shared).unwrap()).join().unwrap();
    let end = std::thread::spawn(move || {
        let mut engine = engine;
        let code = gesmas_machine::CodeHash::of(&module);
        engine.install(code, compiled);
        run(&mut engine, code, "run", &[], |_| Answer::Unit).end
    });
    assert_eq!(end.join().unwrap(), returned(1));
}

#[test]
fn equal_engines_have_equal_identities_whatever_their_slots() {
    let few = WasmEngine::new(Settings { slots: 1, ..Settings::default() }).unwrap();
    assert_eq!(few.identity(), engine().identity());
    assert!(few.identity().description.starts_with("wasm (wasmtime 48.0.8, "));
}
