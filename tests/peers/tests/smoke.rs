//! The benchmark beside peers runs, as far as it needs no peer.

use std::process::Command;

/// Works that are quick on gesmas, and how many rows they have.
const WORKS: [(&str, usize); 7] = [
    ("counter", 3),
    ("election", 3),
    ("four", 1),
    ("herd", 3),
    ("regular", 2),
    ("shared", 1),
    ("pipelined", 1),
];

#[test]
fn every_row_has_figures_and_all_files_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("figures.json");
    let output = Command::new(env!("CARGO_BIN_EXE_gesmas-peers"))
        .args(WORKS.map(|(work, _)| work))
        .args(["--systems", "gesmas", "--repeats", "1", "--seconds", "0.2", "--json"])
        .arg(&json)
        .arg("--into")
        .arg(folder.path().join("into"))
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let text = std::fs::read_to_string(&json).expect("the figures are there");
    let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let rows = report["rows"].as_array().expect("there are rows");
    for (work, count) in WORKS {
        let own: Vec<_> = rows.iter().filter(|row| row["work"] == work).collect();
        assert_eq!(own.len(), count, "{work}");
        for row in own {
            let positive = |name: &str| row[name].as_f64().is_some_and(|figure| figure > 0.0);
            assert_eq!(row["system"], "gesmas");
            assert_eq!(row["repeats"], 1);
            for name in ["ops_per_second", "p50_us", "p99_us", "clients"] {
                assert!(positive(name), "{work} has no {name}: {row}");
            }
            assert!(row["spread"]["least"].is_number() && row["other_cpu"].is_number(), "{row}");
            let syncs = row["fsyncs_per_second"].as_array().expect("gesmas is replicated");
            assert_eq!(syncs.len(), 3, "{row}");
        }
    }
    // Those of which everything was measured need gesmas alone.
    let targets = report["targets"].as_array().expect("there are targets");
    assert_eq!(targets.len(), 3, "herd, pipelined, regular: {targets:?}");
    for file in ["peers.md", "counter.svg", "election.svg", "herd.svg"] {
        let path = folder.path().join("into").join(file);
        assert!(path.metadata().is_ok_and(|file| file.len() > 500), "{file}");
    }
}

#[test]
fn native_classes_have_figures_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("figures.json");
    let output = Command::new(env!("CARGO_BIN_EXE_gesmas-peers"))
        .args(["queue", "election", "--systems", "native", "--repeats", "1", "--seconds", "0.2"])
        .arg("--json")
        .arg(&json)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&json).expect("the figures are there");
    let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let rows = report["rows"].as_array().expect("there are rows");
    let works: Vec<_> = rows.iter().map(|row| (&row["work"], &row["system"])).collect();
    let queue = (&"queue".into(), &"gesmas, native".into());
    assert_eq!(works, [queue; 3], "it is spared the elections");
}
