//! Which calls get a span: a part of them, drawn anew for each.
//!
//! Not here: what a caller over HTTP has decided already; its `traceparent` says whether its
//! request has a span.

use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator};

/// Falls on its right side for a part of all throws. It is no secret and need not be a good one: one
/// multiplication and some shifts, since it is thrown for every call.
#[derive(Clone, Debug)]
pub(crate) struct Coin {
    state: u64,
    /// A throw below it counts; none when every throw does.
    below: Option<u64>,
}

impl Coin {
    /// A coin for a part between 0 and 1.
    pub(super) fn new(part: f64) -> Self {
        let seed = RandomIdGenerator::default().new_span_id().to_bytes();
        // A float that is too large for an integer becomes the greatest one.
        let below = (part < 1.0).then_some((part * 2.0_f64.powi(64)) as u64);
        Self { state: u64::from_le_bytes(seed), below }
    }

    /// Throws it.
    pub(crate) const fn toss(&mut self) -> bool {
        let Some(below) = self.below else { return true };
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31) < below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_throws_counts() {
        let count = |part| {
            let mut coin = Coin::new(part);
            (0..100_000).filter(|_| coin.toss()).count()
        };
        assert_eq!((count(0.0), count(1.0)), (0, 100_000));
        // Ten standard deviations are 300 and 950: no seed of this life falls outside.
        assert!((700..1_300).contains(&count(0.01)), "{}", count(0.01));
        assert!((49_000..51_000).contains(&count(0.5)), "{}", count(0.5));
    }
}
