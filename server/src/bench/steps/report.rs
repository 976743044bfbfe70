//! The longest steps, as data and as a table.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::stage::Part;
use crate::bench::load::Load;

/// What a step should not exceed, milliseconds.
const AIM: f64 = 50.0;

/// All scenes and what the machine did meanwhile.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenes.
    pub measures: Vec<Measure>,
    /// Load of the machine.
    pub load: Load,
}

/// One scene.
#[derive(Clone, Debug, Serialize)]
pub struct Measure {
    /// The class.
    pub class: &'static str,
    /// What was done.
    pub what: String,
    /// The longest step of it, milliseconds of a processor.
    pub longest: f64,
    /// All steps of it together, milliseconds.
    pub together: f64,
    /// How many there were.
    pub steps: u64,
}

/// What several runs of one scene say: each step takes the shortest time of all runs.
pub(super) fn shortest(class: &'static str, runs: Vec<Vec<Part>>) -> Vec<Measure> {
    let together = runs.into_iter().reduce(|mut shortest, run| {
        assert_eq!(shortest.len(), run.len(), "all runs have the same parts");
        for (shortest, part) in shortest.iter_mut().zip(run) {
            assert_eq!(shortest.steps.len(), part.steps.len(), "all runs have the same steps");
            let steps = shortest.steps.iter_mut().zip(part.steps);
            steps.for_each(|(shortest, step)| *shortest = step.min(*shortest));
        }
        shortest
    });
    let parts = together.unwrap_or_default().into_iter();
    parts.map(|Part { what, steps }| Measure::new(class, what, &steps)).collect()
}

impl Measure {
    fn new(class: &'static str, what: String, steps: &[Duration]) -> Self {
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1e3;
        Self {
            class,
            what,
            longest: milliseconds(steps.iter().copied().max().unwrap_or_default()),
            together: milliseconds(steps.iter().sum()),
            steps: steps.iter().filter(|step| !step.is_zero()).count() as u64,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Milliseconds of a processor, of the longest step at the limits of each class.\n"
        )?;
        let heads = ("class", "what is done", "longest", "together", "steps");
        writeln!(
            f,
            "{:<14} {:<72} {:>9} {:>10} {:>7}",
            heads.0, heads.1, heads.2, heads.3, heads.4
        )?;
        for Measure { class, what, longest, together, steps } in &self.measures {
            let mark = if *longest > AIM { " !" } else { "" };
            writeln!(f, "{class:<14} {what:<72} {longest:>9.2} {together:>10.2} {steps:>7}{mark}")?;
        }
        let over = self.measures.iter().filter(|measure| measure.longest > AIM).count();
        writeln!(f, "\n{over} of {} are over {AIM} ms.", self.measures.len())?;
        write!(f, "\n{}", self.load)
    }
}
