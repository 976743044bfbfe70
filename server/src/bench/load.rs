//! What the machine did while a figure was taken, from `/proc`.
//!
//! Times of processors are counted in ticks of a hundredth of a second, so a figure of a short run
//! is coarse. Invariant: what cannot be read is none, never a guess.
//! Not here: what the time was spent on; `perf` tells.

use std::{fmt, fs, time::Instant};

use serde::Serialize;

/// Load of the machine during a measurement. Processor time is in processors: 2 is two of them busy
/// all the time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    /// Processors of the machine.
    pub processors: f64,
    /// Load average over one minute, when the measurement ended.
    pub average: Option<f64>,
    /// Used by this program and its replicas.
    pub own: Option<f64>,
    /// Used by everything else.
    pub others: Option<f64>,
    /// Taken away by the host of a virtual machine.
    pub stolen: Option<f64>,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part =
            |value: Option<f64>| value.map_or_else(|| "?".into(), |value| format!("{value:.2}"));
        write!(
            f,
            "load average {}; of {} processors this program used {}, others {}, the host took {}",
            part(self.average),
            self.processors,
            part(self.own),
            part(self.others),
            part(self.stolen),
        )
    }
}

/// The beginning of a measurement.
pub struct LoadMeter {
    begin: Instant,
    processes: Vec<u32>,
    busy: Option<u64>,
    stolen: Option<u64>,
    own: Option<u64>,
}

impl LoadMeter {
    /// Begins; `children` are counted as this program.
    #[must_use]
    pub fn start(children: impl IntoIterator<Item = u32>) -> Self {
        let mut processes = vec![std::process::id()];
        processes.extend(children);
        let (busy, stolen) = machine_ticks();
        let own = processes.iter().map(|process| process_ticks(*process)).sum();
        Self { begin: Instant::now(), processes, busy, stolen, own }
    }

    /// Ends.
    #[must_use]
    pub fn stop(&self) -> Load {
        let seconds = self.begin.elapsed().as_secs_f64();
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let used = |before: Option<u64>, after: Option<u64>| {
            Some(after?.saturating_sub(before?) as f64 / per_second / seconds)
        };
        let (busy, stolen) = machine_ticks();
        let own = self.processes.iter().map(|process| process_ticks(*process)).sum();
        let own = used(self.own, own);
        let busy = used(self.busy, busy);
        Load {
            processors: std::thread::available_parallelism()
                .map_or(1.0, |count| count.get() as f64),
            average: load_average(),
            own,
            others: busy.zip(own).map(|(busy, own)| (busy - own).max(0.0)),
            stolen: used(self.stolen, stolen),
        }
    }
}

/// The one-minute load average.
fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Ticks that all processors have worked, and that the host has taken.
fn machine_ticks() -> (Option<u64>, Option<u64>) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<u64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .map_while(|field| field.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    let [user, nice, system, _, _, irq, softirq, steal, ..] = fields[..] else {
        return (None, None);
    };
    (Some(user + nice + system + irq + softirq), Some(steal))
}

/// Ticks that a process has worked, in user mode and in the system.
pub(super) fn process_ticks(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in brackets, which may hold anything.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Times that the threads of a process have given up the processor, by themselves or not.
pub(super) fn context_switches(process: u32) -> Option<u64> {
    let mut switches = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        // A thread that has ended since it was listed has nothing to add.
        let Ok(text) = fs::read_to_string(thread.ok()?.path().join("status")) else { continue };
        let lines = text.lines().filter(|line| line.contains("ctxt_switches:"));
        let counts = lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        switches += counts.sum::<u64>();
    }
    Some(switches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_in_proc() {
        let meter = LoadMeter::start([]);
        assert!(process_ticks(std::process::id()).is_some());
        assert!(context_switches(std::process::id()).is_some_and(|switches| switches > 0));
        let load = meter.stop();
        assert!(load.average.is_some() && load.own.is_some() && load.others.is_some());
    }
}
