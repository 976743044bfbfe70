//! A body cannot tell an instance that was used before from a new one.

mod driver;

use driver::{FUEL, MEMORY, Run, body, class, engine, install, method, run, start};
use gesmas_coroutine::{Settings, WasmEngine};
use gesmas_machine::{ActivationId, Answer, End, Engine, Entry, Trap, Turn};

fn returned(number: u64) -> End {
    End::Returned(number.to_le_bytes().to_vec())
}

/// Runs a method several times in one engine; all runs must be as the first.
fn is_the_same_each_time(module: &[u8], name: &str) -> Run {
    let mut engine = engine();
    let code = install(&mut engine, module);
    let mut once = || run(&mut engine, code, name, &[], |_| Answer::Number(7));
    let first = once();
    // Long enough for pages to be protected, and protected again.
    for _ in 0..2_100 {
        assert_eq!(once(), first);
    }
    first
}

/// Ways to write on a memory: by an instruction, by one that the host carries out, across two pages,
/// by the host with a response and with arguments.
const WRITES: [&str; 5] = [
    "(i64.store (i32.const AT) (i64.const -1))",
    "(memory.fill (i32.const AT) (i32.const 255) (i32.const 64))",
    "(i64.store (i32.const BEFORE) (i64.const -1))",
    "(drop (call $call (i32.const 30) (i32.const 0) (i32.const 0) (i32.const AT) (i32.const 8)))",
    "(call $fetch (i32.const AT) (i32.const 8))",
];

/// A method for each way and page, which adds up all memory before it writes, and one that writes
/// beyond the memory.
fn writing() -> (Vec<u8>, Vec<String>) {
    let mut names = Vec::new();
    let mut methods = String::new();
    for (way, write) in WRITES.iter().enumerate() {
        for page in 0..16 {
            let (at, before) = (page * 4096 + 16, if page == 0 { 65_528 } else { page * 4096 - 4 });
            let write = write.replace("AT", &at.to_string());
            let write = write.replace("BEFORE", &before.to_string());
            let name = format!("write_{way}_{page}");
            methods += &format!(
                r#"(func (export "m_{name}") (param i32) (local $all i64)
                    (local.set $all (call $all)) {write} (call $return_number (local.get $all)))"#
            );
            names.push(name);
        }
    }
    methods += r#"
        (func (export "m_beyond") (param i32) (i64.store (i32.const 65532) (i64.const 1)))
        (func $all (result i64) (local $at i32) (local $sum i64)
            (loop $next
                (local.set $sum (i64.add (local.get $sum) (i64.load (local.get $at))))
                (local.set $at (i32.add (local.get $at) (i32.const 8)))
                (br_if $next (i32.lt_u (local.get $at) (i32.const 65536))))
            (local.get $sum))"#;
    let all: Vec<_> = names.iter().map(String::as_str).chain(["beyond"]).collect();
    (class(&all, &methods), names)
}

#[test]
fn each_write_on_each_page_is_undone() {
    let (module, names) = writing();
    let mut engine = engine();
    let code = install(&mut engine, &module);
    let mut number = 1_usize;
    for turn in 0..5_000 {
        // Any order will do in which every method follows many others.
        number = (number * 69_069 + 1) % (1 << 32);
        let name = &names[(number >> 16) % names.len()];
        let run = run(&mut engine, code, name, &[255; 8], |_| Answer::Number(u64::MAX));
        assert_eq!(run.end, returned(0), "{name} at {turn}");
    }
    let beyond = run(&mut engine, code, "beyond", &[], |_| Answer::Unit);
    assert!(matches!(beyond.end, End::Trapped(Trap::Fault(_))), "{beyond:?}");
}

#[test]
fn whoever_gets_the_slot_of_a_settled_instance_can_write_on_it() {
    let filling = body(
        "(memory.fill (i32.const 4096) (i32.const 1) (i32.const 61440))
        (call $return_number (i64.load (i32.const 60000)))",
    );
    let counting = body("(call $return_number (i64.const 3))");
    let settings = Settings { slots: 1, ..Settings::default() };
    let mut engine = WasmEngine::new(settings).expect("the host can run it");
    let [filling, counting] = [filling, counting].map(|module| install(&mut engine, &module));
    for _ in 0..3 {
        for _ in 0..10 {
            let end = run(&mut engine, counting, "run", &[], |_| Answer::Unit).end;
            assert_eq!(end, returned(3));
        }
        let end = run(&mut engine, filling, "run", &[], |_| Answer::Unit).end;
        assert_eq!(end, returned(0x0101_0101_0101_0101));
    }
}

#[test]
fn memory_and_globals_are_as_at_first() {
    // Counts in all places that it can reach, the ends of the memory and the data among them.
    let counting = class(
        &["run"],
        r#"(global $count (mut i64) (i64.const 5))
        (global $ratio (mut f64) (f64.const 0.5))
        (data (i32.const 4096) "\09")
        (func $bump (param $at i32) (result i64)
            (i64.store (local.get $at) (i64.add (i64.load (local.get $at)) (i64.const 1)))
            (i64.load (local.get $at)))
        (func (export "m_run") (param i32)
            (global.set $count (i64.add (global.get $count) (i64.const 1)))
            (global.set $ratio (f64.mul (global.get $ratio) (f64.const 2)))
            (call $return_number (i64.add (global.get $count)
                (i64.add (i64.trunc_f64_s (global.get $ratio))
                    (i64.add (call $bump (i32.const 0))
                        (i64.add (call $bump (i32.const 4096)) (call $bump (i32.const 65528))))))))"#,
    );
    let first = is_the_same_each_time(&counting, "run");
    assert_eq!(first.end, returned(6 + 1 + 1 + 10 + 1));
}

#[test]
fn a_memory_that_grew_is_small_again() {
    let growing = body(
        "(drop (memory.grow (i32.const 1)))
        (i64.store (i32.const 131064) (i64.const 1))
        (call $return_number (i64.extend_i32_u (memory.size)))",
    );
    assert_eq!(is_the_same_each_time(&growing, "run").end, returned(2));
}

#[test]
fn a_table_that_was_written_is_as_at_first() {
    let writing = class(
        &["run"],
        r#"(type $number (func (result i64)))
        (table 2 funcref)
        (elem (i32.const 0) $one $two)
        (elem declare func $two)
        (func $one (result i64) (i64.const 1))
        (func $two (result i64) (i64.const 2))
        (func (export "m_run") (param i32) (local $before i64)
            (local.set $before (call_indirect (type $number) (i32.const 0)))
            (table.set (i32.const 0) (ref.func $two))
            (call $return_number (local.get $before)))"#,
    );
    assert_eq!(is_the_same_each_time(&writing, "run").end, returned(1));
}

#[test]
fn a_segment_that_was_dropped_is_there_again() {
    let dropping = class(
        &["run"],
        r#"(data $bytes "\2a")
        (func (export "m_run") (param i32)
            (memory.init $bytes (i32.const 0) (i32.const 0) (i32.const 1))
            (data.drop $bytes)
            (call $return_number (i64.load8_u (i32.const 0))))"#,
    );
    assert_eq!(is_the_same_each_time(&dropping, "run").end, returned(42));
}

#[test]
fn a_reference_in_a_global_is_as_at_first() {
    let keeping = class(
        &["run"],
        r#"(global $kept (mut funcref) (ref.null func))
        (elem declare func $return_number)
        (func (export "m_run") (param i32) (local $null i64)
            (local.set $null (i64.extend_i32_u (ref.is_null (global.get $kept))))
            (global.set $kept (ref.func $return_number))
            (call $return_number (local.get $null)))"#,
    );
    assert_eq!(is_the_same_each_time(&keeping, "run").end, returned(1));
}

#[test]
fn what_a_body_left_behind_that_trapped_is_gone() {
    let trapping = class(
        &["run"],
        r#"(global $count (mut i64) (i64.const 0))
        (func (export "m_run") (param i32)
            (global.set $count (i64.add (global.get $count) (i64.const 1)))
            (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
            (if (i64.ge_u (i64.add (global.get $count) (i64.load (i32.const 0))) (i64.const 3))
                (then (call $return_number (i64.const 0))))
            (unreachable))"#,
    );
    let first = is_the_same_each_time(&trapping, "run");
    assert!(matches!(first.end, End::Trapped(Trap::Fault(_))), "{first:?}");
}

#[test]
fn arguments_and_responses_of_the_last_body_cannot_be_fetched() {
    let module = class(
        &["keep", "fetch"],
        r#"(func (export "m_keep") (param i32) (call $return_number (i64.const 0)))
        (func (export "m_fetch") (param i32)
            (call $fetch (i32.const 0) (i32.const 4))
            (call $return_number (i64.load (i32.const 0))))"#,
    );
    let mut engine = engine();
    let code = install(&mut engine, &module);
    // Its arguments were not fetched, so they are kept to its end.
    assert_eq!(run(&mut engine, code, "keep", b"four", |_| Answer::Unit).end, returned(0));
    let end = run(&mut engine, code, "fetch", &[], |_| Answer::Unit).end;
    assert!(matches!(end, End::Trapped(Trap::HostCallMalformed(_))), "{end:?}");
}

#[test]
fn code_that_is_compiled_twice_goes_on_in_the_instances_it_has() {
    let module = body("(call $op (i32.const 30)) (call $return_number (i64.const 5))");
    let mut engine = engine();
    let code = install(&mut engine, &module);
    assert!(matches!(start(&mut engine, 9, code, "run", &[], FUEL), Turn::Call(..)));
    let once = |engine: &mut WasmEngine| run(engine, code, "run", &[], |_| Answer::Number(1)).end;
    assert_eq!(once(&mut engine), returned(5));
    assert_eq!(install(&mut engine, &module), code);
    assert_eq!(once(&mut engine), returned(5));
    let turn = engine.resume(ActivationId(9), &Answer::Number(1), FUEL);
    assert!(matches!(turn, Turn::End(end, _) if end == returned(5)));
    assert_eq!(once(&mut engine), returned(5));
}

#[test]
fn instances_that_are_kept_take_no_slot_from_a_body() {
    let mut engine =
        WasmEngine::new(Settings { slots: 4, ..Settings::default() }).expect("the host can run it");
    let number = |value: u32| {
        body(&format!("(call $op (i32.const 30)) (call $return_number (i64.const {value}))"))
    };
    let codes: Vec<_> = (0..6).map(|value| install(&mut engine, &number(value))).collect();
    for (value, code) in codes.iter().enumerate() {
        let end = run(&mut engine, *code, "run", &[], |_| Answer::Number(1)).end;
        assert_eq!(end, returned(value as u64));
    }
    // All slots at once, by code that is kept and by code that is not.
    for (id, code) in codes.iter().rev().step_by(2).chain(&codes[..1]).enumerate() {
        assert!(matches!(start(&mut engine, id as u64, *code, "run", &[], FUEL), Turn::Call(..)));
    }
    assert_eq!(engine.suspended(), 4);
}

#[test]
fn another_limit_of_memory_counts_at_once() {
    let growing = body(
        "(drop (memory.grow (i32.const 1)))
        (call $return_number (i64.extend_i32_u (memory.size)))",
    );
    let plain = body("(call $return_number (i64.extend_i32_u (memory.size)))");
    let mut engine = engine();
    let (growing, plain) = (install(&mut engine, &growing), install(&mut engine, &plain));
    let name = method("run");
    let mut with = |code, memory| {
        let entry = Entry { code, method: &name, arguments: &[], memory };
        match engine.start(ActivationId(1), entry, FUEL) {
            Turn::End(end, _) => end,
            Turn::Call(call, _) => panic!("{call:?}"),
        }
    };
    for _ in 0..2 {
        assert_eq!(with(growing, MEMORY), returned(2));
        assert_eq!(with(plain, MEMORY), returned(1));
        assert_eq!(with(growing, 64 << 10), End::Trapped(Trap::OutOfMemory(64 << 10)));
        assert_eq!(with(plain, 1), End::Trapped(Trap::OutOfMemory(1)));
    }
}
