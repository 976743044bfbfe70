//! The configuration of a replica: a TOML file, checked as a whole before anything starts.
//!
//! Invariant: a [`Config`] that came through [`Config::load`] or [`Config::check`] can be served.
//! Not here: limits of guests and sessions, which are replicated state.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;

use super::secret::Secret;

/// A follower gets what follows the newest snapshot in one frame, of 64 MiB, and one may be on its
/// way to be written.
const SNAPSHOT_EVERY_MIB_MAX: u64 = 48;

/// What the file says. `docs/gesmas.toml` explains every setting.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The cluster: 1 to 32 hexadecimal digits, equal on all replicas.
    pub cluster: String,
    /// This replica: its number among the members.
    pub replica: u64,
    /// Folder for the log and the compiled code.
    pub data: PathBuf,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// HTTP; not served if left out.
    #[serde(default)]
    pub http: Option<HttpConfig>,
    /// All replicas, this one included.
    pub members: Vec<Member>,
    /// A file with the secret that the replicas share, equal on all of them; empty if there is none. A
    /// relative one lies beside the file of the configuration.
    #[serde(default)]
    pub peer_secret_file: PathBuf,
    /// Whether to listen on other than loopback addresses although nothing is encrypted.
    #[serde(default)]
    pub allow_plaintext: bool,
    /// Pace of elections and messages.
    #[serde(default)]
    pub timing: Timing,
    /// The durable log.
    #[serde(default)]
    pub log: LogConfig,
    /// Snapshots of the state.
    #[serde(default)]
    pub snapshots: SnapshotConfig,
    /// The kernel.
    #[serde(default)]
    pub kernel: KernelConfig,
    /// Compiling classes.
    #[serde(default)]
    pub compile: CompileConfig,
    /// Bounds of what waits.
    #[serde(default)]
    pub queues: QueueConfig,
    /// Invocations that end instead of being run. Equal on all replicas.
    #[serde(default)]
    pub overrides: Vec<OverrideConfig>,
    /// Traces of calls.
    #[serde(default)]
    pub tracing: TracingConfig,
}

/// Traces of calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TracingConfig {
    /// Where a collector takes OTLP over HTTP, `http://HOST:PORT`; empty if none does.
    pub otlp: String,
    /// Part of the calls that have a span, from 0 to 1.
    pub sample: f64,
}

/// HTTP for clients without a library, and for people.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// Where it is served.
    pub listen: SocketAddr,
    /// Names by which clients may address this server, besides its address and those of loopback.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Origins of pages that may call, besides the server's own page.
    #[serde(default)]
    pub origins: Vec<String>,
    /// Connections that exist at once.
    #[serde(default = "connections")]
    pub connections: usize,
    /// Milliseconds in which the head of a request must have come, on a new connection and after an
    /// answer.
    #[serde(default = "http_idle_ms")]
    pub idle_ms: u64,
}

const fn connections() -> usize {
    4_096
}

const fn http_idle_ms() -> u64 {
    60_000
}

impl HttpConfig {
    /// What the settings are if only the address is given.
    #[must_use]
    pub const fn at(listen: SocketAddr) -> Self {
        Self {
            listen,
            hosts: Vec::new(),
            origins: Vec::new(),
            connections: connections(),
            idle_ms: http_idle_ms(),
        }
    }
}

/// An invocation that ends at a step instead of being run.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverrideConfig {
    /// The step.
    pub step: u64,
    /// The invocation.
    pub invocation: u64,
}

/// One replica of the group.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its number, from 1.
    pub replica: u64,
    /// Where its peers connect.
    pub peers: SocketAddr,
}

/// Pace of elections and messages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// One tick, milliseconds.
    pub tick_ms: u64,
    /// Ticks between heartbeats; a silent leader is missed after about three of them.
    pub heartbeat_ticks: u64,
    /// Ticks after which an unanswered message of Paxos is sent again.
    pub resend_ticks: u64,
    /// Milliseconds after which a request that is not in the log is forwarded again.
    pub forward_again_ms: u64,
}

/// The durable log.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// Size of a file, MiB.
    pub file_mib: u64,
    /// Recent entries that are kept in memory, MiB.
    pub cache_mib: u64,
}

/// Snapshots of the state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotConfig {
    /// Log after which a snapshot is taken, MiB.
    pub every_mib: u64,
    /// Most that a replica which is behind takes of a snapshot in a second, MiB.
    pub fetch_mib_per_second: u64,
}

/// The kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KernelConfig {
    /// Blocked calls that keep their instance; others are parked as journals. Results do not depend
    /// on it.
    pub live_activations: usize,
    /// Segments that run before heartbeats and sockets are looked at again.
    pub slice: u32,
}

/// Compiling classes, in a child process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompileConfig {
    /// Longest time of one module, milliseconds.
    pub time_ms: u64,
    /// Address space of the child process, MiB.
    pub memory_mib: u64,
}

/// Bounds of what waits. What does not fit is turned away as busy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueConfig {
    /// Messages between the sockets and the driver.
    pub inputs: usize,
    /// Requests of this replica's clients that are not in the log yet.
    pub outstanding: usize,
    /// Bytes of them, MiB.
    pub outstanding_mib: usize,
    /// Commands that a leader holds for its next batches.
    pub leader: usize,
    /// Bytes of them, MiB.
    pub leader_mib: usize,
    /// What waits to be written to one client, KiB; a client that reads slower is cut off.
    pub client_output_kib: usize,
    /// What waits to be written to one peer, MiB; a peer that reads slower is connected to anew.
    pub peer_output_mib: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Milliseconds after which a connection ends that has no session and asks for nothing.
    pub idle_ms: u64,
}

impl Default for TracingConfig {
    fn default() -> Self {
        Self { otlp: String::new(), sample: 1.0 }
    }
}

impl TracingConfig {
    fn check(&self) -> Result<(), ConfigError> {
        // Written so that what is no number is refused as well.
        if !(0.0..=1.0).contains(&self.sample) {
            return Err(setting("tracing.sample", "must be from 0 to 1"));
        }
        let address = self.otlp.parse::<axum::http::Uri>().ok();
        let good = address.is_some_and(|address| {
            address.scheme_str() == Some("http")
                && address.authority().is_some()
                && address.query().is_none()
        });
        if self.otlp.is_empty() || good {
            return Ok(());
        }
        let problem = "must be like \"http://127.0.0.1:4318\", without encryption, or empty";
        Err(setting("tracing.otlp", problem))
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self { tick_ms: 10, heartbeat_ticks: 10, resend_ticks: 20, forward_again_ms: 500 }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { file_mib: 64, cache_mib: 64 }
    }
}

impl Default for SnapshotConfig {
    fn default() -> Self {
        Self { every_mib: 32, fetch_mib_per_second: 64 }
    }
}

impl Default for KernelConfig {
    fn default() -> Self {
        Self { live_activations: 1_000, slice: 256 }
    }
}

impl Default for CompileConfig {
    fn default() -> Self {
        Self { time_ms: 20_000, memory_mib: 1_024 }
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            inputs: 4_096,
            outstanding: 50_000,
            outstanding_mib: 64,
            leader: 200_000,
            leader_mib: 64,
            client_output_kib: 16_384,
            peer_output_mib: 128,
            connections: connections(),
            idle_ms: 120_000,
        }
    }
}

/// Why a configuration cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not a configuration.
    #[error("{}: {error}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// A setting has no sense.
    #[error("{setting}: {problem}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
}

pub(super) fn setting(setting: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Setting { setting, problem: problem.into() }
}

impl Config {
    /// Reads and checks a file. A relative data folder lies beside the file.
    ///
    /// # Errors
    /// [`ConfigError`] says what is wrong and where.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Read { path: path.into(), error })?;
        let mut config: Self = toml::from_str(&text)
            .map_err(|error| ConfigError::Parse { path: path.into(), error: error.into() })?;
        if let Some(folder) = path.parent() {
            config.data = folder.join(&config.data);
            if !config.peer_secret_file.as_os_str().is_empty() {
                config.peer_secret_file = folder.join(&config.peer_secret_file);
            }
        }
        config.check()?;
        Ok(config)
    }

    /// Checks what one setting alone, or two together, must satisfy.
    ///
    /// # Errors
    /// [`ConfigError::Setting`] names the first that does not.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.cluster_id()?;
        self.check_members()?;
        self.check_secret()?;
        self.tracing.check()?;
        let http = self.http.as_ref().map(|http| ("http.listen", http.listen));
        let all = [("listen", self.listen), ("members", self.own_peers())];
        for (name, address) in all.into_iter().chain(http) {
            if !address.ip().is_loopback() && !self.allow_plaintext {
                return Err(setting(
                    name,
                    format!(
                        "{address} is not a loopback address, and connections are not encrypted: \
                         set allow_plaintext = true if the network is trusted"
                    ),
                ));
            }
        }
        let positive = [
            ("timing.tick_ms", self.timing.tick_ms),
            ("timing.heartbeat_ticks", self.timing.heartbeat_ticks),
            ("timing.resend_ticks", self.timing.resend_ticks),
            ("log.file_mib", self.log.file_mib),
            ("snapshots.every_mib", self.snapshots.every_mib),
            ("snapshots.fetch_mib_per_second", self.snapshots.fetch_mib_per_second),
            ("kernel.slice", self.kernel.slice.into()),
            ("compile.time_ms", self.compile.time_ms),
            ("compile.memory_mib", self.compile.memory_mib),
            ("queues.inputs", self.queues.inputs as u64),
            ("queues.outstanding", self.queues.outstanding as u64),
            ("queues.outstanding_mib", self.queues.outstanding_mib as u64),
            ("queues.leader", self.queues.leader as u64),
            ("queues.leader_mib", self.queues.leader_mib as u64),
            ("queues.client_output_kib", self.queues.client_output_kib as u64),
            ("queues.peer_output_mib", self.queues.peer_output_mib as u64),
            ("queues.connections", self.queues.connections as u64),
            ("queues.idle_ms", self.queues.idle_ms),
            ("http.connections", self.http.as_ref().map_or(1, |http| http.connections as u64)),
            ("http.idle_ms", self.http.as_ref().map_or(1, |http| http.idle_ms)),
        ];
        if self.snapshots.every_mib > SNAPSHOT_EVERY_MIB_MAX {
            let problem = format!(
                "must be at most {SNAPSHOT_EVERY_MIB_MAX}: what follows the newest snapshot must \
                 fit into one frame"
            );
            return Err(setting("snapshots.every_mib", problem));
        }
        match positive.iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(setting(name, "must not be 0")),
            None => Ok(()),
        }
    }

    fn check_members(&self) -> Result<(), ConfigError> {
        let numbers: BTreeSet<_> = self.members.iter().map(|member| member.replica).collect();
        let addresses: BTreeSet<_> = self.members.iter().map(|member| member.peers).collect();
        let count = self.members.len();
        if count < 3 || count.is_multiple_of(2) {
            let problem = "list 3, 5 or 7 replicas: an even number adds no safety, and fewer than 3 \
                           survive no failure";
            return Err(setting("members", problem));
        }
        if numbers.len() != count || addresses.len() != count {
            return Err(setting("members", "each needs a number and an address of its own"));
        }
        if !numbers.iter().copied().eq(1..=count as u64) {
            return Err(setting("members", format!("number them 1 to {count}")));
        }
        if !numbers.contains(&self.replica) {
            return Err(setting("replica", format!("{} is not among the members", self.replica)));
        }
        Ok(())
    }

    /// The number of the cluster is told to every client, so that it keeps nobody out.
    fn check_secret(&self) -> Result<(), ConfigError> {
        self.peer_secret()?;
        let mut peers = self.members.iter().map(|member| member.peers);
        match peers.find(|peers| !peers.ip().is_loopback()) {
            Some(peers) if self.peer_secret_file.as_os_str().is_empty() => Err(setting(
                "peer_secret_file",
                format!(
                    "{peers} is not a loopback address, and whoever reaches it could pass for a replica: \
                     give all replicas the same file with a secret, as `openssl rand -hex 32` makes one"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// What the replicas prove to each other.
    ///
    /// # Errors
    /// When the file cannot be read, or is no secret.
    pub(super) fn peer_secret(&self) -> Result<Secret, ConfigError> {
        if self.peer_secret_file.as_os_str().is_empty() {
            Ok(Secret::none())
        } else {
            Secret::read(&self.peer_secret_file)
        }
    }

    /// The cluster as a number.
    ///
    /// # Errors
    /// When it is not one.
    pub fn cluster_id(&self) -> Result<u128, ConfigError> {
        u128::from_str_radix(&self.cluster, 16)
            .map_err(|_| setting("cluster", "must be 1 to 32 hexadecimal digits"))
    }

    /// Where peers of this replica connect.
    ///
    /// # Panics
    /// When the configuration was not checked.
    #[must_use]
    pub fn own_peers(&self) -> SocketAddr {
        let own = self.members.iter().find(|member| member.replica == self.replica);
        own.expect("a checked configuration lists this replica").peers
    }

    /// One tick.
    #[must_use]
    pub fn tick(&self) -> Duration {
        Duration::from_millis(self.timing.tick_ms)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A configuration that can be served, with HTTP.
    pub(in crate::shell) fn good() -> Config {
        let text = format!("{GOOD}\n[http]\nlisten = \"127.0.0.1:7180\"");
        toml::from_str(&text).expect("it parses")
    }

    const GOOD: &str = r#"
        cluster = "7ab3"
        replica = 1
        data = "data"
        listen = "127.0.0.1:7100"
        members = [
            { replica = 1, peers = "127.0.0.1:7201" },
            { replica = 2, peers = "127.0.0.1:7202" },
            { replica = 3, peers = "127.0.0.1:7203" },
        ]
    "#;

    fn problem(text: &str) -> String {
        let config: Config = toml::from_str(text).expect("the text is well-formed");
        config.check().expect_err("the configuration is bad").to_string()
    }

    #[test]
    fn a_small_file_is_enough() {
        let config: Config = toml::from_str(GOOD).expect("it parses");
        config.check().expect("it is good");
        assert_eq!(config.cluster_id().expect("it is checked"), 0x7ab3);
    }

    #[test]
    fn problems_name_the_setting() {
        assert!(problem(&GOOD.replace("7ab3", "x")).starts_with("cluster: "));
        assert!(problem(&GOOD.replace("replica = 1\n", "replica = 9\n")).starts_with("replica: "));
        assert!(problem(&GOOD.replace("replica = 3,", "replica = 4,")).contains("1 to 3"));
        assert!(problem(&GOOD.replace("127.0.0.1:7100", "10.0.0.1:7100")).contains("loopback"));
        // That the network is trusted is no secret.
        let open = GOOD.replace("127.0.0.1:7202", "10.0.0.1:7202");
        let open = format!("allow_plaintext = true\n{open}");
        assert!(problem(&open).starts_with("peer_secret_file: 10.0.0.1:7202 is not"));
        let missing = format!("peer_secret_file = \"/nowhere/secret\"\n{GOOD}");
        assert!(problem(&missing).starts_with("peer_secret_file: /nowhere/secret"));
        assert!(toml::from_str::<Config>(&format!("{GOOD}\nsurprise = 1")).is_err());
        for (settings, name) in [
            ("otlp = \"https://127.0.0.1:4318\"", "tracing.otlp: "),
            ("otlp = \"127.0.0.1:4318\"", "tracing.otlp: "),
            ("sample = 1.5", "tracing.sample: "),
            ("sample = nan", "tracing.sample: "),
        ] {
            let problem = problem(&format!("{GOOD}\n[tracing]\n{settings}"));
            assert!(problem.starts_with(name), "{settings}: {problem}");
        }
    }
}
