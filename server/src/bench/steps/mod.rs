//! How long the longest step of each method of every standard class takes, at the class's limits.
//!
//! Calls of all objects wait while a step runs, so that one step which does much for one caller stops all
//! others. Each scene brings an object of a class to its limits, does what costs most there, lets pass what
//! timers do afterwards, and notes how long each step of it takes, in processor time; reads count as steps.
//! Each scene runs several times. All runs do the same step by step, so the shortest time of a step is the
//! nearest to what its work costs; what the host does beside it only makes steps longer.
//! Modules run on WebAssembly, one machine on one thread, as many bodies live as in a replica.
//! Invariant: a scene whose calls do not end as it says is a fault of this program, not a figure.
//! Not here: the way of a call to the machine (`cluster/`), and figures of methods that are called again and
//! again (`kernel/`). Nothing passes or fails by a figure: 50 ms are what we aim at.

mod holding;
mod passing;
mod report;
mod sessions;
mod stage;

pub use self::report::{Measure, Report};
use self::stage::{Stage, Theatre};
use super::load::LoadMeter;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum StepsBenchError {
    /// There is no engine on this host.
    #[error(transparent)]
    Engine(#[from] gesmas_coroutine::EngineUnavailable),
    /// A standard class does not compile.
    #[error("class {0}: {1}")]
    Compile(&'static str, gesmas_coroutine::CompileError),
    /// There is no such class.
    #[error("no scene is of class {0}")]
    NoSuchClass(String),
}

/// What is done with one object, and the class that it is of.
type Scene = (&'static str, fn(&mut Stage));

/// Measures all classes, or one; each scene so many times.
///
/// # Errors
/// When there is no engine, or no such class.
pub fn run(class: Option<&str>, runs: u32) -> Result<Report, StepsBenchError> {
    let load = LoadMeter::start([]);
    let scenes = holding::SCENES.iter().chain(passing::SCENES).chain(sessions::SCENES);
    let scenes = scenes.filter(|(of, _)| class.is_none_or(|class| class == *of));
    let scenes: Vec<_> = scenes.collect();
    if let (Some(class), true) = (class, scenes.is_empty()) {
        return Err(StepsBenchError::NoSuchClass(class.into()));
    }
    let theatre = Theatre::open(scenes.iter().map(|(class, _)| *class))?;
    let mut measures = Vec::new();
    for (class, scene) in scenes {
        let runs = (0..runs).map(|_| {
            let mut stage = theatre.stage(class)?;
            scene(&mut stage);
            Ok(stage.close())
        });
        let runs: Result<Vec<_>, StepsBenchError> = runs.collect();
        measures.extend(report::shortest(class, runs?));
    }
    Ok(Report { measures, load: load.stop() })
}
