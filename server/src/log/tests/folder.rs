//! The log on a real file system.

use super::super::repo::FsRepo;
use super::super::verify;
use super::*;

#[test]
fn a_folder_holds_the_log_across_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut log = Log::create(Box::new(FsRepo::open(&path).unwrap()), SETTINGS).unwrap();
    let after = run_turns(&mut log, 100);
    let report = verify(&mut FsRepo::read_only(&path), None);
    assert!(report.problem.is_none());
    assert_eq!(report.records, 100);
    drop(log);
    let mut log = Log::open(Box::new(FsRepo::open(&path).unwrap()), SETTINGS).unwrap();
    assert_eq!(both(&mut log), after[100]);
    log.record(FIRST, &Call::Append(vec![entry(1, 20_000)])).unwrap();
    log.sync().unwrap();
    let expected = both(&mut log);
    drop(log);
    let mut log = Log::open(Box::new(FsRepo::open(&path).unwrap()), SETTINGS).unwrap();
    assert_eq!(both(&mut log), expected);
}

#[test]
fn a_second_process_is_kept_out() {
    let folder = tempfile::tempdir().unwrap();
    let first = FsRepo::open(folder.path()).unwrap();
    let error = FsRepo::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(first);
    FsRepo::open(folder.path()).unwrap();
}

#[test]
fn unfinished_files_are_removed_and_strangers_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0000000000000001.log.new"), b"half").unwrap();
    std::fs::write(folder.path().join("notes.txt"), b"mine").unwrap();
    let mut repo = FsRepo::open(folder.path()).unwrap();
    assert_eq!(repo.list().unwrap(), Vec::<u64>::new());
    assert!(!folder.path().join("0000000000000001.log.new").exists());
    assert!(folder.path().join("notes.txt").exists());
}
