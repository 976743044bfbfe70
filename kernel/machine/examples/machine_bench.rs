//! How many calls a second the machine does, with scripted bodies.
//!
//! `cargo run --release -p gesmas-machine --example machine_bench`
//!
//! The costs measured are those of ordering, admission, undo log, sums, journal and scheduling;
//! what a real engine costs comes on top. Numbers are for comparing two versions of this code on
//! one machine.

use std::collections::BTreeMap;
#[expect(
    clippy::disallowed_types,
    reason = "a benchmark measures real time, outside the machine"
)]
use std::time::Instant;

use gesmas_machine::{
    Acknowledged, Ballot, Batch, ClassName, Command, Effect, Genesis, Limits, LogEntry, Machine,
    MethodName, ObjectName, OnBehalf, Place, Progress, Request, RequestBody, STATE_MACHINE_VERSION,
    SessionId, Settings, Time, scripted::ScriptedEngine,
};

const CLASSES: [(&str, &str); 2] = [
    (
        "Counter",
        "class Counter
         init create 0
         update add 1
           read value -> value
           add value $0
           write value $value
           return $value",
    ),
    (
        "Queue",
        "class Queue
         init create 0
           count free 1000000
         update produce 1
           P free
           push items $
           V filled
           return
         update consume 0
           P filled
           pop items -> item
           V free
           return $item",
    ),
];

const BATCH: usize = 64;

struct Bench {
    machine: Machine<ScriptedEngine>,
    ballot: Ballot,
    last: u64,
}

impl Bench {
    fn new(live_activations: usize) -> Self {
        let ballot = Ballot { number: 1, ..Ballot::default() };
        let engine = ScriptedEngine::new();
        let machine = Machine::new(engine, Settings { live_activations });
        let mut bench = Self { machine, ballot, last: 0 };
        bench.apply(LogEntry::Genesis(Box::new(Genesis {
            cluster: 1,
            state_machine_version: STATE_MACHINE_VERSION,
            seed: [0; 32],
            replicas: vec![1],
            engine: ScriptedEngine::own_identity(),
            limits: Limits::default(),
            reserved: BTreeMap::new(),
        })));
        bench.apply(LogEntry::LeaderStart { ballot, now: Time(1) });
        let principal = "bench".into();
        bench.batch(vec![Command::OpenSession { nonce: 1, principal, timeout: 1_000_000_000 }]);
        for (class, text) in CLASSES {
            let code = bench.machine.engine_mut().compile(text.as_bytes()).expect("a script");
            let class = ClassName::new(class).expect("a name");
            let put =
                bench.request(RequestBody::PutClass { class, module: text.into(), replace: None });
            bench.batch(vec![put, Command::Compiled { replica: 1, code, failure: None }]);
        }
        bench
    }

    fn request(&mut self, body: RequestBody) -> Command {
        let previous = self.last;
        self.last += 1;
        let place = Place { session: SessionId(1), number: self.last, previous };
        let replies = vec![(1, previous)];
        let acknowledged = Acknowledged { replies, events: 0 };
        Command::Request(Request { place, acknowledged, time_left: None, body })
    }

    fn call(&mut self, object: &ObjectName, method: &MethodName, arguments: &str) -> Command {
        let signature = u64::from(!arguments.is_empty());
        self.request(RequestBody::Call {
            object: object.clone(),
            method: method.clone(),
            signature,
            arguments: arguments.into(),
            on_behalf: OnBehalf::Requester,
        })
    }

    fn batch(&mut self, commands: Vec<Command>) -> usize {
        let stamp = self.machine.now().after(1);
        self.apply(LogEntry::Batch(Batch { ballot: self.ballot, stamp, commands }))
    }

    /// Applies an entry as it comes from the log, and returns how many calls ended well.
    fn apply(&mut self, entry: LogEntry) -> usize {
        let entry = LogEntry::decode(&entry.encode()).expect("an entry has an encoding");
        self.machine.handle_entry(entry).expect("it is its own engine");
        assert_eq!(self.machine.run(u32::MAX), Progress::Idle);
        let effects = std::iter::from_fn(|| self.machine.poll_effect());
        effects.filter(|effect| matches!(effect, Effect::Reply { outcome: Ok(_), .. })).count()
    }

    /// Makes so many calls in batches and prints how long each took.
    fn measure(&mut self, name: &str, rounds: usize, calls: &[(&ObjectName, &MethodName, &str)]) {
        #[expect(clippy::disallowed_types, reason = "see above")]
        let start = Instant::now();
        let mut ended = 0;
        for _ in 0..rounds {
            let mut commands = Vec::with_capacity(BATCH);
            for _ in 0..BATCH / calls.len() {
                for (object, method, arguments) in calls {
                    commands.push(self.call(object, method, arguments));
                }
            }
            ended += self.batch(commands);
        }
        let nanoseconds = start.elapsed().as_nanos();
        let each = nanoseconds / ended as u128;
        println!(
            "{name:<36} {ended:>8} calls, {each:>6} ns each, {:>9} a second",
            1_000_000_000 / each
        );
        self.machine.check_state().expect("the state is sound");
    }
}

fn main() {
    let counter = ObjectName::new("Counter", "c").expect("a name");
    let queue = ObjectName::new("Queue", "q").expect("a name");
    let method = |name| MethodName::new(name).expect("a name");
    let (add, produce, consume) = (method("add"), method("produce"), method("consume"));
    let item = "sixteen bytes it";

    let mut bench = Bench::new(1_000);
    bench.measure("counter", 4_000, &[(&counter, &add, "1")]);
    let pair = [(&queue, &produce, item), (&queue, &consume, "")];
    bench.measure("produce then consume", 4_000, &pair);
    let pair = [(&queue, &consume, ""), (&queue, &produce, item)];
    bench.measure("consume blocks, produce resumes", 4_000, &pair);
    Bench::new(0).measure("the same, every body rebuilt", 4_000, &pair);
}
