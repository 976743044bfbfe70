//! Random scenarios on classes as people write them: nothing is lost, doubled or reordered.

use std::collections::BTreeMap;

use crate::{
    lab::Lab,
    model::Dice,
    standard::{BARRIER, LIFE, LOCK, PIECES, QUEUE},
};

const SESSIONS: [&str; 5] = ["s0", "s1", "s2", "s3", "s4"];

fn one_command(dice: &mut Dice, numbers: &mut BTreeMap<&str, u64>, item: &mut u64) -> String {
    let session = dice.pick(&SESSIONS);
    let last = numbers.entry(session).or_default();
    if *last > 0 && dice.below(4) == 0 {
        let number = 1 + dice.below(*last);
        return match dice.below(30) {
            0 => format!("expire {session}; open {session}n"),
            1..=5 => format!("{session} acks 1-{number}"),
            6..=15 => format!("{session} cancels {number}"),
            _ => format!("{session} repeats {number}"),
        };
    }
    *last += 1;
    *item += 1;
    let what = match dice.below(24) {
        0..=4 => format!("calls Queue/q produce {item}"),
        5..=8 => "calls Queue/q consume".into(),
        9 => "calls Queue/q consume_and_panic".into(),
        10..=11 => "calls Barrier/b arrive 3".into(),
        12..=13 => "calls Lock/l take".into(),
        14..=15 => format!("calls Lock/l give {}", 1 + dice.below(20)),
        16 => "calls Lock/l take_for 30".into(),
        17 => format!("calls Life/f after {} bell", dice.below(30)),
        18 => format!("calls Life/f after_panic {} bell", dice.below(30)),
        19 => format!("calls Life/f watch {} mourn", 2 + dice.below(6)),
        20 => format!("calls Life/f notify {} hello", 2 + dice.below(6)),
        21 => format!(
            "calls Pieces/{} cleanup_panic {}",
            dice.pick(&["x", "y"]),
            dice.pick(&["s", "t"])
        ),
        22 => format!("calls Pieces/x vs {} 2", dice.pick(&["s", "t"])),
        _ => match dice.below(8) {
            0 => "removes Barrier/b".into(),
            1 => "removes Pieces/y".into(),
            2 => format!("kills {}", 1 + dice.below(*item)),
            _ => "calls Pieces/x p_detached s".into(),
        },
    };
    let within =
        if dice.below(4) == 0 { format!("within {} ", dice.below(80)) } else { String::new() };
    format!("{session} {within}{what}")
}

/// The items of the queue as replies tell them: what was put in, and what was taken out.
#[derive(Default)]
struct Ledger {
    sent: BTreeMap<(String, u64), String>,
    ended: BTreeMap<(String, u64), String>,
    produced: Vec<String>,
    consumed: Vec<String>,
}

impl Ledger {
    fn note(&mut self, numbers: &mut BTreeMap<String, u64>, trace: &str) {
        let (first, rest) = trace.split_once('\n').expect("a trace begins with its line");
        let commands = first.trim_start_matches("> ").split_once(' ').expect("+N commands").1;
        for command in commands.split("; ") {
            let (session, what) = command.split_once(' ').expect("session and command");
            if ["calls", "within", "removes", "kills"].iter().any(|word| what.starts_with(word)) {
                let number = numbers.entry(session.into()).or_default();
                *number += 1;
                self.sent.insert((session.into(), *number), what.into());
            }
        }
        for reply in rest.lines().filter_map(|line| line.trim().split_once('#')) {
            let (number, outcome) = reply.1.split_once(' ').expect("a number and how it ended");
            let caller = (reply.0.to_owned(), number.parse().expect("a number"));
            if !outcome.starts_with("refused") {
                self.end(caller, outcome);
            }
        }
    }

    fn end(&mut self, caller: (String, u64), outcome: &str) {
        if let Some(before) = self.ended.get(&caller) {
            return assert_eq!(before, outcome, "a request ends once: {caller:?}");
        }
        let what = &self.sent[&caller];
        if let (Some((_, item)), "ok") = (what.split_once("produce "), outcome) {
            self.produced.push(item.into());
        }
        if let (true, Some(item)) = (what.ends_with("q consume"), outcome.strip_prefix("ok ")) {
            self.consumed.push(item.into());
        }
        self.ended.insert(caller, outcome.into());
    }
}

#[test]
fn no_item_is_lost_doubled_or_reordered() {
    for seed in 100..108 {
        let mut dice = Dice(seed);
        let mut lab = Lab::new(&[QUEUE, BARRIER, LOCK, LIFE, PIECES]);
        SESSIONS.iter().for_each(|name| {
            lab.play(&format!("open {name}"));
        });
        lab.play("open zero\nzero creates Queue/q 3");
        let (mut sent, mut item) = (BTreeMap::new(), 0);
        let (mut ledger, mut noted) = (Ledger::default(), BTreeMap::new());
        for _ in 0..200 {
            let jump = 1 + dice.below(20) * dice.below(2);
            let commands: Vec<_> = (0..1 + dice.below(3))
                .map(|_| one_command(&mut dice, &mut sent, &mut item))
                .collect();
            let trace = lab.play(&format!("+{jump} {}", commands.join("; ")));
            ledger.note(&mut noted, &trace);
        }
        assert!(ledger.consumed.len() >= 5, "seed {seed} consumes");
        let (taken, left) = ledger.produced.split_at(ledger.consumed.len());
        assert_eq!(taken, ledger.consumed, "seed {seed}: in the order of their production");
        let object = gesmas_machine::ObjectName::new("Queue", "q").expect("a name");
        let view = lab.machine().object(&object, 1_000).expect("it is not removed");
        let items = view.entries.iter().filter(|(key, _)| key.starts_with(b"items\0"));
        let items: Vec<_> =
            items.map(|(_, item)| String::from_utf8(item.clone()).expect("text")).collect();
        assert_eq!(items, left, "seed {seed}: what was not consumed is there");
    }
}
