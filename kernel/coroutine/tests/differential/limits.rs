//! Limits change while bodies of modules wait: what a body runs under is what its frame began with.
//!
//! One history on machines over the WebAssembly engine that keep all suspended bodies, one, none, or
//! are made anew from their images before every entry. Bodies take memory, burn fuel and fill their
//! journals after they have waited; operators set the limits of all three meanwhile.
//! Not here: the native engine, which bounds no memory and counts fuel otherwise.

use gesmas_abi::value::to_bytes;
use gesmas_coroutine::WasmEngine;
use gesmas_machine::{
    Acknowledged, Batch, CallError, ClassName, CodeHash, Command, Effect, LogEntry, Machine,
    MethodName, ObjectName, OnBehalf, Place, Request, RequestBody, SessionId, Settings, Time, Trap,
};

use crate::{
    code::{modules, wasm},
    group::{BALLOT, apply, assert_same, entries, seen},
    workload::Dice,
};

const SLOTS: u32 = 200;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Machines, and how often a body ended with which limit.
struct Machines {
    all: Vec<Machine<WasmEngine>>,
    session: SessionId,
    number: u64,
    ends: [u32; 4],
}

impl Machines {
    fn new() -> Self {
        let machine = |live_activations| Machine::new(wasm(SLOTS), Settings { live_activations });
        let all = [1_000, 1, 0, 1_000].map(machine).into();
        let mut machines = Self { all, session: SessionId(0), number: 0, ends: [0; 4] };
        for entry in entries() {
            machines.apply(&entry);
        }
        machines.session = machines.all[0].sessions().next().expect("one is open").0;
        let specimen = modules().iter().find(|module| module.native.name == "Specimen");
        let bytes = specimen.expect("it is one of them").bytes.clone();
        let code = CodeHash::of(&bytes);
        let class = ClassName::new("Specimen").expect("a name");
        let put = machines.request(RequestBody::PutClass { class, module: bytes, replace: None });
        machines.batch(vec![put, Command::Compiled { replica: 1, code, failure: None }]);
        machines
    }

    fn request(&mut self, body: RequestBody) -> Command {
        self.number += 1;
        let place = Place { session: self.session, number: self.number, previous: self.number - 1 };
        let acknowledged = Acknowledged::default();
        Command::Request(Request { place, acknowledged, time_left: None, body })
    }

    fn call(&mut self, method: &str, arguments: Vec<u8>) -> Command {
        let object = ObjectName::new("Specimen", "s").expect("a name");
        let class = self.all[0].class(&object.class).expect("it is loaded");
        let method = MethodName::new(method).expect("a name");
        let signature = class.interface.methods[&method].signature;
        let on_behalf = OnBehalf::Requester;
        self.request(RequestBody::Call { object, method, signature, arguments, on_behalf })
    }

    fn limit(&mut self, name: &str, value: u64) -> Command {
        self.request(RequestBody::SetLimit { name: name.into(), value })
    }

    fn batch(&mut self, commands: Vec<Command>) {
        let stamp = Time(self.all[0].now().0 + 1_000_000);
        let effects = self.apply(&LogEntry::Batch(Batch { ballot: BALLOT, stamp, commands }));
        for effect in effects {
            let Effect::Reply { outcome, .. } = effect else { continue };
            match outcome {
                Ok(_) => self.ends[0] += 1,
                Err(CallError::Trapped(Trap::OutOfMemory(_))) => self.ends[1] += 1,
                Err(CallError::Trapped(Trap::OutOfFuel(_))) => self.ends[2] += 1,
                Err(CallError::Trapped(Trap::Limit(limit))) => {
                    assert_eq!(limit.name, "journal_bytes");
                    self.ends[3] += 1;
                }
                Err(other) => panic!("a call ended with {other}"),
            }
        }
    }

    fn apply(&mut self, entry: &LogEntry) -> Vec<Effect> {
        let anew = self.all.pop().expect("there are some");
        let image = anew.encode_image();
        let anew = if anew.genesis().is_none() {
            anew
        } else {
            Machine::from_image(&image, wasm(SLOTS), Settings::default()).expect("it is sound")
        };
        self.all.push(anew);
        let effects = apply(&mut self.all[0], entry);
        let expected = seen(&self.all[0], &effects);
        for machine in &mut self.all[1..] {
            let others = apply(machine, entry);
            assert_same(&others, &effects, "what comes out of an entry");
            assert_same(&seen(machine, &others), &expected, "the state after an entry");
        }
        effects
    }
}

fn one_command(machines: &mut Machines, dice: &mut Dice) -> Command {
    let door = dice.below(2);
    match dice.below(10) {
        0..=1 => {
            let bytes = 100_000 + dice.below(1_500_000);
            machines.call("swell", to_bytes(&(door, bytes)))
        }
        2 => {
            let rounds = 10_000 + dice.below(1_000_000);
            machines.call("burn", to_bytes(&(door, rounds)))
        }
        3 => {
            let calls = 10 + dice.below(400);
            machines.call("fill", to_bytes(&(door, calls)))
        }
        4..=6 => {
            let count = 1 + u32::try_from(dice.below(3)).expect("it is small");
            machines.call("open", to_bytes(&(door, count)))
        }
        7 => machines.limit("memory_bytes", [2 * MIB, 3 * MIB, 4 * MIB][dice.below(3) as usize]),
        8 => {
            let fuel = [200_000, 2_000_000, 50_000_000][dice.below(3) as usize];
            machines.limit("fuel_per_segment", fuel)
        }
        _ => {
            let bytes = [2 * KIB, 16 * KIB, 4 * MIB][dice.below(3) as usize];
            machines.limit("journal_bytes", bytes)
        }
    }
}

#[test]
fn bodies_run_under_the_limits_of_their_frames_however_they_are_kept() {
    let (mut rebuilt, mut ends) = (0, [0; 4]);
    for seed in 0..6 {
        let mut dice = Dice(seed);
        let mut machines = Machines::new();
        for _ in 0..120 {
            let commands = 0..1 + dice.below(3);
            let commands = commands.map(|_| one_command(&mut machines, &mut dice)).collect();
            machines.batch(commands);
        }
        rebuilt += machines.all.iter().map(|machine| machine.statistics().rebuilt).sum::<u64>();
        ends.iter_mut().zip(machines.ends).for_each(|(all, own)| *all += own);
    }
    assert!(rebuilt > 300 && ends.iter().all(|count| *count > 5), "{rebuilt} rebuilt, {ends:?}");
}
