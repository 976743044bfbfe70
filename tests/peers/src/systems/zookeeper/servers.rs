//! Three ZooKeeper servers on loopback, each with its own folder, log synced as by default.

use std::{fs, net::SocketAddr, path::Path, process::Command, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::client::Client;
use crate::systems::{
    PeerError, Result, System,
    processes::{Cluster, StartError, free_ports, until},
};

/// Where Debian puts the libraries of its packages.
const LIBRARIES: &str = "/usr/share/java/*";
/// Servers that take no work by then will not.
const PATIENCE: Duration = Duration::from_secs(60);
/// What ZooKeeper counts each sync of its log under.
const SYNCS: &str = "zk_cnt_fsynctime";
/// What the leader says of itself.
const LEADS: &str = "zk_server_state\tleader";

/// See the file's head.
pub(crate) struct ZooKeeper {
    cluster: Cluster,
    leader: usize,
}

impl System for ZooKeeper {
    const NAME: &'static str = "ZooKeeper";
    type Client = Client;

    async fn start(folder: &Path) -> Result<Self> {
        let cluster = spawn(folder)?;
        for address in cluster.clients() {
            until(Self::NAME, PATIENCE, async || takes_work(*address).await).await?;
        }
        for (leader, address) in cluster.clients().iter().enumerate() {
            if figures(*address).await?.contains(LEADS) {
                return Ok(Self { cluster, leader });
            }
        }
        Err(PeerError::Late(Self::NAME, PATIENCE))
    }

    async fn connect(&self, number: usize) -> Result<Client> {
        let addresses = self.cluster.clients();
        Ok(Client::connect(addresses[(self.leader + number) % addresses.len()]).await?)
    }

    fn processes(&self) -> Vec<u32> {
        self.cluster.processes()
    }

    async fn syncs(&self) -> Result<Vec<u64>> {
        let mut syncs = Vec::new();
        for address in self.cluster.clients() {
            let figures = figures(*address).await?;
            let count = figures.lines().find_map(|line| line.strip_prefix(SYNCS));
            syncs.push(count.and_then(|count| count.trim().parse().ok()).unwrap_or_default());
        }
        Ok(syncs)
    }
}

/// What a server says of itself.
async fn figures(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"mntr").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn takes_work(address: SocketAddr) -> bool {
    let asked = async { Client::connect(address).await?.children("/").await };
    matches!(tokio::time::timeout(Duration::from_secs(2), asked).await, Ok(Ok(_)))
}

fn spawn(folder: &Path) -> std::result::Result<Cluster, StartError> {
    let ports = free_ports(9)?;
    let (clients, rest) = ports.split_at(3);
    let (peers, elections) = rest.split_at(3);
    let members: String = (0..3)
        .map(|at| format!("server.{}=127.0.0.1:{}:{}\n", at + 1, peers[at], elections[at]))
        .collect();
    let mut cluster = Cluster::new(clients);
    for (at, client) in clients.iter().enumerate() {
        let home = folder.join(format!("zookeeper-{}", at + 1));
        let data = home.join("data");
        fs::create_dir_all(&data)?;
        fs::write(data.join("myid"), format!("{}\n", at + 1))?;
        let config = home.join("zoo.cfg");
        let settings = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={client}\n\
             clientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n\
             4lw.commands.whitelist=mntr\n{members}",
            data.display()
        );
        fs::write(&config, settings)?;
        let mut command = Command::new("java");
        command.args(["-Xms1g", "-Xmx2g", "-cp"]);
        command.arg(format!("{LIBRARIES}:{}", home.display()));
        command.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain");
        command.arg(&config);
        cluster.spawn(command, &home.join("output.log"))?;
    }
    Ok(cluster)
}
