//! Three etcd servers on loopback, each with its own folder, synced as by default.

use std::{net::SocketAddr, path::Path, process::Command, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{client::Connection, recipes::EtcdClient};
use crate::systems::{
    PeerError, Result, System,
    processes::{Cluster, free_ports, until},
};

/// Servers that take no work by then will not.
const PATIENCE: Duration = Duration::from_secs(30);
/// What etcd counts each sync of its log under.
const SYNCS: &str = "etcd_disk_wal_fsync_duration_seconds_count ";
/// What the leader says of itself.
const LEADS: &str = "etcd_server_is_leader 1\n";

/// See the file's head.
pub(crate) struct Etcd {
    cluster: Cluster,
    leader: usize,
}

impl System for Etcd {
    const NAME: &'static str = "etcd";
    type Client = EtcdClient;

    async fn start(folder: &Path) -> Result<Self> {
        let ports = free_ports(6)?;
        let (clients, peers) = ports.split_at(3);
        let members: Vec<_> = (1..)
            .zip(peers)
            .map(|(number, port)| format!("etcd-{number}=http://127.0.0.1:{port}"))
            .collect();
        let mut cluster = Cluster::new(clients);
        for ((number, client), peer) in (1..).zip(clients).zip(peers) {
            let name = format!("etcd-{number}");
            let (client, peer) =
                (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
            let mut command = Command::new("etcd");
            command.args(["--name", &name, "--data-dir"]).arg(folder.join(&name));
            command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
            command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
            command.args(["--initial-cluster", &members.join(","), "--log-level", "error"]);
            cluster.spawn(command, &folder.join(format!("{name}.log")))?;
        }
        let mut system = Self { cluster, leader: 0 };
        for number in 0..clients.len() {
            until(Self::NAME, PATIENCE, async || system.takes_work(number).await).await?;
        }
        for (leader, address) in system.cluster.clients().iter().enumerate() {
            if figures(*address).await?.contains(LEADS) {
                system.leader = leader;
                return Ok(system);
            }
        }
        Err(PeerError::Late(Self::NAME, PATIENCE))
    }

    async fn connect(&self, number: usize) -> Result<EtcdClient> {
        let addresses = self.cluster.clients();
        let address = addresses[(self.leader + number) % addresses.len()];
        let connection = Connection::open(address).await?;
        Ok(EtcdClient::new(connection, number))
    }

    fn processes(&self) -> Vec<u32> {
        self.cluster.processes()
    }

    async fn syncs(&self) -> Result<Vec<u64>> {
        let mut syncs = Vec::new();
        for address in self.cluster.clients() {
            let figures = figures(*address).await?;
            let count = figures.lines().find_map(|line| line.strip_prefix(SYNCS));
            // Large counts are printed with an exponent.
            let count = count.and_then(|count| count.trim().parse::<f64>().ok());
            syncs.push(count.unwrap_or_default() as u64);
        }
        Ok(syncs)
    }
}

/// What a server says of itself.
async fn figures(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let question = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(question.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

impl Etcd {
    async fn takes_work(&self, number: usize) -> bool {
        let Ok(connection) = Connection::open(self.cluster.clients()[number]).await else {
            return false;
        };
        let put = connection.put(b"ready", b"", 0);
        matches!(tokio::time::timeout(Duration::from_secs(2), put).await, Ok(Ok(_)))
    }
}
