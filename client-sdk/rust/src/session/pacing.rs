//! Pauses before something is tried again: growing, bounded, and never the same twice.
//!
//! Not here: randomness of the system; the seed is an argument, so that tests repeat.

use std::time::Duration;

/// Doublings after which a pause has reached any bound that is in use.
const DOUBLINGS_MAX: u32 = 16;

/// A series of pauses.
#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    first: Duration,
    longest: Duration,
    doublings: u32,
    noise: u64,
}

impl Pacing {
    /// Pauses that start at `first` and double up to `longest`.
    pub(crate) const fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        // The generator below never leaves zero, so zero must not be its seed.
        Self { first, longest, doublings: 0, noise: seed | 1 }
    }

    /// The next pause: between half and the whole of the present length, so that clients which
    /// failed together do not try again together.
    pub(crate) fn pause(&mut self) -> Duration {
        let whole = self.first.saturating_mul(1 << self.doublings).min(self.longest);
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        let share = u32::try_from(self.noise % 1_024).expect("less than 1,024");
        whole / 2 + whole / 2 * share / 1_024
    }

    /// Something went well: the next pause is short again.
    pub(crate) const fn reset(&mut self) {
        self.doublings = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_bound_and_start_over() {
        let bound = Duration::from_millis(500);
        let mut pacing = Pacing::new(Duration::from_millis(5), bound, 42);
        let pauses: Vec<Duration> = (0..20).map(|_| pacing.pause()).collect();
        assert!(pauses[0] <= Duration::from_millis(5));
        assert!(pauses[0] >= Duration::from_micros(2_500));
        assert!(pauses[19] >= bound / 2 && pauses[19] <= bound);
        pacing.reset();
        assert!(pacing.pause() <= Duration::from_millis(5));
    }
}
