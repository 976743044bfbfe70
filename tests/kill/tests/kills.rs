//! A short run of the kill test: real processes, some SIGKILLs, every promise kept.
//!
//! The binary under test is the one of this build, or the one that `GESMAS_BINARY` names.

use std::process::Command;

/// Runs the program and gives its exit code and its report.
fn run(arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_gesmas-kill"))
        .args(arguments)
        .args(["--json", "-"])
        .output()
        .expect("the program starts");
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("no report: {error}\n{}", String::from_utf8_lossy(&output.stderr))
    });
    (output.status.code(), report)
}

#[test]
fn fifteen_kills_break_no_promise() {
    let (code, report) = run(&["--kills", "15", "--seed", "7", "--pace", "30"]);
    assert_eq!(report["violations"], serde_json::json!([]), "{report:#}");
    assert_eq!(code, Some(0));
    assert_eq!(report["kills"], 15);
    assert_eq!(report["restarts"], 15);
    assert_eq!(report["replicas_agree"], true);
    for work in ["calls_acknowledged", "blocked_calls", "holds", "generations", "retries"] {
        assert!(report[work].as_u64().is_some_and(|count| count > 0), "{work}: {report:#}");
    }
}

#[test]
fn a_binary_that_is_no_replica_gives_no_good_report() {
    let output = Command::new(env!("CARGO_BIN_EXE_gesmas-kill"))
        .args(["--kills", "1"])
        .env("GESMAS_BINARY", "/nowhere/gesmas")
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
