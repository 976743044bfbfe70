//! Failing disks and wrong calls: typed errors, and a log that stops for good.

use std::io::ErrorKind;

use super::super::repo::{Action, Fault, FaultyRepo, RepoError};
use super::*;

/// A log on a disk of which the first operation of the kind fails, once `ready`.
fn failing(disk: &MemDisk, action: Action, fault: Fault) -> Log {
    let mut failed = false;
    let mut created = false;
    let faulty = FaultyRepo::new(disk.open().unwrap(), move |operation| {
        let matches = operation.action == action && (created || action != Action::Create);
        created |= operation.action == Action::Create;
        if matches && !std::mem::replace(&mut failed, true) { fault } else { Fault::None }
    });
    Log::create(Box::new(faulty), SETTINGS).unwrap()
}

#[test]
fn after_a_failed_sync_the_log_never_writes_again() {
    let disk = MemDisk::new();
    let mut log = failing(&disk, Action::Sync, Fault::Error(ErrorKind::Other));
    log.record(FIRST, &Call::Promise(ballot(1))).unwrap();
    let error = log.sync().unwrap_err();
    assert!(matches!(error, LogError::Repo(RepoError::Io { action: Action::Sync, .. })));
    let (syncs, bytes) = (disk.syncs(), disk.bytes(1));
    // The disk would work now; the log must not find out by trying.
    assert!(matches!(log.sync(), Err(LogError::Poisoned { .. })));
    let again = log.record(FIRST, &Call::Promise(ballot(2)));
    assert!(matches!(again, Err(LogError::Poisoned { .. })));
    assert_eq!((disk.syncs(), disk.bytes(1)), (syncs, bytes));
}

#[test]
fn a_torn_write_poisons_the_log_and_recovery_drops_it() {
    let disk = MemDisk::new();
    let mut log = failing(&disk, Action::Write, Fault::Torn(50));
    log.record(FIRST, &Call::Append(vec![entry(1, 500)])).unwrap();
    assert!(matches!(log.sync(), Err(LogError::Repo(_))));
    assert!(matches!(log.sync(), Err(LogError::Poisoned { .. })));
    drop(log);
    assert_eq!(open(&disk).unwrap().end(FIRST), 0);
}

#[test]
fn a_full_disk_says_so() {
    let disk = MemDisk::new();
    let mut log = failing(&disk, Action::Create, Fault::Error(ErrorKind::StorageFull));
    log.record(FIRST, &Call::Append(vec![entry(1, 5000)])).unwrap();
    let error = log.sync().unwrap_err();
    assert!(matches!(error, LogError::Repo(RepoError::Full { action: Action::Create, .. })));
    assert_eq!(
        error.to_string(),
        "the disk is full: cannot create log file 2; free some space and start again"
    );
}

#[test]
fn a_disk_that_lies_about_syncs_loses_what_the_log_believes_durable() {
    let disk = MemDisk::new();
    let mut log = failing(&disk, Action::Sync, Fault::Ignored);
    log.record(FIRST, &Call::Promise(ballot(1))).unwrap();
    log.sync().unwrap();
    drop(log);
    disk.cut_power(&mut |_| 0);
    assert_eq!(open(&disk).unwrap().promise(FIRST), None);
}

#[test]
fn files_too_small_to_be_of_use_are_refused() {
    let settings = LogSettings { file_bytes: 4095, ..SETTINGS };
    let refused = Log::create(Box::new(MemDisk::new().open().unwrap()), settings);
    assert!(matches!(refused, Err(LogError::FileTooSmall { bytes: 4095, least: 4096 })));
}

#[test]
fn new_and_old_logs_are_not_confused() {
    let disk = MemDisk::new();
    assert!(matches!(open(&disk), Err(LogError::Missing)));
    drop(create(&disk));
    let again = Log::create(Box::new(disk.open().unwrap()), SETTINGS);
    assert!(matches!(again, Err(LogError::AlreadyExists { file: 1 })));
}

#[test]
fn holes_and_compacted_entries_are_refused() {
    let mut log = create(&MemDisk::new());
    log.record(FIRST, &Call::Append(vec![entry(0, 3), entry(1, 3)])).unwrap();
    let hole = log.record(FIRST, &Call::AppendOnPrefix(3, vec![entry(3, 3)]));
    assert!(matches!(hole, Err(LogError::Hole { index: 3, end: 2 })));
    log.record(FIRST, &Call::Trim(1)).unwrap();
    let below = log.record(FIRST, &Call::AppendOnPrefix(0, vec![entry(0, 3)]));
    assert!(matches!(below, Err(LogError::Compacted { index: 0, first: 1 })));
    assert!(matches!(
        log.entries(FIRST, 0, 2, 100),
        Err(LogError::Compacted { index: 0, first: 1 })
    ));
    assert_eq!(log.entries(FIRST, 1, 2, 100).unwrap(), [entry(1, 3)]);
}
