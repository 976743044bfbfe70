//! What a run is of: a seed, perhaps something that is planted, and who judges.

use gesmas_machine::PlantedBug;

use crate::twins::Twin;

/// What is planted to prove that a checker notices it: a fault of the simulated surroundings, or a
/// bug of the product.
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
    /// A bug of the product.
    Bug(PlantedBug),
    /// A bug of a standard class.
    Twin(Twin),
}

impl Plant {
    /// The faults of the surroundings.
    pub const FAULTS: [Self; 10] = [
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

    /// All plants.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let bugs = PlantedBug::ALL.iter().map(|bug| Self::Bug(*bug));
        let twins = Twin::ALL.iter().map(|twin| Self::Twin(*twin));
        Self::FAULTS.into_iter().chain(bugs).chain(twins).collect()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Bug(bug) => format!("{bug:?}"),
            Self::Twin(twin) => format!("{twin:?}"),
            fault => format!("{fault:?}"),
        }
    }

    /// The plant of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|plant| plant.name() == name)
    }

    /// Whether answers give it away in time. A replica that goes on with a state that may be wrong, and
    /// one that would rebuild a body otherwise than it ran, do not show it to clients unless much else
    /// goes wrong too.
    #[must_use]
    pub fn clients_see(self) -> bool {
        let hidden = [PlantedBug::DivergenceIgnored, PlantedBug::JournalSkipsCall];
        !self.bug().is_some_and(|bug| hidden.contains(&bug))
    }

    /// The bug of the product, if it is one.
    #[must_use]
    pub fn bug(self) -> Option<PlantedBug> {
        match self {
            Self::Bug(bug) => Some(bug),
            _ => None,
        }
    }

    /// The wrong twin of a class, if it is one.
    #[must_use]
    pub fn twin(self) -> Option<Twin> {
        match self {
            Self::Twin(twin) => Some(twin),
            _ => None,
        }
    }
}

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Everything is drawn from it.
    pub seed: u64,
    /// What is planted.
    pub plant: Option<Plant>,
    /// Only checkers that see what clients see take part: logs and states are not compared, states
    /// not recomputed, and nothing is asked of replicas but answers.
    pub outside: bool,
    /// The class, of those that take turns, that is drawn anyhow; that of a planted twin by default.
    pub class: Option<&'static str>,
    /// Whether to keep the last events in words.
    pub in_words: bool,
}

impl Options {
    /// A plain run of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, plant: None, outside: false, class: None, in_words: false }
    }

    /// The class that is drawn anyhow, if there is one: what is planted in a class must be used.
    pub(crate) fn wanted(&self) -> Option<&'static str> {
        self.class.or_else(|| self.plant.and_then(Plant::twin).map(Twin::class))
    }
}
