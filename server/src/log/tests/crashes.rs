//! Power cuts at every step: a log comes back with whole turns, and with all that were synced.

use super::*;

/// One turn of several calls that only make sense together, as `write_atomically` makes them.
fn atomic_turn(log: &mut Log, turn: u64, choices: &mut Choices) -> Result<(), LogError> {
    let instance = if choices.below(2) == 0 { FIRST } else { SECOND };
    let number = u32::try_from(turn).unwrap();
    log.record(instance, &Call::AcceptedRound(ballot(number)))?;
    let end = log.end(instance);
    let from = end - choices.below(end.min(4) + 1);
    let entries = (0..choices.below(5))
        .map(|at| entry(turn * 10 + at, usize::try_from(choices.below(700)).unwrap()))
        .collect();
    log.record(instance, &Call::AppendOnPrefix(from, entries))?;
    log.record(instance, &Call::Promise(ballot(number)))
}

#[test]
fn a_power_cut_loses_whole_turns_and_none_that_was_synced() {
    let (mut cuts_in_a_turn, mut turn_survived) = (0, 0);
    for seed in 0..400 {
        let mut choices = Choices::new(seed);
        let disk = MemDisk::new();
        let mut log = create(&disk);
        let mut turn = 0;
        for _ in 0..6 {
            let steps = choices.below(40);
            disk.fail_after(steps);
            let (mut before, mut after) = (both(&mut log), both(&mut log));
            loop {
                turn += 1;
                let recorded = atomic_turn(&mut log, turn, &mut choices);
                after = recorded.map_or(after, |()| both(&mut log));
                if log.sync().is_err() {
                    break;
                }
                before = after.clone();
            }
            drop(log);
            // Now and then everything made it to the disk just before.
            let all_kept = choices.below(3) == 0;
            disk.cut_power(&mut |n| if all_kept { 1 } else { choices.below(n) });
            log = open(&disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let found = both(&mut log);
            cuts_in_a_turn += 1;
            turn_survived += u64::from(found == after);
            assert!(found == before || found == after, "seed {seed}: a torn turn");
        }
    }
    // Both outcomes are frequent, or the test would show nothing.
    assert!(turn_survived * 20 > cuts_in_a_turn, "{turn_survived} of {cuts_in_a_turn}");
    assert!(turn_survived * 10 < cuts_in_a_turn * 9, "{turn_survived} of {cuts_in_a_turn}");
}

#[test]
fn what_recovery_has_read_is_durable_before_anybody_relies_on_it() {
    let disk = MemDisk::new();
    let mut log = create(&disk);
    run_turns(&mut log, 3);
    // The process dies between write and sync: the record is in the system's memory only.
    disk.fail_after(1);
    log.record(FIRST, &Call::Promise(ballot(77))).unwrap();
    log.sync().unwrap_err();
    drop(log);
    disk.fail_after(u64::MAX);
    let log = open(&disk).unwrap();
    assert_eq!(log.promise(FIRST), Some(ballot(77)));
    drop(log);
    disk.cut_power(&mut |_| 0);
    assert_eq!(open(&disk).unwrap().promise(FIRST), Some(ballot(77)));
}

#[test]
fn what_a_crash_left_is_wiped_before_the_log_goes_on() {
    let disk = MemDisk::new();
    let mut log = create(&disk);
    let after = run_turns(&mut log, 3);
    disk.fail_after(1);
    log.record(FIRST, &Call::Append(vec![entry(4, 2000)])).unwrap();
    log.sync().unwrap_err();
    drop(log);
    // The head of the record is torn, the rest reached the disk.
    let mut first = true;
    disk.cut_power(&mut |n| if n == 3 && std::mem::take(&mut first) { 0 } else { 1 });
    assert!(disk.bytes(1)[1500..].iter().any(|byte| *byte != 0));
    let mut log = open(&disk).unwrap();
    assert_eq!(both(&mut log), after[3]);
    assert!(disk.bytes(1)[1500..].iter().all(|byte| *byte == 0));
}
