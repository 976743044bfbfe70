//! What a call costs in the kernel alone: machine and engine on one thread, no log, no sockets.
//!
//! Each case runs in rounds; the first is not counted. A second series of rounds looks at the clock
//! around each run of a body and tells how much of a call the engine takes; what is left, decoding
//! apart, is the machine: admission, undo log, journal, semaphores, sums of hashes, replies.
//! Not here: what it costs to get a call here (`cluster/`).

mod calls;
mod lab;
mod pause;
mod report;
mod timed;
mod trivial;

use gesmas_barrier::{Barrier, BarrierStub};
use gesmas_coroutine::{NativeEngine, WasmEngine, native_module};
use gesmas_counter::{Counter, CounterStub};
use gesmas_machine::{Engine, RequestBody};
use gesmas_queue::{Queue, QueueStub};
use gesmas_register::{Register, RegisterStub};

use self::{
    calls::Net,
    lab::{Lab, Round},
};
pub use self::{
    pause::{PauseReport, run as pause},
    report::{Case, Parts, Report},
};
use super::{load::LoadMeter, sample::Spread};

/// Bytes of the items that move through queues.
const ITEM_BYTES: usize = 16;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Rounds of each case.
    pub rounds: usize,
    /// Calls of a round, about.
    pub calls: usize,
    /// Only this engine.
    pub engine: Option<EngineKind>,
    /// Allocations of this thread so far, for whoever counts them.
    pub allocations: Option<fn() -> u64>,
}

/// What runs bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// wasmtime.
    Wasm,
    /// Classes that are compiled into this program.
    Native,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum KernelBenchError {
    /// There is no engine on this host.
    #[error(transparent)]
    Engine(#[from] gesmas_coroutine::EngineUnavailable),
    /// A standard class does not compile.
    #[error("class {0}: {1}")]
    Compile(&'static str, gesmas_coroutine::CompileError),
}

/// What is called, and how.
struct Workload {
    name: &'static str,
    /// Before the first round.
    prepare: Vec<RequestBody>,
    /// Over and over.
    calls: Vec<RequestBody>,
    /// Calls in one entry of the log.
    batch: usize,
    /// Calls before it that each acknowledges: those that may have been blocked until then.
    acknowledged: u64,
    live_activations: usize,
}

/// Measures.
///
/// # Errors
/// When there is no engine to measure.
pub fn run(options: &Options) -> Result<Report, KernelBenchError> {
    let load = LoadMeter::start([]);
    let mut cases = Vec::new();
    for workload in workloads() {
        if options.engine != Some(EngineKind::Native) {
            let engine = wasm()?;
            cases.push(measure(options, "wasm", &workload, engine, &wasm_modules()));
        }
        if options.engine != Some(EngineKind::Wasm) {
            let classes = [
                Barrier::native(),
                Counter::native(),
                Queue::native(),
                Register::native(),
                trivial::native(),
            ];
            let modules = classes.map(|class| (class.name, native_module(&class)));
            let engine = NativeEngine::new(classes);
            cases.push(measure(options, "native", &workload, engine, &modules));
        }
    }
    Ok(Report { rounds: options.rounds, cases, load: load.stop() })
}

fn wasm_modules() -> Vec<(&'static str, Vec<u8>)> {
    let class = |name| gesmas_classes::find(name).expect("it is a standard class");
    let standard =
        ["Barrier", "Counter", "Queue", "Register"].map(|name| (name, class(name).module.to_vec()));
    standard.into_iter().chain([(trivial::CLASS, trivial::module())]).collect()
}

fn wasm() -> Result<WasmEngine, KernelBenchError> {
    let mut engine = WasmEngine::new(gesmas_coroutine::Settings::default())?;
    for (name, module) in wasm_modules() {
        let compiled = engine.compiler().compile(&module);
        let compiled = compiled.map_err(|error| KernelBenchError::Compile(name, error))?;
        engine.install(gesmas_machine::CodeHash::of(&module), compiled);
    }
    Ok(engine)
}

fn workloads() -> Vec<Workload> {
    let net = Net::default();
    let counter = CounterStub::new(&net, "bench");
    let queue = QueueStub::new(&net, "bench");
    let increment = net.catch(counter.increment());
    let create = net.catch(queue.create(1_000));
    let produce = net.catch(queue.produce(vec![7; ITEM_BYTES].into()));
    let consume = net.catch(queue.consume());
    let register = RegisterStub::new(&net, "bench");
    let set = |name, bytes: usize| Workload {
        name,
        prepare: vec![],
        calls: vec![net.catch(register.set("key".into(), vec![7; bytes].into()))],
        batch: 64,
        acknowledged: 2,
        live_activations: 100,
    };
    let count = |batch| Workload {
        name: if batch == 1 { "increment, 1 in a batch" } else { "increment" },
        prepare: vec![],
        calls: vec![increment.clone()],
        batch,
        acknowledged: 2,
        live_activations: 100,
    };
    let pair = |name, first: &RequestBody, second: &RequestBody, live_activations| Workload {
        name,
        prepare: vec![create.clone()],
        calls: vec![first.clone(), second.clone()],
        batch: 64,
        acknowledged: 2,
        live_activations,
    };
    let nothing = Workload {
        name: "nothing",
        prepare: vec![],
        calls: vec![trivial::call()],
        batch: 64,
        acknowledged: 2,
        live_activations: 100,
    };
    let barrier = BarrierStub::new(&net, "bench");
    let pass = |name, parties: u32| Workload {
        name,
        prepare: vec![net.catch(barrier.create(parties))],
        calls: vec![net.catch(barrier.wait())],
        batch: parties as usize,
        acknowledged: u64::from(parties),
        live_activations: 1_000,
    };
    vec![
        nothing,
        count(64),
        count(1),
        set("set, 16 bytes", 16),
        set("set, 1 KiB", 1 << 10),
        pair("produce, then consume", &produce, &consume, 100),
        pair("consume blocks, produce resumes it", &consume, &produce, 100),
        pair("the same, parked and replayed", &consume, &produce, 0),
        pass("barrier of 10", 10),
        pass("barrier of 200", 200),
    ]
}

fn measure<E: Engine>(
    options: &Options,
    engine: &'static str,
    workload: &Workload,
    body_engine: E,
    modules: &[(&str, Vec<u8>)],
) -> Case {
    let mut lab = Lab::new(body_engine, modules, workload.live_activations);
    lab.acknowledge(workload.acknowledged);
    lab.prepare(&workload.prepare);
    let entries = options.calls.div_ceil(workload.batch);
    let mut series = |timed: bool| -> Vec<Round> {
        lab.time_the_engine(timed);
        let allocations = options.allocations.unwrap_or(|| 0);
        let mut round = || lab.round(&workload.calls, workload.batch, entries, allocations);
        round();
        (0..options.rounds).map(|_| round()).collect()
    };
    let (plain, timed) = (series(false), series(true));
    lab.check();
    let each = |round: &Round, seconds: std::time::Duration| {
        seconds.as_secs_f64() * 1e6 / round.calls as f64
    };
    let spread = |rounds: &[Round], part: &dyn Fn(&Round) -> std::time::Duration| {
        Spread::of(rounds.iter().map(|round| each(round, part(round))))
    };
    let first = timed[0];
    let engine_time = spread(&timed, &|round| round.engine).median;
    let decoding = spread(&timed, &|round| round.decoding).median;
    let whole = spread(&timed, &|round| round.wall).median;
    let count = |count: u64| count as f64 / first.calls as f64;
    Case {
        engine,
        name: workload.name,
        calls: first.calls,
        wall: spread(&plain, &|round| round.wall),
        processor: spread(&plain, &|round| round.processor),
        parts: Parts {
            decoding,
            engine: engine_time,
            machine: whole - decoding - engine_time,
            starts: count(first.starts),
            answers: count(first.answers),
            rebuilt: count(first.rebuilt),
            log_bytes: count(first.log_bytes),
            allocations: options.allocations.map(|_| count(plain[0].allocations)),
        },
    }
}
