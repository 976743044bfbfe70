//! Failing disks and wrong calls: typed errors, and a log that stops for good.

use std::io::ErrorKind;

use rustix::io::Errno;

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

/// The system reports once that it could not write, and takes the bytes for written from then on: the
/// next life sees them, and a sync of it does nothing. What it has told of must last all the same.
#[test]
fn what_a_life_after_a_failed_sync_has_seen_survives_a_power_cut() {
    let disk = MemDisk::new();
    let mut log = create(&disk);
    run_turns(&mut log, 3);
    log.record(FIRST, &Call::Promise(ballot(9))).unwrap();
    log.record(FIRST, &Call::Append(vec![entry(4, 1_000)])).unwrap();
    disk.fail_sync(true);
    log.sync().unwrap_err();
    drop(log);
    // The disk fails again, in the next life and in that after it.
    for _ in 0..2 {
        disk.fail_sync(true);
        assert!(open(&disk).is_err());
    }
    let mut log = open(&disk).unwrap();
    let seen = both(&mut log);
    assert_eq!(seen[0].promise, Some(ballot(9)), "the bytes are in the system's memory");
    drop(log);
    disk.cut_power(&mut |_| 0);
    assert_eq!(both(&mut open(&disk).unwrap()), seen);
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
fn a_turn_that_finds_no_room_waits_for_some() {
    let disk = MemDisk::new();
    let mut log = failing(&disk, Action::Create, Fault::Error(ErrorKind::StorageFull));
    log.record(FIRST, &Call::Append(vec![entry(1, 5000)])).unwrap();
    log.record(FIRST, &Call::Decided(1)).unwrap();
    let waiting = log.waiting_bytes();
    let error = log.sync().unwrap_err();
    assert!(matches!(error, LogError::NoRoom { file: 2, bytes: 5000.. }), "{error}");
    assert!(log.lack().is_some() && log.needs_sync());
    assert_eq!(log.waiting_bytes(), waiting, "the turn is as it was");
    assert!(log.make_room().unwrap(), "the disk takes a file again");
    log.sync().unwrap();
    assert_eq!(log.lack(), None);
    drop(log);
    let mut log = open(&disk).unwrap();
    assert_eq!((log.end(FIRST), log.decided(FIRST)), (1, 1));
    assert_eq!(log.entries(FIRST, 0, 1, 10_000).unwrap(), [entry(1, 5000)]);
}

/// Neither the process nor the system has a file descriptor left for the next file: that says nothing
/// about the disk.
#[test]
fn a_turn_that_finds_no_descriptor_waits_for_one() {
    for errno in [Errno::MFILE, Errno::NFILE] {
        let disk = MemDisk::new();
        let mut log = failing(&disk, Action::Create, Fault::Errno(errno));
        log.record(FIRST, &Call::Append(vec![entry(1, 5000)])).unwrap();
        let error = log.sync().unwrap_err();
        assert!(matches!(error, LogError::NoDescriptor { file: 2 }), "{error}");
        assert!(log.lack().is_some_and(|lack| lack.contains("open files")), "{:?}", log.lack());
        log.sync().unwrap();
        assert_eq!(log.lack(), None);
        drop(log);
        assert_eq!(open(&disk).unwrap().end(FIRST), 1);
    }
}

/// A log on a disk that has room for so many files.
fn with_room_for(disk: &MemDisk, files: usize) -> Log {
    let repo = disk.open().unwrap();
    let held = disk.clone();
    let full = FaultyRepo::new(repo, move |operation| {
        let room = held.files().len() < files;
        let creates = operation.action == Action::Create;
        if creates && !room { Fault::Error(ErrorKind::StorageFull) } else { Fault::None }
    });
    Log::create(Box::new(full), SETTINGS).unwrap()
}

/// A file that was made for one large turn has room for one that drops entries, too.
#[test]
fn a_large_turn_that_takes_the_last_room_leaves_some_to_give_files_back() {
    let disk = MemDisk::new();
    let mut log = with_room_for(&disk, 2);
    log.record(FIRST, &Call::Append(vec![entry(1, 100)])).unwrap();
    log.sync().unwrap();
    log.record(FIRST, &Call::Append(vec![entry(2, 5000)])).unwrap();
    log.sync().unwrap();
    assert!(log.lack().is_some());
    log.record(FIRST, &Call::Trim(1)).unwrap();
    log.record(FIRST, &Call::Compacted(1)).unwrap();
    log.sync().unwrap();
    assert_eq!(disk.files(), [2, 3], "the first was given back, and there is room for the next");
    assert_eq!(log.lack(), None);
}

/// What is left of the current file takes the turn that drops entries, and so gives files back.
#[test]
fn a_full_disk_is_noticed_while_there_is_room_to_give_files_back() {
    let disk = MemDisk::new();
    let mut log = with_room_for(&disk, 3);
    let mut turns = 0;
    while log.lack().is_none() {
        log.record(FIRST, &Call::Append(vec![entry(turns, 200)])).unwrap();
        log.sync().unwrap();
        turns += 1;
    }
    assert_eq!(disk.files(), [1, 2, 3]);
    assert!(!log.make_room().unwrap(), "there is no room yet");
    log.record(FIRST, &Call::Trim(turns - 1)).unwrap();
    log.sync().unwrap();
    assert_eq!(disk.files().first(), Some(&3), "files were given back");
    assert!(log.make_room().unwrap());
    assert_eq!(disk.files(), [3, 4]);
    drop(log);
    assert_eq!(open(&disk).unwrap().end(FIRST), turns);
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
