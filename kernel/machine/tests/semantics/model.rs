//! A second, simple description of scheduling and semaphores, and thousands of random commands on
//! which the machine and it must agree: every reply, in order.
//!
//! The model keeps queues as queues and undoes a segment by putting back a copy of everything.

use std::collections::{BTreeMap, VecDeque};

use crate::lab::Lab;

/// Methods as the machine runs them. The model's are in [`program`].
const MODEL: &str = "
class Model
init create 0
update p 1
  P $0
update px 1
  P $0
  panic x
update v 2
  V $0 $1
update vx 2
  V $0 $1
  panic x
update pp 2
  P $0
  P $1
update ppx 2
  P $0
  P $1
  panic x
update pv 2
  P $0
  V $1
update vp 2
  V $0
  P $1
update own 2
  acquire $0 -> a
  if $a = cancelled gone
  acquire $1 -> b
  if $b = cancelled gone
  return
gone:
  cancelled
update ownx 2
  acquire $0
  P $1
  panic x
update try 1
  try $0 -> x
  return $x
update vtry 1
  V $0
  try $0 -> x
  return $x
";

#[derive(Clone, Copy, Debug)]
enum Op {
    P(usize),
    Own(usize),
    V(usize, u64),
    Try(usize),
    Panic,
}

type Caller = (usize, u64);

#[derive(Clone, Debug)]
struct Call {
    program: Vec<Op>,
    at: usize,
    owned: Vec<usize>,
    deadline: Option<(u64, u64)>,
}

/// What a segment can change.
#[derive(Clone, Default)]
struct World {
    counts: [u64; 3],
    queues: [VecDeque<Caller>; 3],
    ready: VecDeque<(Caller, usize)>,
    calls: BTreeMap<Caller, Call>,
}

#[derive(Default)]
struct Model {
    world: World,
    replies: BTreeMap<Caller, String>,
    last: [u64; SESSIONS],
    over: [bool; SESSIONS],
    trace: Vec<String>,
    made: u64,
}

const SESSIONS: usize = 6;
const NAMES: [&str; 3] = ["a", "b", "c"];

impl World {
    fn give(&mut self, semaphore: usize) {
        match self.queues[semaphore].pop_front() {
            Some(caller) => self.ready.push_back((caller, semaphore)),
            None => self.counts[semaphore] += 1,
        }
    }

    fn owners(&self, semaphore: usize) -> Vec<Caller> {
        let owns = |call: &Call| call.owned.contains(&semaphore);
        self.calls.iter().filter(|(_, call)| owns(call)).map(|(caller, _)| *caller).collect()
    }

    /// Whether all that could let a caller go on, and all that could let those go on, wait for
    /// permits of each other, the caller among them.
    fn waits_for_itself(&self, asking: Caller, semaphore: usize) -> bool {
        let waits = |caller: &Caller| {
            let own = (*caller == asking).then_some(semaphore);
            own.or_else(|| self.queues.iter().position(|queue| queue.contains(caller)))
        };
        let mut reached = vec![];
        let mut next = self.owners(semaphore);
        while let Some(owner) = next.pop() {
            if !reached.contains(&owner) {
                reached.push(owner);
                match waits(&owner).map(|semaphore| self.owners(semaphore)) {
                    Some(owners) if !owners.is_empty() => next.extend(owners),
                    _ => return false,
                }
            }
        }
        reached.contains(&asking)
    }

    fn take(&mut self, semaphore: usize) -> bool {
        let free = self.counts[semaphore] > 0 && self.queues[semaphore].is_empty();
        self.counts[semaphore] -= u64::from(free);
        free
    }
}

impl Model {
    fn call(&mut self, caller: Caller, call: Call) {
        self.last[caller.0] = caller.1;
        self.world.calls.insert(caller, call);
        let before = self.world.clone();
        self.segment(caller, before, None);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some((caller, semaphore)) = self.world.ready.pop_front() {
            let before = self.world.clone();
            let call = self.world.calls.get_mut(&caller).expect("who is ready is there");
            if let Op::Own(_) = call.program[call.at] {
                call.owned.push(semaphore);
            }
            call.at += 1;
            self.segment(caller, before, Some(semaphore));
        }
    }

    fn segment(&mut self, caller: Caller, before: World, grant: Option<usize>) {
        let mut result = String::new();
        loop {
            let call = &self.world.calls[&caller];
            let Some(&op) = call.program.get(call.at) else {
                return self.end(caller, format!("ok {result}").trim_end());
            };
            match op {
                Op::P(semaphore) | Op::Own(semaphore) => {
                    if !self.world.take(semaphore) {
                        if self.world.waits_for_itself(caller, semaphore) {
                            let why = "it would have waited for calls that wait for it";
                            let text = format!("error: the call was cancelled: {why}");
                            return self.end(caller, &text);
                        }
                        self.world.queues[semaphore].push_back(caller);
                        return;
                    }
                    if let Op::Own(_) = op {
                        self.world.calls.get_mut(&caller).expect("it runs").owned.push(semaphore);
                    }
                }
                Op::V(semaphore, count) => (0..count).for_each(|_| self.world.give(semaphore)),
                Op::Try(semaphore) => {
                    let got = self.world.take(semaphore);
                    result = if got { "granted" } else { "would-block" }.into();
                }
                Op::Panic => {
                    self.world = before;
                    if let Some(semaphore) = grant {
                        self.world.give(semaphore);
                    }
                    return self.end(caller, "error: the method failed: it panicked: x");
                }
            }
            self.world.calls.get_mut(&caller).expect("it runs").at += 1;
        }
    }

    fn end(&mut self, caller: Caller, text: &str) {
        let call = self.world.calls.remove(&caller).expect("it ends once");
        for semaphore in call.owned.into_iter().rev() {
            self.world.give(semaphore);
        }
        self.reply(caller, text.into());
    }

    fn reply(&mut self, caller: Caller, text: String) {
        if !self.over[caller.0] {
            self.trace.push(format!("  s{}#{} {text}", caller.0, caller.1));
            self.replies.insert(caller, text);
        }
    }

    fn leave(&mut self, caller: Caller) {
        for queue in &mut self.world.queues {
            queue.retain(|waiter| *waiter != caller);
        }
    }

    fn cancel(&mut self, caller: Caller, why: &str) {
        self.leave(caller);
        self.end(caller, &format!("error: the call was cancelled: {why}"));
        self.drain();
    }

    fn again(&mut self, caller: Caller) {
        if self.over[caller.0] {
            self.refuse(caller, "the session is over");
        } else if let Some(text) = self.replies.get(&caller).cloned() {
            self.trace.push(format!("  s{}#{} {text}", caller.0, caller.1));
        } else if !self.world.calls.contains_key(&caller) {
            self.refuse(caller, "its number was used and its reply is gone");
        }
    }

    fn cancel_command(&mut self, caller: Caller) {
        if !self.over[caller.0] && self.world.calls.contains_key(&caller) {
            self.cancel(caller, "its caller gave it up");
        } else {
            self.again(caller);
        }
    }

    fn refuse(&mut self, caller: Caller, why: &str) {
        self.trace.push(format!("  s{}#{} refused: {why}", caller.0, caller.1));
    }

    fn expire(&mut self, session: usize) {
        if std::mem::replace(&mut self.over[session], true) {
            return;
        }
        self.trace.push(format!("  s{session} is expired"));
        let waiting: Vec<_> =
            self.world.calls.keys().filter(|caller| caller.0 == session).copied().collect();
        waiting.iter().for_each(|caller| self.leave(*caller));
        waiting.iter().for_each(|caller| self.end(*caller, ""));
        self.drain();
    }

    fn pass_time(&mut self, now: u64) {
        loop {
            let due = self
                .world
                .calls
                .iter()
                .filter_map(|(caller, call)| Some((call.deadline?, *caller)));
            match due.min().filter(|((time, _), _)| *time <= now) {
                Some((_, caller)) => self.cancel(caller, "its deadline passed"),
                None => return,
            }
        }
    }
}

fn program(method: &str, s: usize, t: usize, n: u64) -> Vec<Op> {
    match method {
        "p" => vec![Op::P(s)],
        "px" => vec![Op::P(s), Op::Panic],
        "v" => vec![Op::V(s, n)],
        "vx" => vec![Op::V(s, n), Op::Panic],
        "pp" => vec![Op::P(s), Op::P(t)],
        "ppx" => vec![Op::P(s), Op::P(t), Op::Panic],
        "pv" => vec![Op::P(s), Op::V(t, 1)],
        "vp" => vec![Op::V(s, 1), Op::P(t)],
        "own" => vec![Op::Own(s), Op::Own(t)],
        "ownx" => vec![Op::Own(s), Op::P(t), Op::Panic],
        "try" => vec![Op::Try(s)],
        "vtry" => vec![Op::V(s, 1), Op::Try(s)],
        other => panic!("{other} is no method of the model"),
    }
}

/// A small generator (SplitMix64): equal seeds give equal scenarios.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.below(from.len() as u64)).expect("it is below a length")]
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("it is below a length")
    }
}

fn one_command(dice: &mut Dice, model: &mut Model, now: u64) -> String {
    let session = dice.index(SESSIONS);
    let last = model.last[session];
    if last > 0 && dice.below(10) < 3 {
        let number = 1 + dice.below(last);
        let caller = (session, number);
        return match dice.below(40) {
            0 => {
                model.expire(session);
                format!("expire s{session}")
            }
            1..=4 => {
                model.replies.retain(|(owner, of), _| *owner != session || *of > number);
                format!("s{session} acks 1-{number}")
            }
            5..=20 => {
                model.cancel_command(caller);
                format!("s{session} cancels {number}")
            }
            _ => {
                model.again(caller);
                format!("s{session} repeats {number}")
            }
        };
    }
    let methods =
        ["p", "px", "v", "v", "v", "vx", "pp", "ppx", "pv", "vp", "own", "ownx", "try", "vtry"];
    let method = dice.pick(&methods);
    let (s, t, n) = (dice.index(3), dice.index(3), dice.below(4));
    let words = match method {
        "v" | "vx" => format!("{} {n}", NAMES[s]),
        "p" | "px" | "try" | "vtry" => NAMES[s].into(),
        _ => format!("{} {}", NAMES[s], NAMES[t]),
    };
    let within = (dice.below(3) == 0).then(|| 1 + dice.below(60));
    model.made += 1;
    let deadline = within.map(|time| (now + time, model.made));
    let call = Call { program: program(method, s, t, n), at: 0, owned: Vec::new(), deadline };
    let caller = (session, last + 1);
    if model.over[session] {
        model.last[session] += 1;
        model.refuse(caller, "the session is over");
    } else {
        model.call(caller, call);
    }
    let within = within.map_or_else(String::new, |time| format!("within {time} "));
    format!("s{session} {within}calls Model/m {method} {words}")
}

#[test]
fn the_machine_agrees_with_the_model() {
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let mut lab = Lab::new(&[MODEL]);
        for session in 0..SESSIONS {
            lab.play(&format!("open s{session}"));
        }
        let mut model = Model::default();
        for round in 0..150 {
            let jump = if dice.below(10) == 0 { 1 + dice.below(40) } else { 1 };
            let now = lab.machine().now().0 + jump;
            model.pass_time(now);
            let commands: Vec<_> =
                (0..1 + dice.below(4)).map(|_| one_command(&mut dice, &mut model, now)).collect();
            let line = format!("+{jump} {}", commands.join("; "));
            let trace = lab.play(&line);
            let expected = std::mem::take(&mut model.trace);
            let got: Vec<_> = trace.lines().skip(1).collect();
            assert_eq!(got, expected, "seed {seed}, round {round}: {line}");
        }
        let object = gesmas_machine::ObjectName::new("Model", "m").expect("a name");
        let Some(view) = lab.machine().object(&object, 1_000) else { continue };
        for (index, name) in NAMES.iter().enumerate() {
            let stored = view.semaphores.iter().find(|semaphore| semaphore.name == name.as_bytes());
            let counted = stored.map_or((0, 0), |it| (it.count, it.waiters.len()));
            let expected = (model.world.counts[index], model.world.queues[index].len());
            assert_eq!(counted, expected, "seed {seed}, semaphore {name}");
        }
    }
}
