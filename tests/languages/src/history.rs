//! What happens to a class while a seed draws what is done to it.
//!
//! A few clients call methods of an object, one after the other or many at once; calls wait, run into
//! the end of their time, are cancelled, lose their session; some are malformed or not for the class at
//! all; the process is restarted from a snapshot in between. A history is all that anybody sees of
//! that: each answer in the order in which answers came, who is blocked, the whole state of the object.
//! Invariant: what is drawn depends on the seed and on how many calls are open, so that histories that
//! are equal so far go on with the same draws.

use std::{
    cell::RefCell,
    fmt::{Debug, Write as _},
    rc::Rc,
    time::Duration,
};

use gesmas_abi::{
    fnv1a64,
    interface::{Interface, MethodKind},
};
use gesmas_sdk::stub::{CallMode, Invoke, StubCall};
use gesmas_testkit::{Client, Pending, World};

pub use crate::draw::Draw;

/// Things that are done in a history.
const ACTIONS: usize = 60;
/// Clients at a time.
const CLIENTS: usize = 4;
/// The object that the work is about.
const OBJECT: &str = "jobs";

/// The calls that a class is put through.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Draws the arguments that the object is created with.
    pub create: fn(&mut Draw) -> Vec<u8>,
    /// Draws a call: a method and its arguments.
    pub call: fn(&mut Draw) -> (&'static str, Vec<u8>),
}

/// The history of a class in a world of its own. The name of the class, which may be another one than
/// the interface says, is not in it.
#[must_use]
pub fn history(
    world: World,
    class: &str,
    interface: &Interface,
    work: Work,
    seed: u64,
) -> Vec<String> {
    let mut history = History::new(world, class, interface, work, seed);
    history.create();
    for _ in 0..ACTIONS {
        history.act();
        if history.draw.below(3) > 0 {
            history.look();
        }
    }
    history.look();
    history.lines.take()
}

/// Where two histories part, with what was before; none if they do not.
#[must_use]
pub fn difference(one: &[String], other: &[String]) -> Option<String> {
    let end = String::from("(the history ends)");
    let parts = (0..one.len().max(other.len())).find(|&line| one.get(line) != other.get(line))?;
    let mut text = String::new();
    for line in &one[parts.saturating_sub(6).min(one.len())..parts.min(one.len())] {
        let _ = writeln!(text, "  {line}");
    }
    for history in [one, other] {
        let _ = writeln!(text, "> {}", history.get(parts).unwrap_or(&end));
    }
    Some(text)
}

struct History<'a> {
    world: World,
    class: &'a str,
    interface: &'a Interface,
    work: Work,
    draw: Draw,
    clients: Vec<Client>,
    tasks: Vec<Pending<()>>,
    begun: usize,
    lines: Rc<RefCell<Vec<String>>>,
}

impl<'a> History<'a> {
    fn new(
        mut world: World,
        class: &'a str,
        interface: &'a Interface,
        work: Work,
        seed: u64,
    ) -> Self {
        world.shuffle(seed);
        let clients = (0..CLIENTS).map(|_| world.client()).collect();
        let (draw, lines) = (Draw::of(seed), Rc::default());
        Self { world, class, interface, work, draw, clients, tasks: Vec::new(), begun: 0, lines }
    }

    /// One thing happens. What is on its way may stay so until the next, so that calls of different
    /// clients meet.
    fn act(&mut self) {
        match self.draw.below(20) {
            0..=9 => self.calls(),
            10 => (0..CLIENTS * 3).for_each(|_| self.calls()),
            11..=13 => self.advance(),
            14 => self.cancel(),
            15 => self.expire(),
            16..=17 => self.wrong_call(),
            18 => self.restart(),
            _ => self.world.settle(),
        }
    }

    fn note(&self, what: impl Debug) {
        self.lines.borrow_mut().push(named(self.class, &format!("{what:?}")));
    }

    /// A call by the interface, of whatever class that is here.
    fn call(&self, method: &'static str, arguments: Vec<u8>) -> StubCall {
        let known = self.interface.method(method).expect("the work is about methods of the class");
        let mode = match known.kind {
            MethodKind::Read => CallMode::Read,
            MethodKind::Init => CallMode::Create,
            MethodKind::Update | MethodKind::Handler | MethodKind::Migrate => CallMode::Update,
        };
        let (object, signature) = (OBJECT.into(), known.signature);
        StubCall { class: "any", object, method, signature, arguments, mode }
    }

    /// A client makes calls, each when it has the answer to the one before.
    fn spawn(&mut self, client: usize, calls: Vec<StubCall>) {
        self.begun += 1;
        let (number, class) = (self.begun, self.class.to_owned());
        let (client, lines) = (self.clients[client].clone(), Rc::clone(&self.lines));
        self.tasks.push(self.world.spawn(async move {
            for call in calls {
                let method = call.method;
                let answer = client.invoke(call).await;
                let answer = match &answer {
                    Ok(result) => format!("Ok({})", shown(result)),
                    Err(error) => format!("{error:?}"),
                };
                let line = format!("task {number}: {method}: {answer}");
                lines.borrow_mut().push(named(&class, &line));
            }
        }));
    }

    fn create(&mut self) {
        let arguments = (self.work.create)(&mut self.draw);
        let create = self.call("init", arguments);
        self.spawn(0, vec![create]);
        self.world.settle();
    }

    fn calls(&mut self) {
        let client = self.draw.place(self.clients.len());
        let count = 1 + self.draw.below(4);
        let mut calls = Vec::new();
        for _ in 0..count {
            let (method, arguments) = (self.work.call)(&mut self.draw);
            calls.push(self.call(method, arguments));
        }
        self.spawn(client, calls);
    }

    fn advance(&mut self) {
        let milliseconds = self.draw.one_of(&[1, 500, 1_000, 3_000]);
        self.note(("time passes, ms", milliseconds));
        self.world.advance(Duration::from_millis(milliseconds));
    }

    fn cancel(&mut self) {
        self.tasks.retain(Pending::is_open);
        if self.tasks.is_empty() {
            return;
        }
        let cancelled = self.draw.place(self.tasks.len());
        self.note(("the caller gives up, of open tasks", cancelled, self.tasks.len()));
        self.world.cancel(&self.tasks[cancelled]);
    }

    /// A client is lost, and another one comes.
    fn expire(&mut self) {
        let client = self.draw.place(self.clients.len());
        self.note(("a session is over", client));
        self.world.expire(&self.clients[client].clone());
        self.clients[client] = self.world.client();
    }

    fn restart(&mut self) {
        self.note(("a restart, after resumptions", self.world.resumptions()));
        self.world.restart();
    }

    /// A call that something is wrong with.
    fn wrong_call(&mut self) {
        let (method, arguments) = (self.work.call)(&mut self.draw);
        let mut call = self.call(method, arguments);
        let length = call.arguments.len();
        match self.draw.below(9) {
            0..=1 if length > 0 => call.arguments.truncate(self.draw.place(length)),
            0..=1 => call.arguments.push(1),
            2 => call.arguments.push(0),
            3 => call.arguments = [vec![0xff; 4], call.arguments].concat(),
            4 => call.signature ^= 1,
            5 => call.method = "nothing",
            6 if call.mode == CallMode::Read => call.mode = CallMode::Update,
            6 => call.mode = CallMode::Read,
            7 => call.object = "nobody".into(),
            _ => {
                let arguments = (self.work.create)(&mut self.draw);
                call = self.call("init", arguments);
                if self.draw.below(2) == 0 {
                    call.object = "nobody".into();
                    call.arguments.pop();
                }
            }
        }
        self.note(("wrong", call.method, call.mode, &call.object, shown(&call.arguments)));
        let client = self.draw.place(self.clients.len());
        self.spawn(client, vec![call]);
        self.world.settle();
    }

    /// All that can be seen, when everything has ended or is blocked. Not the hash of the code, in
    /// which classes differ.
    fn look(&mut self) {
        self.world.settle();
        self.note(("blocked", self.world.blocked()));
        if let Some(object) = self.world.object(OBJECT) {
            let size = (object.summary.entries, object.summary.bytes, object.summary.waiters);
            self.note(("object", object.summary.incarnation, size));
            for (key, value) in &object.entries {
                self.note((shown(key), shown(value)));
            }
            self.note((object.semaphores, object.timers, object.faults));
        }
        let faults = self.world.faults();
        self.note(("faults", faults, "resumptions", self.world.resumptions()));
        for client in self.clients.clone() {
            let events = self.world.events(&client);
            self.note(("events", events));
        }
    }
}

/// Bytes, or where there are many, how they begin, how many they are and their hash.
fn shown(bytes: &[u8]) -> String {
    match bytes.split_at_checked(64) {
        Some((first, rest)) if !rest.is_empty() => {
            let (first, length, hash) = (first[..8].escape_ascii(), bytes.len(), fnv1a64(bytes));
            format!("{first}... {length} bytes {hash:x}")
        }
        _ => bytes.escape_ascii().to_string(),
    }
}

/// A text in which the class has no name.
fn named(class: &str, text: &str) -> String {
    text.replace(&format!("class: {class}"), "class: this").replace(&format!("{class}/"), "this/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_differ_where_they_part() {
        let history =
            |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| (*line).into()).collect() };
        let one = history(&["a", "b", "c"]);
        assert_eq!(difference(&one, &one.clone()), None);
        let parted = difference(&one, &history(&["a", "x", "c"]));
        assert_eq!(parted.as_deref(), Some("  a\n> b\n> x\n"));
        let shorter = difference(&one, &history(&["a", "b"]));
        assert_eq!(shorter.as_deref(), Some("  a\n  b\n> c\n> (the history ends)\n"));
        let longer = difference(&history(&[]), &history(&["a"]));
        assert_eq!(longer.as_deref(), Some("> (the history ends)\n> a\n"));
    }

    #[test]
    fn the_name_of_a_class_is_not_in_a_history() {
        let text = "MethodUnknown { class: BoundedQueue } BoundedQueue/jobs: x";
        let same = "MethodUnknown { class: Queue } Queue/jobs: x";
        assert_eq!(named("BoundedQueue", text), named("Queue", same));
    }
}
