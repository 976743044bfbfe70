//! The replicas: one `gesmas serve` process each, with a data folder that outlives it.
//!
//! Invariants: processes are ended by their own ids when the cluster is dropped; the folder is
//! removed unless it is asked to stay; every change of how many replicas run is written down.
//! Not here: when what happens to whom (`nemesis.rs`).

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{checkers::availability::Change, history::Clock, launch, network::Network};

/// Bytes of a replica's output that a failure shows.
const SHOWN: usize = 2_000;

struct Replica {
    config: PathBuf,
    output: PathBuf,
    child: Option<Child>,
    stopped: bool,
}

/// How often what was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deeds {
    /// SIGKILLs.
    pub(crate) kills: u64,
    /// SIGSTOPs.
    pub(crate) stops: u64,
    /// Starts after a kill.
    pub(crate) restarts: u64,
}

/// See the file's head.
pub(crate) struct Cluster {
    folder: TempDir,
    binary: PathBuf,
    clock: Clock,
    network: Network,
    replicas: Vec<Replica>,
    /// What was done.
    pub(crate) deeds: Deeds,
    changes: Vec<Change>,
}

impl Cluster {
    /// Writes configurations and starts all replicas.
    pub(crate) fn start(binary: PathBuf, clock: Clock, network: Network) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("gesmas-kill-").tempdir()?;
        let mut cluster = Self {
            folder,
            binary,
            clock,
            network,
            replicas: Vec::new(),
            deeds: Deeds::default(),
            changes: Vec::new(),
        };
        // Its replicas may listen on other than loopback addresses.
        fs::write(cluster.folder.path().join("peer-secret"), "the replicas of a run share this")?;
        for index in 0..cluster.network.len() {
            let number = index + 1;
            let path = |end: &str| cluster.folder.path().join(format!("replica-{number}.{end}"));
            let replica =
                Replica { config: path("toml"), output: path("log"), child: None, stopped: false };
            fs::write(&replica.config, cluster.configuration(index))?;
            cluster.replicas.push(replica);
            cluster.spawn(index)?;
        }
        Ok(cluster)
    }

    fn configuration(&self, index: usize) -> String {
        let members: Vec<_> = (0..self.network.len())
            .map(|member| {
                let peers = self.network.peers(member);
                format!("{{ replica = {}, peers = \"{peers}\" }}", member + 1)
            })
            .collect();
        format!(
            "cluster = \"deadbeef\"\nreplica = {number}\ndata = \"replica-{number}\"\n\
             listen = \"{clients}\"\nmembers = [{members}]\nallow_plaintext = {open}\n\
             peer_secret_file = \"peer-secret\"\n\
             [log]\nfile_mib = 8\n",
            number = index + 1,
            clients = self.network.clients(index),
            members = members.join(", "),
            open = self.network.is_split(),
        )
    }

    fn spawn(&mut self, index: usize) -> io::Result<()> {
        let replica = &mut self.replicas[index];
        assert!(replica.child.is_none(), "only a replica that is down is started");
        let output = fs::File::options().create(true).append(true).open(&replica.output)?;
        let mut command = launch::command(&self.network.prefix(index), &self.binary)?;
        command.arg("serve").arg("--config").arg(&replica.config).env("RUST_LOG", "info");
        replica.child = Some(command.stderr(output).spawn()?);
        self.note_change();
        Ok(())
    }

    fn note_change(&mut self) {
        let running = self.replicas.iter().filter(|replica| replica.runs()).count();
        self.changes.push((self.clock.now(), running > self.network.len() / 2));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.replicas.len()
    }

    /// Where clients connect.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        (0..self.len()).map(|index| self.network.clients(index)).collect()
    }

    /// What is between them.
    pub(crate) const fn network(&self) -> &Network {
        &self.network
    }

    /// What is between them, to change it. No faults count as "a majority runs" meanwhile.
    pub(crate) fn disturb(&mut self) -> &mut Network {
        self.changes.push((self.clock.now(), false));
        &mut self.network
    }

    /// The network is in order again.
    pub(crate) fn heal(&mut self) -> io::Result<()> {
        self.network.heal()?;
        self.note_change();
        Ok(())
    }

    /// When a majority ran.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Kills replicas with SIGKILL, all before any is waited for. Says which had ended by
    /// themselves.
    pub(crate) fn kill(&mut self, victims: &[usize]) -> io::Result<Vec<(usize, ExitStatus)>> {
        let mut gone = Vec::new();
        for &index in victims {
            let child = self.replicas[index].child.as_mut().expect("a victim runs");
            match child.try_wait()? {
                Some(status) => gone.push((index, status)),
                None => kill_process(Pid::from_child(child), Signal::KILL)?,
            }
        }
        for &index in victims {
            let replica = &mut self.replicas[index];
            let mut child = replica.child.take().expect("a victim runs");
            child.wait()?;
            replica.stopped = false;
        }
        self.deeds.kills += (victims.len() - gone.len()) as u64;
        self.note_change();
        Ok(gone)
    }

    /// Starts a replica again from its folder.
    pub(crate) fn restart(&mut self, index: usize) -> io::Result<()> {
        self.spawn(index)?;
        self.deeds.restarts += 1;
        Ok(())
    }

    /// Freezes replicas with SIGSTOP.
    pub(crate) fn stop(&mut self, victims: &[usize]) -> io::Result<()> {
        for &index in victims {
            self.signal(index, Signal::STOP)?;
            self.replicas[index].stopped = true;
            self.deeds.stops += 1;
        }
        self.note_change();
        Ok(())
    }

    /// Lets frozen replicas go on.
    pub(crate) fn resume(&mut self, victims: &[usize]) -> io::Result<()> {
        for &index in victims {
            if std::mem::take(&mut self.replicas[index].stopped) {
                self.signal(index, Signal::CONT)?;
            }
        }
        self.note_change();
        Ok(())
    }

    fn signal(&self, index: usize, signal: Signal) -> io::Result<()> {
        let child = self.replicas[index].child.as_ref().expect("a signal goes to one that runs");
        Ok(kill_process(Pid::from_child(child), signal)?)
    }

    /// All replicas run and nothing is cut; those that ended by themselves stay as they are.
    pub(crate) fn restore(&mut self) -> io::Result<()> {
        for index in 0..self.len() {
            self.resume(&[index])?;
            if self.replicas[index].child.is_none() {
                self.restart(index)?;
            }
        }
        self.heal()
    }

    /// Replicas that have ended although nobody killed them.
    pub(crate) fn ended_by_themselves(&mut self) -> io::Result<Vec<(usize, ExitStatus)>> {
        let mut ended = Vec::new();
        for (index, replica) in self.replicas.iter_mut().enumerate() {
            if let Some(child) = &mut replica.child
                && let Some(status) = child.try_wait()?
            {
                ended.push((index, status));
            }
        }
        Ok(ended)
    }

    /// The end of what a replica has logged.
    pub(crate) fn logged(&self, index: usize) -> String {
        let logged = fs::read(&self.replicas[index].output).unwrap_or_default();
        let start = logged.len().saturating_sub(SHOWN);
        String::from_utf8_lossy(&logged[start..]).into_owned()
    }

    /// Keeps the folder and tells where it is.
    pub(crate) fn keep(&mut self) -> &Path {
        self.folder.disable_cleanup(true);
        self.folder.path()
    }
}

impl Replica {
    const fn runs(&self) -> bool {
        self.child.is_some() && !self.stopped
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for replica in &mut self.replicas {
            if let Some(mut child) = replica.child.take() {
                // One that has ended by itself cannot be killed, and need not.
                let _ended = child.kill();
                let _reaped = child.wait();
            }
        }
    }
}
