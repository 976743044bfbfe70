//! Files in which nothing is kept any more.

use super::super::verify;
use super::*;

/// Turns of one entry each, of which the last `kept` are kept at the end.
fn trimmed(disk: &MemDisk, turns: u64, kept: u64) -> (Log, [Contents; 2]) {
    let mut log = create(disk);
    run_turns(&mut log, turns);
    for instance in [FIRST, SECOND] {
        let index = log.end(instance).saturating_sub(kept);
        log.record(instance, &Call::Decided(index)).unwrap();
        log.record(instance, &Call::Trim(index)).unwrap();
        log.record(instance, &Call::Compacted(index)).unwrap();
    }
    log.sync().unwrap();
    let contents = both(&mut log);
    (log, contents)
}

#[test]
fn files_of_dropped_entries_are_given_back_and_nothing_else_is_lost() {
    let disk = MemDisk::new();
    let (log, contents) = trimmed(&disk, 120, 3);
    assert!(log.files().1 > 4, "there were several files");
    assert_eq!(disk.files().first(), Some(&log.files().0));
    assert!(disk.files().len() <= 2, "{:?}", disk.files());
    drop(log);
    let mut log = open(&disk).unwrap();
    assert_eq!(both(&mut log), contents);
    // It goes on, over further files, and gives those back as well.
    let oldest = log.files().0;
    for turn in 0..160 {
        log.record(FIRST, &Call::Append(vec![entry(turn, 90)])).unwrap();
        log.sync().unwrap();
    }
    log.record(FIRST, &Call::Trim(log.end(FIRST))).unwrap();
    log.record(SECOND, &Call::Trim(log.end(SECOND))).unwrap();
    log.sync().unwrap();
    assert!(log.files().0 > oldest);
    let contents = both(&mut log);
    drop(log);
    assert_eq!(both(&mut open(&disk).unwrap()), contents);
    assert!(verify(&mut disk.open().unwrap(), Some(IDENTITY)).problem.is_none());
}

#[test]
fn a_file_that_is_still_needed_is_missed() {
    let disk = MemDisk::new();
    let (log, _) = trimmed(&disk, 120, 40);
    let (oldest, active) = log.files();
    assert!(active > oldest + 1, "entries that are kept lie in several files");
    drop(log);
    disk.remove(oldest);
    let missed = open(&disk).map(drop);
    assert!(
        matches!(missed, Err(LogError::FileMissing { file, later })
            if file == oldest && later == oldest + 1),
        "{missed:?}"
    );
}

#[test]
fn power_cuts_while_files_are_given_back_lose_nothing() {
    for seed in 0..200 {
        let mut choices = Choices::new(seed);
        let disk = MemDisk::new();
        let mut log = create(&disk);
        let mut turn = 0;
        for _ in 0..5 {
            disk.fail_after(choices.below(120));
            let (mut before, mut after) = (both(&mut log), both(&mut log));
            loop {
                turn += 1;
                for instance in [FIRST, SECOND] {
                    let number = u32::try_from(turn).unwrap();
                    let length = usize::try_from(choices.below(900)).unwrap();
                    let recorded = log
                        .record(instance, &Call::Promise(ballot(number)))
                        .and_then(|()| {
                            log.record(instance, &Call::Append(vec![entry(turn, length)]))
                        })
                        .and_then(|()| {
                            let index = log.end(instance).saturating_sub(choices.below(6));
                            log.record(instance, &Call::Trim(index))
                        });
                    if recorded.is_err() {
                        break;
                    }
                    after = both(&mut log);
                }
                if log.sync().is_err() {
                    break;
                }
                before = after.clone();
            }
            drop(log);
            disk.cut_power(&mut |n| choices.below(n));
            log = open(&disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let found = both(&mut log);
            assert!(found == before || found == after, "seed {seed}: a torn turn");
        }
        assert!(disk.files().len() < 6, "seed {seed}: {:?}", disk.files());
    }
}

#[test]
fn an_oldest_file_without_a_valid_record_is_no_beginning() {
    let disk = MemDisk::new();
    let (log, _) = trimmed(&disk, 120, 40);
    let oldest = log.files().0;
    drop(log);
    disk.alter(oldest, |bytes| bytes[64..].fill(0));
    let opened = open(&disk).map(drop);
    assert!(matches!(opened, Err(LogError::CorruptMiddle { .. })), "{opened:?}");
}
