//! What a run is of: a seed, and perhaps a planted fault.

/// A fault that is planted in the simulated surroundings, to prove that a checker notices it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// `sync` does nothing, and power cuts lose all that was not synced.
    LyingSync,
    /// Power cuts lose the last records although they were synced.
    ForgetfulDisk,
    /// The network loses frames of a connection that goes on.
    SilentLoss,
    /// The network lets frames of a connection overtake.
    Overtaking,
    /// The workaround is off by which a replica returns that has promised a higher ballot than its
    /// peers' leader has.
    NoReturn,
    /// Linearizable reads are served as stale ones.
    StaleReads,
    /// Keep-alives of clients are not passed on.
    SwallowedKeepAlives,
    /// One replica gets an entry that is in no log.
    ExtraEntry,
    /// Clients acknowledge replies that they do not have.
    EarlyAcknowledgement,
    /// Clients send requests that have not been answered under new numbers.
    Renumbering,
}

impl Plant {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::LyingSync,
        Self::ForgetfulDisk,
        Self::SilentLoss,
        Self::Overtaking,
        Self::NoReturn,
        Self::StaleReads,
        Self::SwallowedKeepAlives,
        Self::ExtraEntry,
        Self::EarlyAcknowledgement,
        Self::Renumbering,
    ];

    /// The plant of this name, as `{:?}` prints it.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plant| format!("{plant:?}") == name)
    }
}

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Everything is drawn from it.
    pub seed: u64,
    /// A planted fault.
    pub plant: Option<Plant>,
    /// Whether to keep the last events in words.
    pub in_words: bool,
}

impl Options {
    /// A plain run of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, plant: None, in_words: false }
    }
}
