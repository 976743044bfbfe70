//! Servers as child processes on loopback.
//!
//! Invariant: every child is ended when its cluster is dropped, and only children are.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::{PeerError, Result};

/// Time between two looks at a server that is starting.
const PAUSE: Duration = Duration::from_millis(20);

/// Why a system is not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("{program} cannot be started: {error} (CONTRIBUTING.md lists the packages)")]
    Missing { program: String, error: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The servers of one system.
pub(crate) struct Cluster {
    clients: Vec<SocketAddr>,
    children: Vec<Child>,
}

impl Cluster {
    /// One whose servers take clients at these ports.
    pub(crate) fn new(ports: &[u16]) -> Self {
        let address = |port: &u16| SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        Self { clients: ports.iter().map(address).collect(), children: Vec::new() }
    }

    /// Starts a server.
    pub(crate) fn spawn(
        &mut self,
        mut command: Command,
        output: &Path,
    ) -> std::result::Result<(), StartError> {
        let output = fs::File::create(output)?;
        let errors = output.try_clone()?;
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let child = child.map_err(|error| {
            let program = command.get_program().to_string_lossy().into_owned();
            StartError::Missing { program, error }
        })?;
        self.children.push(child);
        Ok(())
    }

    /// Where clients connect.
    pub(crate) fn clients(&self) -> &[SocketAddr] {
        &self.clients
    }

    /// The processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that has ended by itself cannot be killed, and need not.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// Waits until a server that was started works, but not for ever.
pub(crate) async fn until(
    system: &'static str,
    patience: Duration,
    works: impl AsyncFn() -> bool,
) -> Result<()> {
    let start = Instant::now();
    while !works().await {
        if start.elapsed() > patience {
            return Err(PeerError::Late(system, patience));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Ports of loopback that nobody listens on now.
pub(crate) fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let listeners = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<io::Result<Vec<_>>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}
