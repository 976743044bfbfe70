//! What the worst modules cost to compile: `cargo run --release -p gesmas-coroutine --example
//! compile_bombs`.
//!
//! Each line is a module of a shape that compilers are slow on, repeated until the default limits
//! allow no more of it, and compiled in a child process with the default limits: the limits are
//! right when all times are well below the child's. The lines before are honest modules, with the
//! share of the limit on effort that they need.

#[path = "../tests/driver/mod.rs"]
mod driver;

use std::{io, process::Command, time::Instant};

use gesmas_coroutine::{ChildLimits, compile_child_main, compile_in_child};
use gesmas_machine::{Engine, ModuleLimits};

const ROLE: &str = "GESMAS_EXAMPLE_ROLE";

/// Values that are loaded one after the other and combined at the end.
fn values(count: usize) -> String {
    let load = |place| format!("(i64.add (local.get 0) (i64.load offset={place} (i32.const 8)))");
    let loads: String = (128..128 + count).map(load).collect();
    format!("(func (param i64) (result i64) {loads} {})", "i64.xor ".repeat(count - 1))
}

/// Locals that change in the innermost of some loops, and are read afterwards.
fn loops(locals: usize, depth: usize) -> String {
    let places = 1..=locals;
    let change = |place| format!("(local.set {place} (i64.add (local.get {place}) (i64.const 3)))");
    let store = |place| format!("(i64.store (local.get 0) (local.get {place}))");
    let changes: String = places.clone().map(change).collect();
    let stores: String = places.map(store).collect();
    let ends = "(br_if 0 (i64.eqz (local.get 1))))".repeat(depth);
    let declared = "i64 ".repeat(locals);
    format!(
        "(func (param i32) (local {declared}) {} {changes} {ends} {stores})",
        "(loop ".repeat(depth)
    )
}

/// Locals that are only read in the innermost of some loops.
fn reading_loops(locals: usize, depth: usize) -> String {
    let places = 1..=locals;
    let load = |place| format!("(local.set {place} (i64.load offset={place} (local.get 0)))");
    let store = |place| format!("(i64.store (local.get 0) (local.get {place}))");
    let loads: String = places.clone().map(load).collect();
    let stores: String = places.map(store).collect();
    let ends = "(br_if 0 (i64.eqz (local.get 1))))".repeat(depth);
    let declared = "i64 ".repeat(locals);
    format!(
        "(func (param i32) (local {declared}) {loads} {} {stores} {ends})",
        "(loop ".repeat(depth)
    )
}

/// Locals that may change at many places.
fn branches(locals: usize, count: usize) -> String {
    let places = (0..count).map(|index| index % locals + 1);
    let change = |place| {
        format!(
            "(if (local.get 0) (then (local.set {place} (i64.add (local.get {place}) (i64.const 3)))))"
        )
    };
    let changes: String = places.map(change).collect();
    let store = |place| format!("(i64.store (local.get 0) (local.get {place}))");
    let stores: String = (1..=locals).map(store).collect();
    format!("(func (param i32) (local {}) {changes} {stores})", "i64 ".repeat(locals))
}

/// A table whose branches carry many values.
fn table(values: usize, targets: usize) -> String {
    let ty = "i64 ".repeat(values);
    let loads: String =
        (0..values).map(|at| format!("(i64.load offset={at} (local.get 0))")).collect();
    let targets = "0 1 ".repeat(targets / 2);
    let inner = format!("{loads} (local.get 0) (br_table {targets})");
    format!("(func (param i32) (result {ty}) (block (result {ty}) (block (result {ty}) {inner})))")
}

/// Calls that pass many values on.
fn calls(values: usize, count: usize) -> String {
    let (ty, gets) = ("i64 ".repeat(values), (0..values).map(|at| format!("(local.get {at})")));
    let gets: String = gets.collect();
    format!("(func (param {ty}) (result {ty}) {gets} {})", "(call 4) ".repeat(count))
}

fn module(function: &str, count: usize) -> Vec<u8> {
    let run = r#"(func (export "m_run") (param i32))"#;
    driver::class(&["run"], &format!("{} {run}", function.repeat(count)))
}

/// The greatest number that is allowed; 0 may be.
fn greatest(bound: u64, allowed: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, bound);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if allowed(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

fn honest(engine: &impl Engine) {
    for class in gesmas_classes::ALL {
        let refused = |effort| {
            let limits = ModuleLimits { effort, ..ModuleLimits::default() };
            engine.inspect(class.name, class.module, 1, &limits).is_err()
        };
        let limit = ModuleLimits::default().effort;
        let effort = greatest(limit, refused) + 1;
        let share = 100.0 * effort as f64 / limit as f64;
        println!("{:<28} {:>7} bytes {share:6.2} % of effort", class.name, class.module.len());
    }
}

fn bomb(engine: &impl Engine, name: &str, function: &str) -> io::Result<()> {
    let limits = ModuleLimits::default();
    let one = module(function, 2).len() - module(function, 1).len();
    let bound = (limits.bytes as usize / one) as u64;
    let allowed =
        |count| engine.inspect("Test", &module(function, count as usize), 1, &limits).is_ok();
    let count = greatest(bound, allowed) as usize;
    let module = module(function, count);
    let mut child = Command::new(std::env::current_exe()?);
    let begin = Instant::now();
    let compiled = compile_in_child(child.env(ROLE, "compile"), &module, ChildLimits::default());
    let time = begin.elapsed().as_secs_f64();
    let outcome = match compiled {
        Ok(artifact) => format!("{} bytes of code", artifact.as_bytes().len()),
        Err(error) => error.to_string(),
    };
    println!("{name:<28} {count:>5} of {one:>6} bytes {time:6.2} s, {outcome}");
    Ok(())
}

fn main() -> io::Result<()> {
    if std::env::var_os(ROLE).is_some() {
        return compile_child_main(io::stdin().lock(), io::stdout().lock());
    }
    let engine = driver::engine();
    honest(&engine);
    for count in [100, 500, 1_500, 6_000] {
        bomb(&engine, &format!("{count} values"), &values(count))?;
    }
    for (locals, depth) in [(1, 16), (10, 16), (100, 16), (1_000, 1), (900, 16)] {
        bomb(&engine, &format!("{locals} locals, {depth} loops"), &loops(locals, depth))?;
        let name = format!("{locals} read in {depth} loops");
        bomb(&engine, &name, &reading_loops(locals, depth))?;
    }
    for (locals, count) in [(10, 400), (100, 1_000), (1_000, 3_000)] {
        bomb(&engine, &format!("{locals} locals, {count} ifs"), &branches(locals, count))?;
    }
    for (values, count) in [(64, 100), (64, 400), (8, 1_000)] {
        bomb(&engine, &format!("{values} values, {count} targets"), &table(values, count))?;
        bomb(&engine, &format!("{values} values, {count} calls"), &calls(values, count / 2))?;
    }
    Ok(())
}
