//! What is between the replicas: loopback, or network namespaces that can be split.
//!
//! With splits each replica has a namespace of its own, joined by a veth pair to one bridge, where
//! the clients are. Every replica knows its peers by permanent neighbour entries; a direction is cut
//! by an entry that leads to nobody, so that frames vanish as on a broken line, without any word to
//! the sender. Clients reach every replica all the time.
//! Invariant: namespaces and links are removed when the network is dropped. What a program left that
//! was killed carries its process id in the name, and is removed by the next one that splits.
//! Not here: which directions are cut (`splits.rs`).

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::Command,
};

/// Below the range from which the system takes the ports of outgoing connections, so that a replica
/// that was killed finds its own free when it comes back.
const PORT_FIRST: u32 = 18_000;
const PORTS: u32 = 12_000;
/// Ports inside of a namespace, where nobody else is.
const PORT_CLIENTS: u16 = 7_100;
const PORT_PEERS: u16 = 7_200;
/// Nobody has it.
const NOBODY: &str = "02:00:00:00:de:ad";

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Network {
    clients: Vec<SocketAddr>,
    peers: Vec<SocketAddr>,
    namespaces: Option<Namespaces>,
}

impl Network {
    /// Free ports on loopback.
    pub(crate) fn loopback(replicas: usize) -> io::Result<Self> {
        let mut free = free_addresses();
        let mut take = || {
            let addresses: Vec<_> = free.by_ref().take(replicas).collect();
            let all = addresses.len() == replicas;
            all.then_some(addresses).ok_or_else(|| io::Error::other("no port is free on loopback"))
        };
        Ok(Self { clients: take()?, peers: take()?, namespaces: None })
    }

    /// Namespaces of its own for each replica.
    ///
    /// # Errors
    /// Says in words why it is not possible here; nothing is left behind.
    pub(crate) fn namespaces(replicas: usize) -> Result<Self, String> {
        let namespaces = Namespaces::new(replicas)?;
        let addresses = |port| {
            (0..replicas).map(|index| SocketAddr::new(namespaces.address(index), port)).collect()
        };
        let (clients, peers) = (addresses(PORT_CLIENTS), addresses(PORT_PEERS));
        Ok(Self { clients, peers, namespaces: Some(namespaces) })
    }

    /// How many replicas it is for.
    pub(crate) const fn len(&self) -> usize {
        self.clients.len()
    }

    /// Where the clients of a replica connect.
    pub(crate) fn clients(&self, index: usize) -> SocketAddr {
        self.clients[index]
    }

    /// Where the peers of a replica connect.
    pub(crate) fn peers(&self, index: usize) -> SocketAddr {
        self.peers[index]
    }

    /// Whether it can be split.
    pub(crate) const fn is_split(&self) -> bool {
        self.namespaces.is_some()
    }

    /// What comes before the command line of a replica.
    pub(crate) fn prefix(&self, index: usize) -> Vec<String> {
        self.namespaces.as_ref().map_or_else(Vec::new, |namespaces| {
            ["ip", "netns", "exec", &namespaces.name(index)].map(String::from).to_vec()
        })
    }

    /// Nothing that one replica sends reaches the other.
    pub(crate) fn cut(&self, from: usize, to: usize) -> io::Result<()> {
        let namespaces = self.namespaces.as_ref().expect("only namespaces can be split");
        namespaces.point(from, to, NOBODY).map_err(io::Error::other)
    }

    /// Everything reaches everybody again.
    pub(crate) fn heal(&self) -> io::Result<()> {
        self.namespaces
            .as_ref()
            .map_or(Ok(()), |namespaces| namespaces.heal().map_err(io::Error::other))
    }
}

fn free_addresses() -> impl Iterator<Item = SocketAddr> {
    // Processes that run at the same time begin apart.
    let start = std::process::id().wrapping_mul(613);
    (0..PORTS).filter_map(move |next| {
        let port = u16::try_from(start.wrapping_add(next) % PORTS + PORT_FIRST).ok()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        TcpListener::bind(address).is_ok().then_some(address)
    })
}

#[derive(Debug)]
struct Namespaces {
    id: u32,
    count: usize,
}

impl Namespaces {
    fn new(count: usize) -> Result<Self, String> {
        remove_leftovers()?;
        let namespaces = Self { id: std::process::id(), count };
        // From here on a failure removes what was made, by dropping it.
        let bridge = namespaces.bridge();
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {}/24 dev {bridge}", namespaces.host()))?;
        ip(&format!("link set {bridge} up"))?;
        for index in 0..count {
            let (name, veth) = (namespaces.name(index), namespaces.veth(index));
            let (address, mac) = (namespaces.address(index), mac(index));
            ip(&format!("netns add {name}"))?;
            ip(&format!("link add {veth} type veth peer name eth0 netns {name}"))?;
            ip(&format!("link set {veth} master {bridge} up"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} addr add {address}/24 dev eth0"))?;
            ip(&format!("-n {name} link set eth0 address {mac} up"))?;
        }
        namespaces.heal()?;
        Ok(namespaces)
    }

    fn name(&self, index: usize) -> String {
        format!("gesmas-kill-{}-{index}", self.id)
    }

    fn bridge(&self) -> String {
        format!("gk{}b", self.id)
    }

    fn veth(&self, index: usize) -> String {
        format!("gk{}v{index}", self.id)
    }

    /// A network of the range for tests of networks.
    fn host(&self) -> IpAddr {
        let network = u8::try_from(self.id % 250).expect("it is below 250");
        Ipv4Addr::new(198, 18, network, 254).into()
    }

    fn address(&self, index: usize) -> IpAddr {
        let network = u8::try_from(self.id % 250).expect("it is below 250");
        let last = u8::try_from(index + 1).expect("a group is small");
        Ipv4Addr::new(198, 18, network, last).into()
    }

    fn point(&self, from: usize, to: usize, mac: &str) -> Result<(), String> {
        let (name, address) = (self.name(from), self.address(to));
        ip(&format!("-n {name} neigh replace {address} lladdr {mac} dev eth0 nud permanent"))?;
        Ok(())
    }

    fn heal(&self) -> Result<(), String> {
        for from in 0..self.count {
            for to in (0..self.count).filter(|to| *to != from) {
                self.point(from, to, &mac(to))?;
            }
        }
        Ok(())
    }
}

/// Removes namespaces of programs that are gone.
fn remove_leftovers() -> Result<(), String> {
    let list = ip("netns list")?;
    for name in list.lines().filter_map(|line| line.split(' ').next()) {
        let place = name.strip_prefix("gesmas-kill-").and_then(|rest| rest.rsplit_once('-'));
        let Some((id, _)) = place else { continue };
        if !Path::new("/proc").join(id).exists() {
            ip(&format!("netns del {name}"))?;
            // The bridge goes with the first of them.
            let _removed = ip(&format!("link del gk{id}b"));
        }
    }
    Ok(())
}

fn mac(index: usize) -> String {
    format!("02:00:00:00:00:{:02x}", index + 1)
}

/// Runs `ip` with these words and gives what it prints.
fn ip(words: &str) -> Result<String, String> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.map_err(|error| format!("`ip` cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("`ip {words}`: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // What was not made cannot be removed, and need not.
        for index in 0..self.count {
            let _removed = ip(&format!("netns del {}", self.name(index)));
            let _removed = ip(&format!("link del {}", self.veth(index)));
        }
        let _removed = ip(&format!("link del {}", self.bridge()));
    }
}
