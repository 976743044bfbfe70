//! A cluster of three replicas.
//!
//! Invariants: data lies in a temporary folder, which is kept when the test fails, with the end of
//! every replica's log on stderr.

use std::{net::SocketAddr, process::ExitStatus};

use gesmas_client::{Client, ClientBuilder, Session};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    ports::free_address,
    replica::{Look, Replica},
    wait,
};

/// How many replicas there are.
const REPLICAS: usize = 3;
/// Bytes of a replica's log that a failed test shows.
const SHOWN: usize = 3_000;

/// How a cluster is set up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<'a> {
    /// Tables of settings that are added to the configuration of each replica.
    pub settings: &'a str,
    /// Settings that are added to the table `http`.
    pub http: &'a str,
    /// Size of a log file, MiB, if not 8.
    pub log_file_mib: Option<u64>,
    /// How many files each replica may have open, if not as many as this process.
    pub descriptors: Option<u64>,
}

/// See the file's head.
pub struct Cluster {
    folder: TempDir,
    replicas: Vec<Replica>,
}

impl Cluster {
    /// Starts a cluster and waits until it has a leader.
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts a cluster with tables of settings added to the configuration of each replica.
    ///
    /// # Panics
    /// When it has no leader in time.
    pub async fn start_with(settings: &str) -> Self {
        Self::set_up(Setup { settings, ..Setup::default() }).await
    }

    /// Starts a cluster that is set up like this.
    ///
    /// # Panics
    /// When it has no leader in time.
    pub async fn set_up(setup: Setup<'_>) -> Self {
        let Setup { settings, http, log_file_mib, descriptors } = setup;
        let log_file_mib = log_file_mib.unwrap_or(8);
        let folder = tempfile::Builder::new().prefix("gesmas-test-").tempdir();
        let folder = folder.expect("there is a temporary folder");
        let mut replicas: Vec<_> = (1..=REPLICAS)
            .map(|number| Replica::new(folder.path(), number, free_address))
            .collect();
        let members: Vec<_> = (1..)
            .zip(&replicas)
            .map(|(number, replica)| {
                format!("{{ replica = {number}, peers = \"{}\" }}", replica.peers)
            })
            .collect();
        let members = members.join(", ");
        let secret = folder.path().join("peer-secret");
        std::fs::write(secret, "the replicas of a test share this").expect("it can be written");
        for (number, replica) in (1..).zip(&mut replicas) {
            replica.configure(&format!(
                "cluster = \"7e57\"\nreplica = {number}\ndata = \"replica-{number}\"\n\
                 listen = \"{}\"\nmembers = [{members}]\npeer_secret_file = \"peer-secret\"\n\
                 [http]\nlisten = \"{}\"\n{http}\n[log]\nfile_mib = {log_file_mib}\n{settings}\n",
                replica.clients, replica.http
            ));
            replica.descriptors = descriptors;
            replica.start();
        }
        let cluster = Self { folder, replicas };
        cluster.leader().await;
        cluster
    }

    /// Indices of all replicas.
    pub fn indices(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.replicas.len()
    }

    /// Where clients of a replica connect.
    #[must_use]
    pub fn address(&self, index: usize) -> SocketAddr {
        self.replicas[index].clients
    }

    /// Where a replica serves HTTP.
    #[must_use]
    pub fn http_address(&self, index: usize) -> SocketAddr {
        self.replicas[index].http
    }

    /// Where peers of a replica connect.
    #[must_use]
    pub fn peer_address(&self, index: usize) -> SocketAddr {
        self.replicas[index].peers
    }

    /// The folder in which all lies: configurations, logs, data.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The configuration of a replica.
    #[must_use]
    pub fn config(&self, index: usize) -> &std::path::Path {
        &self.replicas[index].config
    }

    /// What a replica has logged.
    #[must_use]
    pub fn logged(&self, index: usize) -> String {
        self.replicas[index].logged()
    }

    /// A client of all replicas that has the code of the hostile class.
    pub async fn client(&self) -> Client {
        let addresses: Vec<_> = self.indices().map(|index| self.address(index)).collect();
        connect(&addresses).await
    }

    /// A client of one replica alone.
    pub async fn client_of(&self, index: usize) -> Client {
        connect(&[self.address(index)]).await
    }

    /// A session through all replicas.
    ///
    /// # Panics
    /// When it is not opened.
    pub async fn session(&self) -> Session {
        self.client().await.session().open().await.expect("a session is opened")
    }

    /// A session through one replica.
    ///
    /// # Panics
    /// When it is not opened.
    pub async fn session_of(&self, index: usize) -> Session {
        self.client_of(index).await.session().open().await.expect("a session is opened")
    }

    /// What a replica says of itself; none when it does not answer.
    pub async fn try_look(&self, index: usize) -> Option<Look> {
        if self.replicas[index].is_running() { self.replicas[index].look().await } else { None }
    }

    /// What a replica says of itself.
    ///
    /// # Panics
    /// When it does not answer in time.
    pub async fn look(&self, index: usize) -> Look {
        wait::until_some("an answer of a replica", || self.try_look(index)).await
    }

    /// Index of the replica that a majority takes for the leader.
    ///
    /// # Panics
    /// When there is none in time.
    pub async fn leader(&self) -> usize {
        self.leader_other_than(usize::MAX).await
    }

    /// Index of the leader, once it is not this one.
    ///
    /// # Panics
    /// When there is none in time.
    pub async fn leader_other_than(&self, old: usize) -> usize {
        wait::until_some("the election of a leader", || async {
            let mut votes = vec![0; self.replicas.len()];
            for index in self.indices().filter(|index| *index != old) {
                let leader = self.try_look(index).await.and_then(|look| look.status.leader);
                let leader = leader.and_then(|leader| usize::try_from(leader).ok()?.checked_sub(1));
                if let Some(count) = leader.and_then(|leader| votes.get_mut(leader)) {
                    *count += 1;
                }
            }
            votes.iter().position(|count| *count > REPLICAS / 2).filter(|index| *index != old)
        })
        .await
    }

    /// Kills a replica with SIGKILL.
    pub fn kill(&mut self, index: usize) {
        self.replicas[index].kill();
    }

    /// Starts a replica that is down.
    pub fn restart(&mut self, index: usize) {
        self.replicas[index].start();
    }

    /// Stops a replica in good order, with SIGTERM.
    pub async fn stop(&mut self, index: usize) -> ExitStatus {
        self.replicas[index].signal(Signal::TERM);
        self.replicas[index].ended().await
    }

    /// Freezes a replica.
    pub fn freeze(&self, index: usize) {
        self.replicas[index].signal(Signal::STOP);
    }

    /// Lets a frozen replica go on.
    pub fn thaw(&self, index: usize) {
        self.replicas[index].signal(Signal::CONT);
    }

    /// Waits until a replica that was down has caught up with the others, who go on meanwhile.
    ///
    /// # Panics
    /// When it has not in time.
    pub async fn caught_up(&self, index: usize) {
        let leader = self.leader().await;
        let target = self.look(leader).await.status.log_decided;
        wait::until("that a replica has caught up", || async {
            let look = self.try_look(index).await;
            look.is_some_and(|look| look.status.log_applied >= target)
        })
        .await;
    }

    /// Waits until all replicas stand at the same step; checks that no two ever have different
    /// hashes after the same entry. A leader that begins changes the state without a step.
    ///
    /// # Panics
    /// When two differ, or they do not come together in time.
    pub async fn assert_equal(&self) {
        wait::until("that all replicas stand at the same step", || async {
            let mut looks = Vec::new();
            for index in self.indices() {
                looks.extend(self.try_look(index).await);
            }
            for look in &looks {
                for other in &looks {
                    let (status, other) = (&look.status, &other.status);
                    let together = status.position == other.position
                        && status.log_applied == other.log_applied;
                    assert!(
                        !together || status.state_hash == other.state_hash,
                        "replicas differ: {status:?} and {other:?}"
                    );
                }
            }
            looks.len() == REPLICAS
                && looks.iter().all(|look| {
                    look.status.position == looks[0].status.position
                        && look.status.log_applied == looks[0].status.log_applied
                })
        })
        .await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            eprintln!("the data of the cluster stays in {}", self.folder.path().display());
            for (number, replica) in (1..).zip(&self.replicas) {
                let logged = replica.logged();
                let start = logged.len().saturating_sub(SHOWN);
                let end = String::from_utf8_lossy(&logged.as_bytes()[start..]);
                eprintln!("---- the log of replica {number} ends:\n{end}");
            }
        }
    }
}

/// A client of these addresses that can ship every class of the tests.
async fn connect(addresses: &[SocketAddr]) -> Client {
    builder(addresses).connect().await.expect("a client connects")
}

fn builder(addresses: &[SocketAddr]) -> ClientBuilder {
    Client::builder()
        .endpoints(addresses.iter().map(ToString::to_string))
        .name("test")
        .class("Hostile", crate::hostile::hostile_module())
}

impl Cluster {
    /// A client of any addresses, those of proxies say.
    pub async fn client_at(&self, addresses: &[SocketAddr]) -> Client {
        connect(addresses).await
    }
}
