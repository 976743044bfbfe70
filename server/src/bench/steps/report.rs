//! The longest steps, as data and as a table.

use std::fmt;

use serde::Serialize;

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
