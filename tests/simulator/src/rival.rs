//! Two classes that want one name: whichever is put first has it for good.

/// The one that most clients know.
pub mod first {
    use gesmas_sdk::prelude::*;

    /// Says that it is the first.
    #[class]
    pub struct Rival {
        asked: Value<u64>,
    }

    #[methods]
    impl Rival {
        /// Which of the two it is.
        pub fn side(&mut self) -> Result<u64> {
            self.asked.set(self.asked.get() + 1);
            Ok(0)
        }
    }
}

/// The other one.
pub mod second {
    use gesmas_sdk::prelude::*;

    /// Says that it is the second.
    #[class]
    pub struct Rival {
        answered: Value<u64>,
    }

    #[methods]
    impl Rival {
        /// Which of the two it is.
        pub fn side(&mut self) -> Result<u64> {
            self.answered.set(self.answered.get() + 1);
            Ok(1)
        }
    }
}
