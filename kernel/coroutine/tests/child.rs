//! Compiling in a child process: this program starts itself again, so it has a `main` of its own.

mod driver;

use std::{
    io::{self, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use driver::{body, run};
use gesmas_coroutine::{ChildLimits, CompileError, compile_child_main, compile_in_child};
use gesmas_machine::{Answer, CodeHash, End, LimitExceeded, ModuleError, ModuleLimits};

const ROLE: &str = "GESMAS_TEST_ROLE";

/// This program in one of the roles below.
fn child(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a program knows its file"));
    command.env(ROLE, role);
    command
}

fn main() -> io::Result<()> {
    match std::env::var(ROLE).as_deref() {
        Ok("compile") => return compile_child_main(io::stdin().lock(), io::stdout().lock()),
        Ok("other version") => return io::stdout().write_all(&[7; 100]),
        Ok("cut short") => {
            let mut reply = Vec::new();
            let module = [&(1u64 << 30).to_le_bytes()[..], &body("")].concat();
            compile_child_main(&module[..], &mut reply)?;
            return io::stdout().write_all(&reply[..reply.len() - 1]);
        }
        _ => {}
    }
    code_of_a_child_runs();
    a_module_that_does_not_compile_is_refused();
    a_child_that_takes_too_long_is_killed();
    a_child_without_memory_dies_alone();
    replies_that_are_not_whole_are_not_trusted();
    a_compile_bomb_is_refused_and_otherwise_killed();
    println!("child: 6 tests passed");
    Ok(())
}

fn code_of_a_child_runs() {
    let module = body("(call $return_number (i64.const 4))");
    let limits = ChildLimits::default();
    let artifact = compile_in_child(&mut child("compile"), &module, limits).expect("it compiles");
    let mut engine = driver::engine();
    let code = CodeHash::of(&module);
    engine.install(code, engine.compiler().load(&artifact).expect("it fits the engine"));
    let end = run(&mut engine, code, "run", &[], |_| Answer::Unit).end;
    assert_eq!(end, End::Returned(4u64.to_le_bytes().to_vec()));
    let little = ChildLimits { artifact_bytes: 1_000, ..limits };
    let large = compile_in_child(&mut child("compile"), &module, little);
    assert!(matches!(large, Err(CompileError::TooLarge(1_000))), "{large:?}");
}

fn a_module_that_does_not_compile_is_refused() {
    let limits = ChildLimits::default();
    let refused = compile_in_child(&mut child("compile"), b"not a module", limits);
    assert!(matches!(refused, Err(CompileError::Refused(_))), "{refused:?}");
}

fn a_child_that_takes_too_long_is_killed() {
    let limits = ChildLimits { time: Duration::from_millis(200), ..ChildLimits::default() };
    let begin = Instant::now();
    let late = compile_in_child(Command::new("sleep").arg("100"), &body(""), limits);
    assert!(matches!(late, Err(CompileError::TimedOut(_))), "{late:?}");
    assert!(begin.elapsed() < Duration::from_secs(50), "it waited for the child");
}

fn a_child_without_memory_dies_alone() {
    for memory_bytes in [0, 1 << 20, 8 << 20] {
        let limits = ChildLimits { memory_bytes, ..ChildLimits::default() };
        let died = compile_in_child(&mut child("compile"), &body(""), limits);
        let refused = matches!(died, Err(CompileError::Died { .. } | CompileError::Refused(_)));
        assert!(refused, "{memory_bytes}: {died:?}");
    }
}

fn replies_that_are_not_whole_are_not_trusted() {
    let limits = ChildLimits::default();
    let cut = compile_in_child(&mut child("cut short"), &body(""), limits);
    assert!(matches!(cut, Err(CompileError::Died { .. })), "{cut:?}");
    let other = compile_in_child(&mut child("other version"), &body(""), limits);
    assert!(matches!(other, Err(CompileError::OtherVersion)), "{other:?}");
    let mut silent = Command::new("true");
    let died = compile_in_child(silent.stderr(Stdio::null()), &body(""), limits);
    assert!(matches!(died, Err(CompileError::Died { .. })), "{died:?}");
    let missing = compile_in_child(&mut Command::new("./no such program"), &body(""), limits);
    assert!(matches!(missing, Err(CompileError::Io(_))), "{missing:?}");
}

/// Seven functions of almost the greatest size, whose values are all alive at once: more than the
/// compiler can do in a second. The check refuses them, and a child that gets them is killed.
fn a_compile_bomb_is_refused_and_otherwise_killed() {
    let count = 12_000;
    let values: String = (0..count)
        .map(|place| {
            format!("(i64.add (local.get 0) (i64.load offset={} (i32.const 8)))", 128 + place)
        })
        .collect();
    let function =
        format!("(func (param i64) (result i64) {values} {})", "i64.xor ".repeat(count - 1));
    let run = r#"(func (export "m_run") (param i32))"#;
    let module = driver::class(&["run"], &format!("{} {run}", function.repeat(7)));
    let limits = ModuleLimits::default();
    let engine = driver::engine();
    let refused = gesmas_machine::Engine::inspect(&engine, "Test", &module, 1, &limits);
    let limit = LimitExceeded::new("module.effort", limits.effort);
    assert_eq!(refused, Err(ModuleError::Limit(limit)));
    let limits = ModuleLimits { effort: u64::MAX, ..limits };
    gesmas_machine::Engine::inspect(&engine, "Test", &module, 1, &limits).expect("it is valid");
    let limits = ChildLimits { time: Duration::from_secs(1), ..ChildLimits::default() };
    let begin = Instant::now();
    let compiled = compile_in_child(&mut child("compile"), &module, limits);
    assert!(matches!(compiled, Err(CompileError::TimedOut(_))), "{compiled:?}");
    assert!(begin.elapsed() < Duration::from_secs(10), "it was not killed");
}
