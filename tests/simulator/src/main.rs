//! `gesmas-simulator`: runs seeds and prints what broke.
//!
//! A seed that fails is run again for its last events. The exit code is 1 when one failed.

use std::{process::ExitCode, sync::Mutex, time::Instant};

use clap::Parser;
use gesmas_simulator::{Counts, Options, Plant, Verdict, run_seed, run_seeds};

/// Runs seeds of the simulator.
#[derive(Parser)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plants a fault, to see it found.
    #[arg(long)]
    plant: Option<String>,
    /// Stops at the first seed that fails.
    #[arg(long)]
    first: bool,
    /// How many of the last events to print of a seed that fails.
    #[arg(long, default_value_t = 60)]
    events: usize,
    /// Prints one line of JSON in the end.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plant = match arguments.plant.as_deref().map(|name| (name, Plant::find(name))) {
        None => None,
        Some((_, Some(plant))) => Some(plant),
        Some((name, None)) => {
            eprintln!("there is no plant {name}; there are {:?}", Plant::ALL);
            return ExitCode::from(2);
        }
    };
    let (first, number) = (arguments.seed, arguments.seeds);
    eprintln!("seeds {first} to {}, plant {plant:?}", first + number.max(1) - 1);
    let began = Instant::now();
    let results = Mutex::new((Counts::default(), Vec::new(), 0));
    run_seeds(first, number, plant, &|verdict: &Verdict| {
        let mut results = results.lock().expect("no report panics");
        results.0.add(&verdict.counts);
        results.2 += 1;
        if let Some(violation) = &verdict.violation {
            eprintln!("seed {} FAILED: {violation}", verdict.seed);
            results.1.push(verdict.seed);
        }
        !(arguments.first && verdict.violation.is_some())
    });
    let (counts, failed, run) = results.into_inner().expect("no report panics");
    if let Some(&seed) = failed.iter().min().filter(|_| arguments.events > 0) {
        tell(Options { seed, plant, in_words: true }, arguments.events);
    }
    report(&arguments, run, &failed, &counts, began.elapsed().as_millis());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a seed again for its last events.
fn tell(options: Options, events: usize) {
    let verdict = run_seed(options);
    eprintln!("the last events of seed {}:", options.seed);
    for line in verdict.words.iter().skip(verdict.words.len().saturating_sub(events)) {
        eprintln!("{line}");
    }
    if let Some(violation) = verdict.violation {
        eprintln!("seed {}: {violation}", options.seed);
    }
}

fn report(arguments: &Arguments, run: u64, failed: &[u64], counts: &Counts, milliseconds: u128) {
    if arguments.json {
        let counts: serde_json::Map<_, _> =
            counts.named().into_iter().map(|(name, count)| (name.into(), count.into())).collect();
        let report = serde_json::json!({
            "first_seed": arguments.seed,
            "seeds": run,
            "failed": failed,
            "milliseconds": u64::try_from(milliseconds).unwrap_or(u64::MAX),
            "counts": counts,
        });
        println!("{report}");
        return;
    }
    for (name, count) in counts.named() {
        println!("{name:>18} {count}");
    }
    println!("{run} seeds in {milliseconds} ms, {} failed: {failed:?}", failed.len());
}
