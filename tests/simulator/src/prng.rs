//! A small pseudo-random generator (xoshiro256**), so that a seed means the same for ever.
//!
//! Invariant: equal seeds and equal calls give equal numbers on every machine and in every release.
//! Not here: secrets. Nothing in a simulation is one.

/// The generator.
#[derive(Clone, Debug)]
pub(crate) struct Prng([u64; 4]);

/// One step of splitmix64, which also spreads a seed over the state.
pub(crate) fn mix(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Prng {
    /// A generator of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = [0; 4];
        let mut value = seed;
        for word in &mut state {
            value = mix(value);
            *word = value;
        }
        Self(state)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        let result = self.0[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = self.0[1] << 17;
        self.0[2] ^= self.0[0];
        self.0[3] ^= self.0[1];
        self.0[1] ^= self.0[2];
        self.0[0] ^= self.0[3];
        self.0[2] ^= shifted;
        self.0[3] = self.0[3].rotate_left(45);
        result
    }

    /// A number below `end`, which must not be 0. The bias of the remainder is of no account here.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number from `from` up to and including `to`.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// An index below `end`.
    pub(crate) fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("it is below a usize")
    }

    /// True in so many of a thousand cases.
    pub(crate) fn permille(&mut self, chance: u64) -> bool {
        self.below(1_000) < chance
    }
}
