//! Draws from a seed.

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The draws of a seed.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// When there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % bound
    }

    /// A place in a list of that length.
    ///
    /// # Panics
    /// When it is empty.
    pub fn place(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// One of these.
    ///
    /// # Panics
    /// When there is none.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.place(items.len())]
    }
}
