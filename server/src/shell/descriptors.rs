//! File descriptors: how many this process may have, and for what.
//!
//! ```text
//! limit = connections of clients + connections over HTTP + reserve (log, snapshots, peers, …)
//! ```
//!
//! A replica that cannot open its next log file stands still, so strangers must not be able to take the
//! last descriptor: what is let in is bounded, and the rest is the replica's own.
//! Invariant: bounds and reserve together never exceed the limit.
//! Not here: the bounding (`crate::door`), and what happens when the system itself has none left.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::config::{Config, ConfigError, setting};
use crate::{door::Door, log, snapshot};

/// What a process has open by itself: the standard streams, signals, the runtimes.
const PROCESS: u64 = 24;
/// A module that is compiled: three pipes to the child, the file of its code, and the next of both.
const COMPILING: u64 = 12;
/// Listeners: of clients, of peers, of HTTP.
const LISTENERS: u64 = 3;
/// The replica's own clients: the gateway and the loader of standard classes, and their next attempts.
const OWN_CLIENTS: u64 = 4;
/// Connections to a collector of traces.
const TRACING: u64 = 4;
/// What nobody has thought of.
const MARGIN: u64 = 16;
/// Connections without which a replica is of no use.
const LEAST: u64 = 32;
/// Where there is no limit, the system has one all the same.
const UNLIMITED: u64 = 1 << 20;

/// The descriptors that a replica may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    limit: u64,
}

/// How many connections are let in at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of clients.
    pub clients: usize,
    /// Over HTTP.
    pub http: usize,
    /// Whether these are fewer than the configuration says, since there are too few descriptors.
    pub lowered: bool,
}

impl Descriptors {
    /// As many as this process may have at most; from now on it may have them.
    #[must_use]
    pub fn raise() -> Self {
        let greatest = Self::greatest();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let new = Rlimit { current: Some(greatest.limit), maximum };
        if let Err(error) = setrlimit(Resource::Nofile, new) {
            let limit = current.unwrap_or(UNLIMITED);
            tracing::warn!(%error, limit, "the limit on open files cannot be raised");
            return Self { limit };
        }
        greatest
    }

    /// As many as this process could have.
    #[must_use]
    pub fn greatest() -> Self {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        Self { limit: maximum.unwrap_or(UNLIMITED) }
    }

    /// The share of each of so many replicas in one process.
    #[must_use]
    pub const fn shared_by(self, replicas: u64) -> Self {
        Self { limit: self.limit / replicas }
    }

    /// How many there are.
    #[must_use]
    pub const fn limit(self) -> u64 {
        self.limit
    }

    /// How many connections are let in: as many as the configuration says if there are descriptors for
    /// them, or each kind its share.
    ///
    /// # Errors
    /// When there are so few that a replica would be of no use.
    pub fn bounds(self, config: &Config) -> Result<Bounds, ConfigError> {
        let reserve = reserve(config);
        let clients = config.queues.connections as u128;
        let http = config.http.as_ref().map_or(0, |http| http.connections as u128);
        let wanted = clients + http;
        let free = self.limit.saturating_sub(reserve);
        if free < LEAST {
            let problem = format!(
                "this process may have {} files open, and a replica needs {}: raise the limit on open \
                 files",
                self.limit,
                reserve + LEAST
            );
            return Err(setting("queues.connections", problem));
        }
        let lowered = wanted > u128::from(free);
        let share = |part: u128| match part {
            0 => 0,
            part if !lowered => part,
            part => (u128::from(free) * part / wanted).max(1),
        };
        let http = share(http);
        // Rounding the other's share up to one may have taken one more than there is.
        let clients = share(clients).min(u128::from(free) - http);
        let sum = http + clients + u128::from(reserve);
        assert!(sum <= u128::from(self.limit), "what is let in leaves the reserve alone");
        let count = |count| usize::try_from(count).expect("no more than were wanted");
        Ok(Bounds { clients: count(clients), http: count(http), lowered })
    }
}

/// Descriptors that a replica needs besides those of the connections that it lets in.
#[must_use]
pub fn reserve(config: &Config) -> u64 {
    let doors = if config.http.is_some() { 2 } else { 1 };
    let tracing = if config.tracing.otlp.is_empty() { 0 } else { TRACING };
    PROCESS
        + log::repo::FsRepo::DESCRIPTORS
        + snapshot::repo::FsRepo::DESCRIPTORS
        + super::peers::descriptors(&config.members)
        + COMPILING
        + LISTENERS
        + OWN_CLIENTS
        + doors * Door::descriptors()
        + tracing
        + MARGIN
}

#[cfg(test)]
mod tests {
    use super::{super::config::tests::good, *};

    fn bounds(limit: u64, clients: usize, http: usize) -> Result<Bounds, ConfigError> {
        let mut config = good();
        config.queues.connections = clients;
        config.http.as_mut().expect("it serves HTTP").connections = http;
        Descriptors { limit }.bounds(&config)
    }

    #[test]
    fn what_is_let_in_fits_beside_the_reserve_whatever_is_configured() {
        let reserve = reserve(&good());
        for limit in [reserve + LEAST, 512, 1_024, 4_096, 10_000, 1 << 20, u64::MAX] {
            for clients in [1, 2, 31, 500, 4_096, 1 << 20, usize::MAX] {
                for http in [1, 2, 31, 500, 4_096, 1 << 20, usize::MAX] {
                    let found = bounds(limit, clients, http).expect("it is enough");
                    let sum = found.clients as u64 + found.http as u64;
                    assert!(sum + reserve <= limit, "{limit} {clients} {http}: {found:?}");
                    assert!((1..=clients).contains(&found.clients), "{found:?}");
                    assert!((1..=http).contains(&found.http), "{found:?}");
                    if found.lowered {
                        let all = sum.saturating_add(2 + reserve);
                        assert!(all >= limit, "{limit} {clients} {http}: {found:?}");
                    } else {
                        assert_eq!((found.clients, found.http), (clients, http));
                    }
                }
            }
        }
    }

    #[test]
    fn too_few_are_an_error_that_says_how_many_it_takes() {
        let reserve = reserve(&good());
        let error = bounds(reserve + LEAST - 1, 1, 1).expect_err("there is one too few");
        assert!(error.to_string().contains(&(reserve + LEAST).to_string()), "{error}");
    }
}
