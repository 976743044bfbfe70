//! What a call costs, in counts that do not depend on the machine: bodies started, host calls, bytes in
//! the log, allocations. A change that makes calls dearer shows here before any clock shows it.
//!
//! Counts are exact but for a container that grows now and then. Whoever lowers one lowers it here.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use gesmas::bench::kernel::{self, Case, EngineKind, Options};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts what each thread asks for.
struct Counting;

fn count_one() {
    // A thread that ends has nobody left who would ask.
    let _ended = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is handed to the system's allocator as it came.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_one();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a call of a case costs: bodies started, host calls, bytes in the log, allocations.
type Bound = (&'static str, f64, f64, f64, f64);

fn check(engine: EngineKind, bounds: &[Bound]) {
    let allocations: fn() -> u64 = || ALLOCATIONS.with(Cell::get);
    let options =
        Options { rounds: 1, calls: 6_400, engine: Some(engine), allocations: Some(allocations) };
    let report = kernel::run(&options).expect("the host can run it");
    let names: Vec<_> = report.cases.iter().map(|case| case.name).collect();
    let bounded: Vec<_> = bounds.iter().map(|bound| bound.0).collect();
    assert_eq!(names, bounded, "every case has its bound");
    let dearer: Vec<_> = report.cases.iter().zip(bounds).filter_map(found).collect();
    assert!(dearer.is_empty(), "{engine:?}:\n{}", dearer.join("\n"));
}

/// What is not as it should be.
fn found((case, bound): (&Case, &Bound)) -> Option<String> {
    let (_, starts, answers, log_bytes, allocations) = *bound;
    let parts = &case.parts;
    let counted = parts.allocations.expect("they are counted");
    let is_exact = (parts.starts, parts.answers) == (starts, answers)
        && (parts.log_bytes - log_bytes).abs() < 0.5;
    // Containers grow now and then. A bound far above what is needed would notice nothing.
    let is_near = (counted - allocations).abs() < 0.5;
    let Case { name, .. } = case;
    (!is_exact || !is_near).then(|| {
        format!(
            "{name}: {} starts ({starts}), {} host calls ({answers}), {:.1} bytes in the log \
             ({log_bytes}), {counted:.1} allocations ({allocations})",
            parts.starts, parts.answers, parts.log_bytes
        )
    })
}

#[test]
fn a_call_in_webassembly_costs_no_more_than_it_did() {
    check(
        EngineKind::Wasm,
        &[
            ("nothing", 1.0, 0.0, 51.1, 6.0),
            ("increment", 1.0, 2.0, 53.1, 15.0),
            ("increment, 1 in a batch", 1.0, 2.0, 62.0, 16.0),
            ("set, 16 bytes", 1.0, 2.0, 75.1, 20.0),
            ("set, 1 KiB", 1.0, 2.0, 1085.1, 24.0),
            ("produce, then consume", 1.0, 3.0, 59.1, 27.5),
            ("consume blocks, produce resumes it", 1.0, 3.0, 59.1, 29.0),
            ("the same, parked and replayed", 1.5, 3.0, 59.1, 44.5),
            ("barrier of 10", 1.0, 3.9, 48.9, 28.5),
            ("barrier of 200", 1.0, 3.995, 48.0, 30.5),
        ],
    );
}

#[test]
fn a_native_call_costs_no_more_than_it_did() {
    check(
        EngineKind::Native,
        &[
            ("nothing", 1.0, 0.0, 51.1, 2.0),
            ("increment", 1.0, 2.0, 53.1, 8.0),
            ("increment, 1 in a batch", 1.0, 2.0, 62.0, 9.0),
            ("set, 16 bytes", 1.0, 2.0, 75.1, 18.0),
            ("set, 1 KiB", 1.0, 2.0, 1085.1, 20.0),
            ("produce, then consume", 1.0, 3.0, 59.1, 21.5),
            ("consume blocks, produce resumes it", 1.0, 3.0, 59.1, 23.0),
            ("the same, parked and replayed", 1.5, 3.0, 59.1, 25.5),
            ("barrier of 10", 1.0, 3.9, 48.9, 18.7),
            ("barrier of 200", 1.0, 3.995, 48.0, 20.5),
        ],
    );
}
