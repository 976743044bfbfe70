//! `gesmas-simulator`: runs seeds and prints what broke.
//!
//! A seed that fails is run again for its last events. The exit code is 1 when one failed. With
//! `--planted` it proves the checkers instead, and fails when something planted goes unnoticed or an
//! alarm is raised where nothing is planted.

use std::{path::PathBuf, process::ExitCode, sync::Mutex, time::Instant};

use clap::Parser;
use gesmas_simulator::{
    FAULTS, IN_TURN, MARKS, Notice, Options, Plant, Progress, Verdict, notice, run_seed, run_seeds,
};
use serde_json::{Value, json};

/// Runs seeds of the simulator.
#[derive(Parser)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plants a fault or a bug, to see it found.
    #[arg(long, value_parser = plant)]
    plant: Option<Plant>,
    /// Uses this one of the classes that take turns, whatever is drawn.
    #[arg(long, value_name = "CLASS", value_parser = class)]
    class: Option<&'static str>,
    /// Lets only those checkers judge that see what clients see.
    #[arg(long)]
    outside: bool,
    /// Proves that a plant is noticed, or `all`: by all checkers, and by those that see what clients
    /// see.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plant", "outside", "class", "seeds", "seed"])]
    planted: Option<String>,
    /// Within so many seeds.
    #[arg(long, default_value_t = 500, requires = "planted")]
    within: u64,
    /// Stops at the first seed that fails.
    #[arg(long)]
    first: bool,
    /// Keeps in a file how far the run is, and goes on from there if the file exists.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plant", "planted"])]
    resume: Option<PathBuf>,
    /// Fails when one of the rare events that are counted never happened.
    #[arg(long)]
    marks: bool,
    /// How many of the last events to print of a seed that fails.
    #[arg(long, default_value_t = 60)]
    events: usize,
    /// Prints one line of JSON in the end.
    #[arg(long)]
    json: bool,
}

fn plant(name: &str) -> Result<Plant, String> {
    let names = || Plant::all().into_iter().map(Plant::name).collect::<Vec<_>>().join(" ");
    Plant::find(name).ok_or_else(|| format!("there is no plant {name}; there are {}", names()))
}

fn class(name: &str) -> Result<&'static str, String> {
    let found = IN_TURN.into_iter().find(|class| *class == name);
    found.ok_or_else(|| format!("{name} does not take turns; these do: {}", IN_TURN.join(" ")))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.planted.as_deref() {
        None => run(&arguments),
        Some("all") => prove(&Plant::all(), &arguments),
        Some(name) => match plant(name) {
            Ok(plant) => prove(&[plant], &arguments),
            Err(message) => {
                eprintln!("{message}");
                ExitCode::from(2)
            }
        },
    }
}

/// Seeds after which the progress is told and kept.
const CHUNK: u64 = 500;

fn run(arguments: &Arguments) -> ExitCode {
    let (first, end) = (arguments.seed, arguments.seed + arguments.seeds.max(1));
    let Arguments { plant, outside, class, .. } = *arguments;
    let common = Options { plant, outside, class, ..Options::new(first) };
    eprintln!("seeds {first} to {}, {common:?}", end - 1);
    let began = match &arguments.resume {
        None => Ok(Progress::new(first)),
        Some(file) => Progress::read(file, first),
    };
    let mut progress = match began {
        Ok(progress) => progress,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    while progress.next < end && (progress.failed.is_empty() || !arguments.first) {
        run_chunk(&mut progress, end, common, arguments.first);
        if let Some(file) = &arguments.resume {
            eprintln!("{} seeds run, failed: {:?}", progress.next - first, progress.failed);
            if let Err(error) = progress.write(file) {
                eprintln!("{}: {error}", file.display());
                return ExitCode::from(2);
            }
        }
    }
    if let Some(&seed) = progress.failed.iter().min().filter(|_| arguments.events > 0) {
        tell(Options { seed, in_words: true, ..common }, arguments.events);
    }
    let missing: Vec<_> =
        progress.counts.of(&MARKS).into_iter().filter(|(_, count)| *count == 0).collect();
    report(arguments, &progress);
    if arguments.marks && !missing.is_empty() {
        eprintln!("these never happened: {missing:?}");
        return ExitCode::FAILURE;
    }
    if progress.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_chunk(progress: &mut Progress, end: u64, common: Options, only_first: bool) {
    let began = Instant::now();
    let (from, number) = (progress.next, CHUNK.min(end - progress.next));
    let results = Mutex::new(&mut *progress);
    run_seeds(from, number, common, &|verdict: &Verdict| {
        let mut results = results.lock().expect("no report panics");
        results.counts.add(&verdict.counts);
        if let Some(violation) = &verdict.violation {
            eprintln!("seed {} FAILED: {violation}", verdict.seed);
            results.failed.push(verdict.seed);
        }
        !(only_first && verdict.violation.is_some())
    });
    progress.next += number;
    progress.milliseconds += u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
}

/// Proves that plants are noticed, and that without them nothing is.
fn prove(plants: &[Plant], arguments: &Arguments) -> ExitCode {
    let began = Instant::now();
    let mut lines = Vec::new();
    let (mut caught, mut caught_outside, mut most) = (0, 0, 1);
    for &plant in plants {
        let found = notice(Some(plant), false, arguments.within);
        let seen = plant.clients_see().then(|| notice(Some(plant), true, arguments.within));
        let outside = seen.flatten();
        caught += usize::from(found.is_some());
        caught_outside += usize::from(outside.is_some());
        most = [&found, &outside]
            .into_iter()
            .flatten()
            .map(|notice| notice.seeds)
            .fold(most, u64::max);
        if !arguments.json {
            println!("{:>24}  {:<28}  {}", plant.name(), words(&found), words(&outside));
        }
        lines.push(json!({
            "name": plant.name(),
            "caught": found.is_some(),
            "by": details(&found),
            "outside": details(&outside),
        }));
    }
    let alarms = [false, true].map(|outside| notice(None, outside, most));
    let alarms: Vec<_> = alarms.iter().flatten().collect();
    alarms.iter().for_each(|alarm| {
        eprintln!("nothing is planted, but seed {}: {}", alarm.seeds, alarm.violation)
    });
    let (planted, milliseconds) = (plants.len(), began.elapsed().as_millis());
    if arguments.json {
        println!(
            "{}",
            json!({
                "planted": planted,
                "caught": caught,
                "caught_outside": caught_outside,
                "within": arguments.within,
                "seeds_without": most,
                "alarms_without": alarms.len(),
                "milliseconds": u64::try_from(milliseconds).unwrap_or(u64::MAX),
                "plants": lines,
            })
        );
    } else {
        println!(
            "{planted} planted, {caught} caught, {caught_outside} by what clients see; without them \
             {} alarms in {most} seeds; {milliseconds} ms",
            alarms.len()
        );
    }
    if caught == planted && alarms.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn words(notice: &Option<Notice>) -> String {
    notice.as_ref().map_or_else(
        || "-".into(),
        |notice| format!("{} ({})", notice.violation.checker, notice.seeds),
    )
}

fn details(notice: &Option<Notice>) -> Value {
    notice.as_ref().map_or(Value::Null, |notice| {
        json!({
            "checker": notice.violation.checker,
            "seeds": notice.seeds,
            "message": notice.violation.message,
        })
    })
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

fn report(arguments: &Arguments, progress: &Progress) {
    let Progress { first, next, failed, milliseconds, counts } = progress;
    let run = next - first;
    if arguments.json {
        let object = |counts: Vec<(&str, u64)>| -> serde_json::Map<_, _> {
            counts.into_iter().map(|(name, count)| (name.into(), count.into())).collect()
        };
        let report = json!({
            "first_seed": first,
            "seeds": run,
            "failures": failed.len(),
            "failed": failed,
            "milliseconds": milliseconds,
            "commands": counts.commands,
            "blocked": counts.blocked,
            "virtual_seconds": counts.virtual_ms / 1_000,
            "faults": object(counts.of(&FAULTS)),
            "marks": object(counts.of(&MARKS)),
            "counts": object(counts.named()),
        });
        println!("{report}");
        return;
    }
    for (name, count) in counts.named() {
        println!("{name:>25} {count}");
    }
    println!("{run} seeds in {milliseconds} ms, {} failed: {failed:?}", failed.len());
}
