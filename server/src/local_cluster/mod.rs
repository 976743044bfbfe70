//! A cluster of child processes on loopback, with data in a temporary folder: what the demo and the
//! benchmarks run against.
//!
//! Each replica is a `gesmas serve` with the default settings if no others are given, so the log is synced.
//! Invariant: every child is ended when the cluster is dropped.
//! Not here: what is done with the cluster.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use crate::shell::Secret;
use gesmas_client::{Client, ConnectError, protocol::ClusterStatus};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

mod class_kind;

pub use self::class_kind::ClassKind;

/// A cluster that is not ready by then will not be.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a replica.
const LOOK: Duration = Duration::from_millis(20);

/// Why a cluster is not there.
#[derive(Debug, thiserror::Error)]
pub enum LocalClusterError {
    /// A process, file or socket failed.
    #[error("{what}: {error}")]
    Io {
        /// What was done.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// Something did not happen in time.
    #[error("{0} did not happen in time; the replicas' logs are in {1}")]
    Late(&'static str, String),
    /// No connection to a replica.
    #[error("connecting to a replica: {0}")]
    Connect(#[from] ConnectError),
}

struct Replica {
    config: PathBuf,
    output: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
}

/// See the file's head.
pub struct LocalCluster {
    name: &'static str,
    kind: ClassKind,
    folder: TempDir,
    replicas: Vec<Replica>,
}

fn io_error(what: &'static str) -> impl Fn(io::Error) -> LocalClusterError {
    move |error| LocalClusterError::Io { what, error }
}

impl LocalCluster {
    /// Starts replicas and waits until they have a leader. The name shows in the name of the folder
    /// and in those of the clients.
    ///
    /// # Errors
    /// [`LocalClusterError`] says what stood in the way; nothing is left running.
    pub async fn start(name: &'static str, count: u64) -> Result<Self, LocalClusterError> {
        Self::start_with(ClassKind::Wasm, name, count).await
    }

    /// The same with standard classes of a kind.
    ///
    /// # Errors
    /// [`LocalClusterError`] says what stood in the way; nothing is left running.
    pub async fn start_with(
        kind: ClassKind,
        name: &'static str,
        count: u64,
    ) -> Result<Self, LocalClusterError> {
        Self::start_configured(kind, name, count, "").await
    }

    /// The same with tables of settings added to the configuration of each replica.
    ///
    /// # Errors
    /// [`LocalClusterError`] says what stood in the way; nothing is left running.
    pub async fn start_configured(
        kind: ClassKind,
        name: &'static str,
        count: u64,
        settings: &str,
    ) -> Result<Self, LocalClusterError> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("gesmas-{name}-"))
            .tempdir()
            .map_err(io_error("making a temporary folder"))?;
        let addresses =
            free_addresses(2 * count).map_err(io_error("looking for free ports on loopback"))?;
        let (clients, peers) = addresses.split_at(addresses.len() / 2);
        let members: Vec<_> = (1..=count)
            .zip(peers)
            .map(|(replica, peers)| format!("{{ replica = {replica}, peers = \"{peers}\" }}"))
            .collect();
        let secret = folder.path().join("peer-secret");
        Secret::make(&secret).map_err(io_error("making a secret for the replicas"))?;
        let mut cluster = Self { name, kind, folder, replicas: Vec::new() };
        for (replica, address) in (1..=count).zip(clients) {
            let text = format!(
                "cluster = \"de30\"\nreplica = {replica}\ndata = \"replica-{replica}\"\n\
                 listen = \"{address}\"\nmembers = [{}]\npeer_secret_file = \"peer-secret\"\n\
                 {settings}\n",
                members.join(", ")
            );
            let config = cluster.folder.path().join(format!("replica-{replica}.toml"));
            fs::write(&config, text).map_err(io_error("writing a configuration"))?;
            let output = cluster.folder.path().join(format!("replica-{replica}.log"));
            let replica = Replica { config, output, address: *address, child: None };
            cluster.replicas.push(replica);
            cluster.start_replica(cluster.replicas.len() - 1)?;
        }
        cluster.leader().await?;
        Ok(cluster)
    }

    fn start_replica(&mut self, index: usize) -> Result<(), LocalClusterError> {
        let replica = &mut self.replicas[index];
        let program = std::env::current_exe().map_err(io_error("finding this program"))?;
        let output = fs::File::options()
            .create(true)
            .append(true)
            .open(&replica.output)
            .map_err(io_error("opening a replica's output"))?;
        let child = Command::new(program)
            .arg("serve")
            .arg("--config")
            .arg(&replica.config)
            .args(matches!(self.kind, ClassKind::Native).then_some("--native"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .map_err(io_error("starting a replica"))?;
        replica.child = Some(child);
        Ok(())
    }

    /// Connections to the cluster, each beginning with another replica.
    ///
    /// # Errors
    /// When no replica answers.
    pub async fn clients(&self, count: usize) -> Result<Vec<Client>, LocalClusterError> {
        let mut addresses: Vec<_> =
            self.replicas.iter().map(|replica| replica.address.to_string()).collect();
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            addresses.rotate_left(1);
            let client = Client::builder().endpoints(addresses.clone()).name(self.name).connect();
            clients.push(client.await?);
        }
        Ok(clients)
    }

    /// A connection to one replica alone.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn client_of(&self, index: usize) -> Result<Client, LocalClusterError> {
        let address = self.replicas[index].address.to_string();
        Ok(Client::builder().endpoints([address]).name(self.name).connect().await?)
    }

    /// What each replica says of itself and what it has counted; none from one that does not answer.
    pub async fn look(&self, index: usize) -> Option<(ClusterStatus, Vec<(String, u64)>)> {
        let client = self.client_of(index).await.ok()?;
        let status = client.cluster_status().await.ok();
        let counters = client.counters().await.ok();
        client.shutdown().await;
        Some((status?, counters?))
    }

    /// Index of the replica that a majority takes for the leader.
    ///
    /// # Errors
    /// When there is none for a long time.
    pub async fn leader(&self) -> Result<usize, LocalClusterError> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let mut votes = vec![0; self.replicas.len()];
            for index in 0..self.replicas.len() {
                if let Some((status, _)) = self.look(index).await
                    && let Some(leader) = status.leader
                    && let Some(count) = usize::try_from(leader)
                        .ok()
                        .and_then(|leader| votes.get_mut(leader.checked_sub(1)?))
                {
                    *count += 1;
                }
            }
            let majority = self.replicas.len() / 2 + 1;
            if let Some(leader) = votes.iter().position(|count| *count >= majority) {
                return Ok(leader);
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(self.late("the election of a leader"))
    }

    /// Kills a replica with SIGKILL, and says how it ended: by the signal, unless it was gone before.
    ///
    /// # Errors
    /// When the system refuses.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill(&mut self, index: usize) -> Result<ExitStatus, LocalClusterError> {
        let child = self.replicas[index].child.take();
        let mut child = child.expect("a replica is killed while it runs");
        child.kill().and_then(|()| child.wait()).map_err(io_error("killing a replica"))
    }

    /// Sends a signal to a replica that runs.
    ///
    /// # Errors
    /// When the system refuses.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal(&self, index: usize, signal: Signal) -> Result<(), LocalClusterError> {
        let child = self.replicas[index].child.as_ref();
        let child = child.expect("a replica gets signals while it runs");
        let sent = kill_process(Pid::from_child(child), signal);
        sent.map_err(|error| io_error("sending a signal to a replica")(error.into()))
    }

    /// Starts a replica that was killed.
    ///
    /// # Errors
    /// When the system refuses.
    ///
    /// # Panics
    /// When it runs.
    pub fn restart(&mut self, index: usize) -> Result<(), LocalClusterError> {
        assert!(self.replicas[index].child.is_none(), "only a replica that is down is started");
        self.start_replica(index)
    }

    /// The processes of the replicas that run.
    pub fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.replicas.iter().filter_map(|replica| replica.child.as_ref().map(Child::id))
    }

    /// How many replicas there are, running or not.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a cluster always has replicas")]
    pub fn len(&self) -> usize {
        self.replicas.len()
    }

    /// Something did not happen: the folder stays for whoever looks into it.
    #[must_use]
    pub fn late(&self, what: &'static str) -> LocalClusterError {
        LocalClusterError::Late(what, self.folder.path().display().to_string())
    }

    /// Ends the replicas.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        for replica in &mut self.replicas {
            if let Some(mut child) = replica.child.take() {
                // One that has ended by itself cannot be killed, and need not.
                let _ended = child.kill();
                let _reaped = child.wait();
            }
        }
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
        }
    }
}

/// Addresses on loopback that nobody listens on now.
fn free_addresses(count: u64) -> io::Result<Vec<SocketAddr>> {
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<io::Result<_>>()?;
    listeners.iter().map(TcpListener::local_addr).collect()
}
