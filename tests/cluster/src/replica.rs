//! One `gesmas serve` process.
//!
//! Invariant: the process ends with this value, by its own id.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use gesmas_client::{Client, protocol::ClusterStatus};
use rustix::process::{Pid, Signal, kill_process};

use crate::{gesmas_binary, wait};

/// What a replica says of itself.
#[derive(Clone, Debug)]
pub struct Look {
    /// Its view of the group.
    pub status: ClusterStatus,
    /// What it has counted since it started.
    pub counters: Vec<(String, u64)>,
}

impl Look {
    /// A counter.
    ///
    /// # Panics
    /// When there is none of this name.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        let found = self.counters.iter().find(|(counter, _)| counter == name);
        found.unwrap_or_else(|| panic!("no counter is called {name}")).1
    }
}

pub(crate) struct Replica {
    pub(crate) clients: SocketAddr,
    pub(crate) peers: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) config: PathBuf,
    output: PathBuf,
    /// How many files it may have open, if not as many as this process.
    pub(crate) descriptors: Option<u64>,
    child: Option<Child>,
    eyes: tokio::sync::Mutex<Option<Client>>,
}

impl Replica {
    pub(crate) fn new(folder: &Path, number: usize, free_address: impl Fn() -> SocketAddr) -> Self {
        Self {
            clients: free_address(),
            peers: free_address(),
            http: free_address(),
            config: folder.join(format!("replica-{number}.toml")),
            output: folder.join(format!("replica-{number}.log")),
            descriptors: None,
            child: None,
            eyes: tokio::sync::Mutex::new(None),
        }
    }

    pub(crate) fn configure(&self, text: &str) {
        fs::write(&self.config, text).expect("a temporary folder can be written to");
    }

    pub(crate) fn start(&mut self) {
        assert!(self.child.is_none(), "only a replica that is down is started");
        let output = fs::File::options().create(true).append(true).open(&self.output);
        let child = self
            .command()
            .arg("serve")
            .arg("--config")
            .arg(&self.config)
            .env("RUST_LOG", "info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output.expect("a temporary folder can be written to"))
            .spawn();
        self.child = Some(child.expect("the binary starts"));
    }

    fn command(&self) -> Command {
        let Some(most) = self.descriptors else { return Command::new(gesmas_binary()) };
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -n {most}; exec \"$0\" \"$@\"")).arg(gesmas_binary());
        command
    }

    pub(crate) const fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Ends the process with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().expect("a replica is killed while it runs");
        child.kill().and_then(|()| child.wait()).expect("a child can be killed");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("a signal goes to a replica that runs");
        kill_process(Pid::from_child(child), signal).expect("a child can be signalled");
    }

    /// Waits until the process has ended by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("a replica ends while it runs");
        let ended = wait::until_some("the end of a process", || {
            let ended = child.try_wait().expect("a child can be waited for");
            async move { ended }
        });
        ended.await
    }

    /// What the process has logged.
    pub(crate) fn logged(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// None when it does not answer.
    pub(crate) async fn look(&self) -> Option<Look> {
        let mut eyes = self.eyes.lock().await;
        if eyes.is_none() {
            let builder = Client::builder().endpoints([self.clients.to_string()]).name("look");
            let client = builder.patience(std::time::Duration::from_millis(500)).connect().await;
            *eyes = Some(client.ok()?);
        }
        let client = eyes.as_ref()?;
        let patience = std::time::Duration::from_secs(2);
        let asked = async {
            Some(Look {
                status: client.cluster_status().await.ok()?,
                counters: client.counters().await.ok()?,
            })
        };
        let look = tokio::time::timeout(patience, asked).await.ok().flatten();
        if look.is_none() {
            *eyes = None;
        }
        look
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // One that has ended by itself cannot be killed, and need not.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}
