//! A body's run depends on its frame alone, whatever operators change meanwhile.
//!
//! Bodies block, every limit is set to values of its whole range, and the bodies go on: they take
//! memory, use up fuel and fill their journals after a `P`. The laboratory's machines keep all
//! bodies, one, none, or are made anew before every batch; it compares them after every batch.

use expect_test::expect;
use gesmas_machine::Limits;

use crate::{check, lab::Lab, model::Dice};

/// What a body can use up after it has waited, and after it has continued with another method.
const VESSEL: &str = "
class Vessel
init create 0
  write big 0123456789012345678901234567890123456789012345678901234567890123
update open 2
  V $0 $1
update swell 2
  P $0
  grow $1
  P $0
  grow $1
  return $1
update burn 2
  P $0
  burn $1
  P $0
  return $1
update fill 2
  P $0
again:
  read big -> x
  add n 1
  if $n != $1 again
  P $0
  return $n
update renew 2
  P $0
  continue swell $0 $1
update own 2
  acquire $0
  grow $1
  after $1 ring $0 $1 -> id
  P $0
update scan 2
  P $0
  scan big most $1 -> x
  write $x x
update rings 2
  after 1 ring $0 $1 -> id
handler ring 2
  grow $1
  V $0
";

const METHODS: [&str; 6] = ["swell", "burn", "fill", "renew", "own", "scan"];
const GATES: [&str; 2] = ["gate", "door"];

#[test]
fn a_frame_keeps_the_memory_it_began_with() {
    check(
        &[VESSEL],
        "
        open ann
        open bob
        bob limits memory_bytes 100000
        ann calls Vessel/v swell gate 60000
        bob limits memory_bytes 4000000
        ann calls Vessel/v swell gate 60000
        bob calls Vessel/v open gate 4
        bob limits memory_bytes 65536
        bob calls Vessel/v open gate 2
        ann calls Vessel/v renew door 60000
        bob limits memory_bytes 4000000
        ann calls Vessel/v renew door 60000
        bob limits memory_bytes 65536
        bob calls Vessel/v open door 6
        ",
        &expect![[r#"
            > open ann
              ann is session 2
            > open bob
              bob is session 3
            > bob limits memory_bytes 100000
              bob#1 ok
            > ann calls Vessel/v swell gate 60000
            > bob limits memory_bytes 4000000
              bob#2 ok
            > ann calls Vessel/v swell gate 60000
            > bob calls Vessel/v open gate 4
              bob#3 ok
              ann#1 error: the method failed: it needs more than its 100000 bytes of memory
              ann#2 ok 60000
            > bob limits memory_bytes 65536
              bob#4 ok
            > bob calls Vessel/v open gate 2
              bob#5 ok
            > ann calls Vessel/v renew door 60000
            > bob limits memory_bytes 4000000
              bob#6 ok
            > ann calls Vessel/v renew door 60000
            > bob limits memory_bytes 65536
              bob#7 ok
            > bob calls Vessel/v open door 6
              bob#8 ok
              ann#3 error: the method failed: it needs more than its 65536 bytes of memory
              ann#4 error: the method failed: it needs more than its 65536 bytes of memory
        "#]],
    );
}

/// A value of a limit: near its ends, or somewhere between them.
fn value_of(limit: gesmas_machine::Limit, dice: &mut Dice) -> u64 {
    let gesmas_machine::Limit { value, least, greatest } = limit;
    match dice.below(4) {
        0 => least,
        1 => (value / 2).max(least),
        2 => least + dice.below(1 + (value - least).min(1 << 20)),
        _ => greatest.min(value.saturating_mul(2)),
    }
}

/// One command of the callers of a generation.
fn one_command(dice: &mut Dice, calls: &mut u64, generation: usize) -> String {
    let (gate, method) = (dice.pick(&GATES), dice.pick(&METHODS));
    match dice.below(12) {
        0..=8 => {
            let amount = match method {
                "fill" => 1 + dice.below(60),
                "scan" => 1 + dice.below(5),
                _ => 10_000 + dice.below(300_000),
            };
            *calls += 1;
            format!("ann{generation} calls Vessel/v {method} {gate} {amount}")
        }
        9 => {
            *calls += 1;
            format!("ann{generation} calls Vessel/v rings {gate} {}", dice.below(200_000))
        }
        10 => format!("ann{generation} cancels {}", 1 + dice.below(1 + *calls)),
        _ => format!("bob{generation} calls Vessel/v open {gate} {}", 2 + dice.below(4)),
    }
}

#[test]
fn no_change_of_any_limit_makes_machines_differ() {
    let defaults = Limits::default().list();
    for seed in 0..8 {
        let mut dice = Dice(seed);
        let mut lab = Lab::new(&[VESSEL]);
        let (mut calls, mut generation) = (0, 0_usize);
        for round in 0..150 {
            if round % 10 == 0 {
                // Callers that a limit has turned away are followed by others; what they have
                // begun goes on without them for a while.
                generation = round / 10;
                calls = 0;
                for name in ["ann", "bob", "zoe"] {
                    if let Some(before) = generation.checked_sub(2) {
                        lab.play(&format!("expire {name}{before}"));
                    }
                    lab.play(&format!("open {name}{generation}"));
                }
                for (name, limit) in &defaults {
                    lab.play(&format!("zoe{generation} limits {name} {}", limit.value));
                    lab.play(&format!("zoe{generation} acks 1-100"));
                }
            }
            // Each seed begins with other names, so that all together set every limit often.
            let place = |round: usize| (seed as usize * 7 + round) % defaults.len();
            let (name, limit) = defaults[place(round)];
            let (last, before) = defaults[place(round + defaults.len() - 1)];
            let value = value_of(limit, &mut dice);
            lab.play(&format!("zoe{generation} limits {last} {}", before.value));
            let commands: Vec<_> = (0..1 + dice.below(3))
                .map(|_| one_command(&mut dice, &mut calls, generation))
                .collect();
            lab.play(&format!("zoe{generation} limits {name} {value}; {}", commands.join("; ")));
            lab.play(&format!("+{} tick", 1 + dice.below(5)));
            lab.take_trace();
        }
        let statistics = lab.parking_machine().statistics();
        assert!(statistics.rebuilt >= 20, "seed {seed}: {statistics:?}");
    }
}
