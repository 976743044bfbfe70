//! Modules that mean harm: each is refused, or ends as a typed trap, and the engine goes on.

mod driver;

use driver::{body, class, end_of, engine, install, interface, run, text, trap_of, with_interface};
use gesmas_machine::{Answer, End, Engine, LimitExceeded, ModuleError, ModuleLimits, Trap};

/// Why a module is refused.
fn refusal(module: &[u8]) -> ModuleError {
    refusal_within(module, &ModuleLimits::default())
}

fn refusal_within(module: &[u8], limits: &ModuleLimits) -> ModuleError {
    engine().inspect("Test", module, 1, limits).expect_err("it must be refused")
}

/// A module from text, with an interface of one method `run`.
fn module(parts: &str) -> Vec<u8> {
    let run = r#"(func (export "m_run") (param i32))"#;
    with_interface(text(&format!("(module {parts} {run})")), &interface("Test", &["run"]).encode())
}

const MEMORY: &str = r#"(memory (export "memory") 1)"#;

#[test]
fn a_loop_without_end_uses_up_its_fuel() {
    assert_eq!(trap_of("(loop $again (br $again))"), Trap::OutOfFuel(driver::FUEL));
}

/// How often a function can call itself, by the host calls it makes, when it does this before and
/// after it.
fn depth_of(before: &str, after: &str) -> usize {
    let mut engine = engine();
    let many = "i64 ".repeat(60);
    let module = class(
        &["run"],
        &format!(
            r#"(func $many (result {many}) {})
               (func $sink (param {many}))
               (func $down (call $op (i32.const 30)) {before} (call $down) {after})
               (func (export "m_run") (param i32) (call $down))"#,
            "(i64.load (i32.const 0))".repeat(60)
        ),
    );
    let code = install(&mut engine, &module);
    let run = run(&mut engine, code, "run", &[], |_| Answer::Number(7));
    assert_eq!(run.end, End::Trapped(Trap::StackOverflow));
    run.calls.len()
}

#[test]
fn a_recursion_without_end_is_too_deep_by_the_weight_of_its_function() {
    // `m_run` has a body of 4 bytes, a parameter and a call without values; `$down` has a body of 8
    // bytes and a call with a parameter; each weighs 32 more, of 384 KiB.
    let depth = |more: usize| ((384 << 10) - (4 + 1 + 32)) / (8 + 1 + 32 + more);
    assert_eq!(depth_of("", ""), depth(0));
    assert_eq!(depth_of(&"nop ".repeat(1_000), ""), depth(1_000));
    // Many values that stay on the stack across the call, made in few bytes.
    let (many, sink) = ("(call $many) ".repeat(50), "(call $sink) ".repeat(50));
    assert_eq!(depth_of(&many, &sink), depth(50 * (2 + 60) * 2));
    // The same, each made in its own bytes: `local.get`, a constant and a product, and a sum.
    let products: String = (100..164)
        .map(|by| format!("(i64.mul (i64.load (i32.const 0)) (i64.const {by})) "))
        .collect();
    let sums = format!("{}drop", "i64.add ".repeat(63));
    assert_eq!(depth_of(&products, &sums), depth(64 * (2 + 3 + 3 + 1) + 64));
}

#[test]
fn calls_that_return_are_not_deep_however_they_return() {
    let module = class(
        &["run"],
        r#"(func $leaf (param i64) (result i64) (local.get 0))
           (func $two (param i64) (result i64 i64)
              (if (i64.eqz (local.get 0)) (then (return (i64.const 1) (call $leaf (i64.const 2)))))
              (block (loop (br_if 2 (i64.const 3) (i64.const 4) (i64.eq (local.get 0) (i64.const 1)))
                  (drop) (drop)))
              (call $leaf (i64.const 5)) (i64.const 6))
           (func (export "m_run") (param i32) (local $round i64) (local $sum i64)
              (loop $again
                  (call $two (i64.rem_u (local.get $round) (i64.const 3)))
                  i64.mul local.get $sum i64.add local.set $sum
                  (local.set $round (i64.add (local.get $round) (i64.const 1)))
                  (br_if $again (i64.lt_u (local.get $round) (i64.const 30000))))
              (call $return_number (local.get $sum)))"#,
    );
    let sum = 10_000u64 * (2 + 12 + 30);
    assert_eq!(end_of(&module), End::Returned(sum.to_le_bytes().to_vec()));
}

#[test]
fn growing_memory_without_end_is_out_of_memory() {
    let grow = "(loop $again (drop (memory.grow (i32.const 1))) (br $again))";
    assert_eq!(trap_of(grow), Trap::OutOfMemory(driver::MEMORY));
    assert_eq!(
        trap_of("(drop (memory.grow (i32.const 65535)))"),
        Trap::OutOfMemory(driver::MEMORY)
    );
    assert_eq!(trap_of("(drop (memory.grow (i32.const -1)))"), Trap::OutOfMemory(driver::MEMORY));
}

#[test]
fn growing_a_table_without_end_is_over_a_limit() {
    let module = class(
        &["run"],
        r#"(table 1 funcref)
           (func (export "m_run") (param i32)
              (loop $again (drop (table.grow (ref.null func) (i32.const 1000))) (br $again)))"#,
    );
    let limit = LimitExceeded::new("module.table_elements", 10_000);
    assert_eq!(end_of(&module), End::Trapped(Trap::Limit(limit)));
}

#[test]
fn pointers_outside_of_memory_are_malformed_host_calls() {
    let call = |op, input, length, output, capacity| {
        trap_of(&format!(
            "(drop (call $call (i32.const {op}) (i32.const {input}) (i32.const {length})
                (i32.const {output}) (i32.const {capacity})))"
        ))
    };
    for trap in [
        call(1, 65_536, 1, 0, 0),
        call(1, 65_535, 2, 0, 0),
        call(1, -1, 2, 0, 0),
        call(1, 1, -1, 0, 0),
        call(30, 0, 0, 65_536, 1),
        call(30, 0, 0, -8, 8),
        call(30, 0, 0, 0, 65_537),
        call(53, 65_000, 1_000, 0, 0),
        trap_of("(call $fetch (i32.const 65536) (i32.const 1))"),
        trap_of("(call $fetch (i32.const -1) (i32.const -1))"),
    ] {
        assert!(matches!(trap, Trap::HostCallMalformed(_)), "{trap:?}");
    }
}

#[test]
fn requests_that_do_not_decode_are_malformed_host_calls() {
    for trap in [
        trap_of("(call $op (i32.const 0))"),
        trap_of("(call $op (i32.const 99))"),
        trap_of("(call $op (i32.const -1))"),
        trap_of("(call $op (i32.const 2))"),
        trap_of("(call $op (i32.const 20))"),
        trap_of("(call $fetch (i32.const 0) (i32.const 1))"),
    ] {
        assert!(matches!(trap, Trap::HostCallMalformed(_)), "{trap:?}");
    }
}

#[test]
fn a_host_call_after_the_result_is_malformed() {
    let trap = trap_of("(call $return_number (i64.const 1)) (call $op (i32.const 30))");
    assert_eq!(trap, Trap::HostCallMalformed("a host call after the result".into()));
    let twice = trap_of("(call $return_number (i64.const 1)) (call $return_number (i64.const 1))");
    assert_eq!(twice, trap);
}

#[test]
fn a_method_without_a_result_is_malformed() {
    let what = "the method returned without a result";
    assert_eq!(trap_of(""), Trap::HostCallMalformed(what.into()));
}

#[test]
fn faults_are_told_apart() {
    let fault = |text: &str| Trap::Fault(text.into());
    assert_eq!(trap_of("unreachable"), fault("wasm `unreachable` instruction executed"));
    assert_eq!(trap_of("(drop (i32.load (i32.const -4)))"), fault("out of bounds memory access"));
    assert_eq!(
        trap_of("(drop (i32.div_s (i32.const 1) (local.get $length)))"),
        fault("integer divide by zero")
    );
}

#[test]
fn the_end_of_one_body_leaves_others_alone() {
    let mut engine = engine();
    let module = class(
        &["run", "harm"],
        r#"(func (export "m_run") (param i32)
              (call $op (i32.const 30)) (call $return_number (i64.load (i32.const 0))))
           (func (export "m_harm") (param i32) (memory.fill (i32.const 0) (i32.const 255)
              (i32.const 65536)) unreachable)"#,
    );
    let code = install(&mut engine, &module);
    for _ in 0..300 {
        assert!(matches!(
            run(&mut engine, code, "harm", &[], |_| Answer::Unit).end,
            End::Trapped(Trap::Fault(_))
        ));
        let kept = run(&mut engine, code, "run", &[], |_| Answer::Number(7)).end;
        assert_eq!(kept, End::Returned(7u64.to_le_bytes().to_vec()));
    }
}

#[test]
fn what_nan_bits_an_operation_gives_does_not_depend_on_its_operands() {
    let bits = |left: &str, right: &str| {
        end_of(&body(&format!(
            "(call $return_number (i64.reinterpret_f64 (f64.mul (f64.const {left})
                (f64.const {right}))))"
        )))
    };
    let canonical = End::Returned(0x7ff8_0000_0000_0000u64.to_le_bytes().to_vec());
    assert_eq!(bits("nan:0x4000000000001", "1"), canonical);
    assert_eq!(bits("-nan:0x8000000000123", "nan:0x4000000000001"), canonical);
    assert_eq!(bits("-inf", "0"), canonical);
}

#[test]
fn imports_other_than_the_abi_are_refused() {
    let import = |import: &str| refusal(&module(&format!("{import} {MEMORY}")));
    let refused = |name: &str| ModuleError::Import(name.into());
    assert_eq!(
        import(r#"(import "wasi_snapshot_preview1" "fd_write" (func))"#),
        refused("wasi_snapshot_preview1.fd_write")
    );
    assert_eq!(import(r#"(import "gesmas1" "other" (func))"#), refused("gesmas1.other"));
    assert_eq!(import(r#"(import "gesmas1" "call" (memory 1))"#), refused("gesmas1.call"));
    assert_eq!(
        import(r#"(import "gesmas1" "fetch" (func (param i32)))"#),
        refused("gesmas1.fetch with another type")
    );
}

#[test]
fn a_start_function_is_refused() {
    let start = format!("{MEMORY} (func $begin) (start $begin)");
    assert_eq!(refusal(&module(&start)), ModuleError::StartFunction);
}

#[test]
fn modules_without_what_the_interface_needs_are_refused() {
    assert_eq!(
        refusal(&text("(module (memory (export \"memory\") 1))")),
        ModuleError::InterfaceMissing
    );
    assert_eq!(refusal(&module("(memory 1)")), ModuleError::ExportMissing("memory".into()));
    assert_eq!(refusal(&module("")), ModuleError::ExportMissing("memory".into()));
    let run = ModuleError::ExportMissing("m_run (i32) -> ()".into());
    for export in
        ["", r#"(func (export "m_run"))"#, r#"(global (export "m_run") i32 (i32.const 1))"#]
    {
        let module = text(&format!("(module {MEMORY} {export})"));
        let module = with_interface(module, &interface("Test", &["run"]).encode());
        assert_eq!(refusal(&module), run);
    }
}

#[test]
fn exports_with_a_reserved_name_are_refused() {
    let parts = format!("{MEMORY} (func (export \"gesmas.depth\"))");
    assert!(matches!(refusal(&module(&parts)), ModuleError::Invalid(_)));
}

#[test]
fn malformed_interfaces_and_names_are_refused() {
    let with = |section: &[u8]| refusal(&with_interface(body(""), section));
    assert!(matches!(with(b""), ModuleError::InterfaceMalformed(_)), "two sections");
    let alone =
        |section: &[u8]| refusal(&with_interface(text(&format!("(module {MEMORY})")), section));
    assert!(matches!(alone(b"nonsense"), ModuleError::InterfaceMalformed(_)));
    assert!(matches!(alone(&interface("9lives", &[]).encode()), ModuleError::Name(_)));
    assert!(matches!(alone(&interface("Test", &["Run"]).encode()), ModuleError::Name(_)));
    let other = alone(&interface("Other", &[]).encode());
    assert_eq!(other, ModuleError::OtherClass("Other".into()));
}

#[test]
fn bytes_that_are_not_a_module_are_invalid() {
    let whole = body("");
    let cut = &whole[..whole.len() / 2];
    for bytes in [&b""[..], b"\0asm", b"hello, world", cut] {
        assert!(matches!(refusal(bytes), ModuleError::Invalid(_)), "{bytes:?}");
    }
}

#[test]
fn features_that_are_off_are_named() {
    for parts in [
        r#"(memory (export "memory") i64 1)"#,
        r#"(memory (export "memory") 1 2 shared)"#,
        r#"(memory (export "memory") 1) (func (drop (v128.const i64x2 0 0)))"#,
        r#"(memory (export "memory") 1) (memory 1)"#,
        r#"(memory (export "memory") 1) (func $f (return_call $f))"#,
        r#"(memory (export "memory") 1) (tag)"#,
        r#"(memory (export "memory") 1) (type (struct))"#,
        r#"(memory (export "memory") 1) (func (param externref))"#,
        r#"(memory (export "memory") 1) (func (drop (i32.atomic.load (i32.const 0))))"#,
    ] {
        let error = refusal(&module(parts));
        let two = ModuleError::Limit(LimitExceeded::new("module.memories", 1));
        assert!(matches!(error, ModuleError::Feature(_)) || error == two, "{parts}: {error:?}");
    }
}

/// Where a limit lies.
type Field = fn(&mut ModuleLimits) -> &mut u64;

#[test]
fn each_limit_on_modules_holds_at_its_edge() {
    let parts = format!(
        "{MEMORY} (table 5 funcref) (global i32 (i32.const 0)) (global i32 (i32.const 0))
         (func (param i32 i32 i32) (local i64 i64 f32)) (func (loop)) (data \"a\") (data \"b\")"
    );
    let module = module(&parts);
    let fits = ModuleLimits {
        bytes: module.len() as u64,
        functions: 3,
        function_bytes: 6,
        parameters: 3,
        locals: 3,
        globals: 2,
        table_elements: 5,
        memory_pages: 1,
        data_segments: 2,
        exports: 2,
        methods: 1,
        interface_bytes: interface("Test", &["run"]).encode().len() as u64,
        loop_depth: 1,
        effort: 3 * 3 + 20_000 + 1 + 1,
    };
    engine().inspect("Test", &module, 1, &fits).expect("it is just within all limits");
    let cases: [(&str, Field); 14] = [
        ("bytes", |limits| &mut limits.bytes),
        ("functions", |limits| &mut limits.functions),
        ("function_bytes", |limits| &mut limits.function_bytes),
        ("parameters", |limits| &mut limits.parameters),
        ("locals", |limits| &mut limits.locals),
        ("globals", |limits| &mut limits.globals),
        ("table_elements", |limits| &mut limits.table_elements),
        ("memory_pages", |limits| &mut limits.memory_pages),
        ("data_segments", |limits| &mut limits.data_segments),
        ("exports", |limits| &mut limits.exports),
        ("methods", |limits| &mut limits.methods),
        ("interface_bytes", |limits| &mut limits.interface_bytes),
        ("loop_depth", |limits| &mut limits.loop_depth),
        ("effort", |limits| &mut limits.effort),
    ];
    for (name, field) in cases {
        let mut limits = fits.clone();
        *field(&mut limits) -= 1;
        let limit = LimitExceeded::new(&format!("module.{name}"), *field(&mut limits));
        assert_eq!(refusal_within(&module, &limits), ModuleError::Limit(limit));
    }
}

/// The weight of a function: the square root of the effort that is just enough for it, without what
/// its loops add. The method beside it has one operator.
fn weight_of(function: &str) -> u64 {
    let (engine, module) = (engine(), module(&format!("{MEMORY} {function}")));
    let loops = function.matches("loop").count() as u64;
    let fits = |effort| {
        let effort = effort + 20_000 * loops;
        let limits = ModuleLimits { effort, ..ModuleLimits::default() };
        engine.inspect("Test", &module, 1, &limits).is_ok()
    };
    let weight = (0..50).find(|weight| fits(weight * weight + 1)).expect("it is small");
    assert!(!fits(weight * weight), "{function} weighs less than {weight}");
    weight
}

#[test]
fn a_function_weighs_what_its_compiler_follows() {
    assert_eq!(weight_of("(func)"), 1);
    assert_eq!(weight_of("(func (block))"), 3);
    let call = "(func $f (param i64 i64) (result i64) (call $f (local.get 0) (local.get 1)))";
    assert_eq!(weight_of(call), 4 + 3);
    let indirect = "(table 1 funcref) (type $t (func (param i64)))
        (func (call_indirect (type $t) (i64.const 1) (i32.const 0)))";
    assert_eq!(weight_of(indirect), 4 + 1);
    // The local differs after the `if`, and counts once more for the whole function.
    let written = "(func (param i32) (if (local.get 0) (then (local.set 0 (i32.const 1)))))";
    assert_eq!(weight_of(written), 6 + 1 + 1);
    // Two ways lead to the beginning of the loop.
    let read = "(func (param i32) (loop (br_if 0 (local.get 0))))";
    assert_eq!(weight_of(read), 5 + 2);
    // Four ways lead out of the block, each with a value.
    let table = "(func (param i32)
        (drop (block (result i32) (br_table 0 0 0 (local.get 0) (local.get 0)))))";
    assert_eq!(weight_of(table), 7 + 1 + 4);
}

#[test]
fn a_module_with_a_flipped_bit_is_refused_or_compiles() {
    let module = class(
        &["run"],
        r#"(table 2 funcref) (elem (i32.const 0) $pair) (global (mut i32) (i32.const 1))
           (func $pair (param i32) (result i32 i64)
              (if (local.get 0) (then (return (i32.const 1) (i64.const 2))))
              (call $op (i32.const 30)) (i32.const 3) (i64.const 4))
           (func (export "m_run") (param i32)
              (call_indirect (param i32) (result i32 i64) (local.get 0) (i32.const 0))
              drop drop (call $pair (local.get 0)) call $return_number drop)"#,
    );
    let mut engine = engine();
    let (mut accepted, limits) = (0, ModuleLimits::default());
    for (place, bit) in (0..module.len()).flat_map(|place| (0..8).map(move |bit| (place, bit))) {
        let mut flipped = module.clone();
        flipped[place] ^= 1 << bit;
        if engine.inspect("Test", &flipped, 1, &limits).is_err() {
            continue;
        }
        accepted += 1;
        install(&mut engine, &flipped);
        let run = run(&mut engine, gesmas_machine::CodeHash::of(&flipped), "run", &[], |_| {
            Answer::Number(7)
        });
        assert!(run.left <= driver::FUEL);
    }
    assert!(accepted > 100, "most constants can have any value: {accepted}");
}
