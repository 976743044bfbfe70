//! What a log does turn by turn when nothing fails.

use super::*;

#[test]
fn an_opened_log_holds_what_was_synced() {
    let disk = MemDisk::new();
    let mut log = create(&disk);
    log.record(FIRST, &Call::Promise(ballot(3))).unwrap();
    log.record(FIRST, &Call::AcceptedRound(ballot(2))).unwrap();
    log.record(FIRST, &Call::Append(vec![entry(0, 3), Bytes::new(), entry(2, 900)])).unwrap();
    log.record(SECOND, &Call::Append(vec![entry(9, 9)])).unwrap();
    log.record(FIRST, &Call::Decided(2)).unwrap();
    log.record(FIRST, &Call::AppendOnPrefix(2, vec![entry(3, 5)])).unwrap();
    log.record(SECOND, &Call::StopSign(Some(Bytes::from_static(b"end")))).unwrap();
    log.sync().unwrap();
    log.record(FIRST, &Call::Trim(1)).unwrap();
    log.record(FIRST, &Call::Compacted(1)).unwrap();
    log.record(SECOND, &Call::StopSign(None)).unwrap();
    log.sync().unwrap();
    let expected = both(&mut log);
    assert_eq!(expected[0].entries, [Bytes::new(), entry(3, 5)]);
    assert_eq!((expected[0].first, expected[0].compacted, expected[0].decided), (1, 1, 2));
    assert_eq!(expected[1].stop_sign, None);
    drop(log);
    disk.cut_power(&mut |_| 0);
    let mut log = open(&disk).unwrap();
    assert_eq!(both(&mut log), expected);
    assert_eq!(log.instances(), [FIRST, SECOND]);
}

#[test]
fn one_turn_costs_one_sync_and_a_turn_of_decided_indices_none() {
    let disk = MemDisk::new();
    let mut log = create(&disk);
    let before = disk.syncs();
    log.record(FIRST, &Call::Append(vec![entry(1, 5), entry(2, 5)])).unwrap();
    log.record(SECOND, &Call::Promise(ballot(1))).unwrap();
    log.sync().unwrap();
    assert_eq!(disk.syncs() - before, 1);
    log.record(FIRST, &Call::Decided(1)).unwrap();
    assert!(!log.needs_sync());
    log.sync().unwrap();
    assert_eq!(disk.syncs() - before, 1);
    // It rides on the next turn that has something to say.
    log.record(SECOND, &Call::Promise(ballot(2))).unwrap();
    log.sync().unwrap();
    drop(log);
    assert_eq!(open(&disk).unwrap().decided(FIRST), 1);
}

#[test]
fn a_full_file_is_followed_by_the_next() {
    let disk = MemDisk::new();
    let mut log = create(&disk);
    let after = run_turns(&mut log, 100);
    drop(log);
    let files = disk.files();
    assert!(files.len() > 3, "{files:?}");
    assert!(files.iter().all(|file| disk.bytes(*file).len() == 4096));
    let mut log = open(&disk).unwrap();
    assert_eq!(both(&mut log), after[100]);
    let more = run_turns(&mut log, 20);
    drop(log);
    assert_eq!(both(&mut open(&disk).unwrap()), more[20]);
}

#[test]
fn a_turn_larger_than_a_file_gets_a_file_of_its_own() {
    let disk = MemDisk::new();
    let mut log = create(&disk);
    run_turns(&mut log, 3);
    log.record(FIRST, &Call::Append(vec![entry(4, 9000), entry(5, 9000)])).unwrap();
    log.sync().unwrap();
    run_turns(&mut log, 3);
    let expected = both(&mut log);
    drop(log);
    assert!(disk.bytes(2).len() > 18_000);
    assert_eq!(disk.bytes(3).len(), 4096);
    assert_eq!(both(&mut open(&disk).unwrap()), expected);
}

#[test]
fn the_cache_is_bounded_and_older_entries_are_read_back() {
    let disk = MemDisk::new();
    let settings = LogSettings { cache_bytes: 1000, ..SETTINGS };
    let mut log = Log::create(Box::new(disk.open().unwrap()), settings).unwrap();
    for number in 0..200 {
        log.record(FIRST, &Call::Append(vec![entry(number, 100)])).unwrap();
        log.sync().unwrap();
        assert!(log.cached_bytes() <= 1000);
    }
    let all = log.entries(FIRST, 0, 200, u64::MAX).unwrap();
    assert!(all.iter().zip(0..).all(|(bytes, number)| *bytes == entry(number, 100)));
    drop(log);
    let mut log = Log::open(Box::new(disk.open().unwrap()), settings).unwrap();
    assert!(log.cached_bytes() <= 1000);
    assert_eq!(log.entries(FIRST, 0, 200, u64::MAX).unwrap(), all);
}

#[test]
fn a_read_is_bounded_by_bytes_but_gives_at_least_one_entry() {
    let mut log = create(&MemDisk::new());
    log.record(FIRST, &Call::Append(vec![entry(0, 50), entry(1, 50), entry(2, 50)])).unwrap();
    assert_eq!(log.entries(FIRST, 0, 3, 100).unwrap().len(), 2);
    assert_eq!(log.entries(FIRST, 1, 3, 0).unwrap(), [entry(1, 50)]);
    assert_eq!(log.entries(FIRST, 3, 9, 100).unwrap(), Vec::<Bytes>::new());
    assert_eq!(log.entries(SECOND, 0, 9, 100).unwrap(), Vec::<Bytes>::new());
}

#[test]
fn entries_replaced_within_a_turn_are_read_back_as_they_ended() {
    let disk = MemDisk::new();
    let settings = LogSettings { cache_bytes: 0, ..SETTINGS };
    let mut log = Log::create(Box::new(disk.open().unwrap()), settings).unwrap();
    log.record(FIRST, &Call::Append(vec![entry(0, 9), entry(1, 9), entry(2, 9)])).unwrap();
    log.record(FIRST, &Call::AppendOnPrefix(1, vec![entry(11, 30)])).unwrap();
    log.sync().unwrap();
    assert_eq!(log.cached_bytes(), 0);
    assert_eq!(contents(&mut log, FIRST).entries, [entry(0, 9), entry(11, 30)]);
}
