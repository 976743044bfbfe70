//! What happens in a round, drawn from a seed.
//!
//! Invariants: a seed and a number of replicas give the same rounds for ever; the kills of a round
//! are never more than are left.
//! Not here: doing it (`nemesis.rs`).

use std::time::Duration;

use crate::{prng::Prng, splits::Split};

/// Who is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Victims {
    /// These.
    These(Vec<usize>),
    /// Whoever leads at the time.
    Leader,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// SIGKILL to all victims at once; each is started again after a while of its own.
    Kill {
        /// Who.
        victims: Victims,
        /// How long each stays down.
        down: Vec<Duration>,
        /// The first of them is killed again so long after its start.
        again: Option<Duration>,
    },
    /// SIGSTOP, and SIGCONT after a while.
    Stop {
        /// Who.
        victims: Victims,
        /// How long.
        pause: Duration,
    },
    /// The first stands still while the second is killed and started again; then it goes on.
    StopAndKill {
        /// Who.
        pair: [usize; 2],
        /// From the stop to the kill, from there to the start, from there to SIGCONT.
        waits: [Duration; 3],
    },
    /// The network is split.
    Split {
        /// How.
        split: Split,
        /// The order of the replicas; the leader is moved to the front.
        order: Vec<usize>,
        /// How long it stays split after calls have gone on.
        stays: Duration,
    },
}

/// One round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// What happens.
    pub(crate) deed: Deed,
    /// Whether calls must go on before the next round begins. Otherwise it begins at once.
    pub(crate) settle: bool,
}

/// The source of rounds.
#[derive(Debug)]
pub(crate) struct Schedule {
    prng: Prng,
    replicas: usize,
    /// How many splits there were; none without splits.
    splits: Option<usize>,
}

impl Schedule {
    /// The rounds of a seed.
    pub(crate) fn new(seed: u64, replicas: usize, splits: bool) -> Self {
        Self { prng: Prng::new(seed, 1), replicas, splits: splits.then_some(0) }
    }

    /// The next round, with so many kills left, of which there must be one.
    pub(crate) fn next(&mut self, kills_left: u64) -> Round {
        assert!(kills_left > 0, "a round has something to do");
        if let Some(count) = self.splits
            && self.prng.percent(35)
        {
            self.splits = Some(count + 1);
            return Round { deed: self.split(count), settle: true };
        }
        let deed = match self.prng.below(100) {
            0..38 => self.kill_some(1, kills_left),
            38..55 => self.kill(Victims::Leader, 1),
            55..67 => self.kill_some(2, kills_left),
            67..76 => self.kill_some(self.replicas, kills_left),
            76..82 => self.stop_and_kill(),
            82..92 => self.stop(1),
            92..97 => self.stop(2),
            _ => self.stop(self.replicas),
        };
        Round { deed, settle: self.prng.percent(80) }
    }

    fn kill_some(&mut self, count: usize, kills_left: u64) -> Deed {
        let count = count.min(usize::try_from(kills_left).unwrap_or(count));
        let victims = self.prng.choose(count, self.replicas);
        self.kill(Victims::These(victims), count)
    }

    fn kill(&mut self, victims: Victims, count: usize) -> Deed {
        // Half of the replicas come back at once, as a supervisor would have it.
        let down = (0..count).map(|_| {
            let longest = if self.prng.percent(50) { 20 } else { 700 };
            self.prng.milliseconds(0, longest)
        });
        let down = down.collect();
        let again = self.prng.percent(15).then(|| self.prng.milliseconds(0, 400));
        Deed::Kill { victims, down, again }
    }

    fn stop(&mut self, count: usize) -> Deed {
        let leader = count == 1 && self.prng.percent(40);
        let these = self.prng.choose(count, self.replicas);
        let victims = if leader { Victims::Leader } else { Victims::These(these) };
        Deed::Stop { victims, pause: self.prng.milliseconds(50, 3_000) }
    }

    fn stop_and_kill(&mut self) -> Deed {
        let pair = self.prng.choose(2, self.replicas);
        let pair = [pair[0], pair[1]];
        let waits = [(0, 300), (0, 300), (0, 800)];
        Deed::StopAndKill { pair, waits: waits.map(|(from, to)| self.prng.milliseconds(from, to)) }
    }

    /// Each kind comes in its turn.
    fn split(&mut self, count: usize) -> Deed {
        let split = Split::ALL[count % Split::ALL.len()];
        let order = self.prng.choose(self.replicas, self.replicas);
        Deed::Split { split, order, stays: self.prng.milliseconds(0, 1_500) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(seed: u64, splits: bool) -> Vec<Round> {
        let mut schedule = Schedule::new(seed, 3, splits);
        (0..200).map(|_| schedule.next(1_000)).collect()
    }

    #[test]
    fn a_seed_gives_the_same_rounds() {
        assert_eq!(rounds(3, true), rounds(3, true));
        assert_ne!(rounds(3, true), rounds(4, true));
    }

    #[test]
    fn everything_comes_up() {
        let rounds = rounds(1, true);
        let some = |look: &dyn Fn(&Deed) -> bool| rounds.iter().any(|round| look(&round.deed));
        for count in 1..=3 {
            assert!(some(&|deed| matches!(deed, Deed::Kill { down, .. } if down.len() == count)));
        }
        assert!(some(&|deed| matches!(deed, Deed::Stop { victims: Victims::Leader, .. })));
        assert!(some(&|deed| matches!(deed, Deed::StopAndKill { .. })));
        for kind in Split::ALL {
            assert!(some(&|deed| matches!(deed, Deed::Split { split, .. } if *split == kind)));
        }
    }

    #[test]
    fn no_more_is_killed_than_is_left() {
        let mut schedule = Schedule::new(1, 3, false);
        for _ in 0..200 {
            if let Deed::Kill { down, .. } = schedule.next(1).deed {
                assert_eq!(down.len(), 1);
            }
        }
    }
}
