//! Runs seeds, each in a thread of its own.
//!
//! A panic is a violation like any other: an invariant of the product's own is broken. Its message
//! is kept and printed with the seed, not among other output.

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::{
        Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    cluster::Cluster,
    options::Options,
    verdict::{Verdict, Violation},
};

thread_local! {
    /// Whether this thread runs a seed: only then is a panic one of the product's.
    static RUNS: Cell<bool> = const { Cell::new(false) };
    /// The last panic of this thread.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs one seed in this thread.
#[must_use]
pub fn run_seed(options: Options) -> Verdict {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if RUNS.get() {
                PANIC.with(|last| *last.borrow_mut() = Some(panic.to_string()));
            } else {
                before(panic);
            }
        }));
    });
    let mut cluster = Cluster::new(options);
    RUNS.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| cluster.run()));
    RUNS.set(false);
    let violation = match outcome {
        Ok(outcome) => outcome.err(),
        Err(_) => {
            let message = PANIC.with(|last| last.borrow_mut().take());
            Some(Violation::new("panic", message.unwrap_or_default()))
        }
    };
    let (digest, counts, words) = cluster.result();
    Verdict { seed: options.seed, violation, digest, counts, words }
}

/// Runs like `common` `number` seeds from `first` on in as many threads as there are processors; `each` hears of
/// every one, in any order, and stops the run by returning false.
pub fn run_seeds(
    first: u64,
    number: u64,
    common: Options,
    each: &(dyn Fn(&Verdict) -> bool + Sync),
) {
    let next = AtomicU64::new(0);
    let reports = Mutex::new(());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= number {
                        return;
                    }
                    let options = Options { seed: first + at, ..common };
                    let verdict = run_seed(options);
                    let _one_at_a_time = reports.lock().expect("no report panics");
                    if !each(&verdict) {
                        next.store(number, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}
