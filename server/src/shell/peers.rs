//! Connections between replicas.
//!
//! Each replica dials every other and sends through the connection it dialled; it receives through
//! those it accepted. So a link has one direction, in which frames keep their order. When a
//! connection is made anew, both ends tell the core, before anything of it counts, since frames may
//! have been lost.
//! The core hears when a peer's process is gone: its host answers, and nobody listens.
//! A connection begins with greetings and proofs, and its frames have tags (`secret.rs`): a frame is length
//! (4), tag (32), body.
//! Invariant: before the proof a connection gets some fixed bytes of memory and a moment, and has to make
//! room for others (`vestibule.rs`); nothing of it reaches the core.
//! Not here: what frames hold (`replica/peer.rs`).

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf},
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    config::Member,
    input::Input,
    outbox::{self, Rest},
    secret::{
        FRAME_HEADER_BYTES, GREETING_BYTES, Greeting, NONCE_BYTES, PROOF_BYTES, Secret, Tags,
        proves,
    },
    vestibule::Vestibule,
};
use crate::{door::Seldom, paxos::MAX_FRAME_BYTES};

/// What replicas add to a message of Paxos.
const FRAME_EXTRA_BYTES: usize = 8;
/// A peer that has not proven itself by then is given up.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// A peer that has not answered by then is dialled anew: after a split the system would wait ever
/// longer before it tries again.
const DIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Frames that nobody confirms for so long end their connection. Replicas say something at every
/// tick.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Pause before a peer is dialled again.
const REDIAL: Duration = Duration::from_millis(50);
/// The same after a connection that stood for longer than that: a process that is gone stops listening a moment
/// after its connections end, and should it be the leader, that is to be known soon.
const REDIAL_SOON: Duration = Duration::from_millis(5);
/// A peer that takes nothing for so long is given up; the system notices one that is gone before.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;

/// Who this replica is to its peers.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) cluster: u128,
    pub(super) replica: u64,
    pub(super) members: Vec<Member>,
    pub(super) secret: Secret,
    /// Bytes that may wait for one peer.
    pub(super) output_bytes: usize,
    pub(super) inputs: mpsc::Sender<Input>,
}

impl Identity {
    /// A greeting for a peer, with a nonce that was never used.
    fn greeting(&self, to: u64) -> io::Result<Greeting> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Greeting { cluster: self.cluster, from: self.replica, to, nonce })
    }
}

/// The addresses of members' hosts.
fn hosts(members: &[Member]) -> BTreeSet<IpAddr> {
    members.iter().map(|member| member.peers.ip()).collect()
}

/// Descriptors that the connections with these peers take at most: for each the one that is dialled, the one
/// that was accepted and one that takes its place; those that prove themselves, and the next.
pub(super) fn descriptors(members: &[Member]) -> u64 {
    3 * members.len() as u64 + Vestibule::descriptors(hosts(members).len() as u64) + 1
}

/// Why a connection between replicas is not begun.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("it does not greet as a replica of this version does")]
    NoGreeting,
    #[error("it is of another cluster")]
    OtherCluster,
    #[error("it calls itself replica {from}, which is no peer of this one")]
    NoPeer { from: u64 },
    #[error("it takes this replica for replica {to}")]
    OtherReplica { to: u64 },
    #[error("it does not know the secret of the peers: see peer_secret_file")]
    NoSecret,
    #[error(
        "it ended the connection when it had this replica's proof: do both have the same peer_secret_file?"
    )]
    NotBelieved,
    #[error("it said nothing for too long")]
    Silent,
    #[error("it had to make room for others before it proved that it is a peer")]
    Crowded,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Keeps a connection to a peer until the task is dropped.
pub(super) async fn dial(own: Identity, peer: u64, address: SocketAddr) {
    // Whether the driver knows that nobody listens there.
    let mut told = false;
    let refusals = Seldom::default();
    loop {
        let mut pause = REDIAL;
        match connect(&own, peer, address).await {
            Ok((stream, tags)) => {
                told = false;
                let (reader, writer) = stream.into_split();
                let (outbox, rest) = outbox::outbox(writer, own.output_bytes);
                if own.inputs.send(Input::PeerUp { peer, outbox, tags }).await.is_err() {
                    return;
                }
                let begin = Instant::now();
                let ended = hold(reader, rest).await;
                tracing::info!(peer, ?ended, "the connection to a peer ended");
                if begin.elapsed() > REDIAL {
                    pause = REDIAL_SOON;
                }
            }
            Err(error) => {
                match &error {
                    Refused::Io(_) | Refused::Silent => {
                        tracing::debug!(peer, %error, "a peer cannot be reached");
                    }
                    refused => {
                        if let Some(count) = refusals.happened() {
                            tracing::warn!(peer, %address, reason = %refused, count, "what answers for a peer is refused");
                        }
                    }
                }
                let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
                let gone = matches!(&error, Refused::Io(error) if refused(error)) && !told;
                told |= gone;
                if gone && own.inputs.send(Input::PeerGone(peer)).await.is_err() {
                    return;
                }
            }
        }
        // Not a wait for a condition: a peer that is down is not to be flooded with attempts.
        tokio::time::sleep(pause).await;
    }
}

async fn connect(
    own: &Identity,
    peer: u64,
    address: SocketAddr,
) -> Result<(TcpStream, Tags), Refused> {
    let attempt = async {
        let mut stream = TcpStream::connect(address).await?;
        prepare(&stream)?;
        let tags = prove(&mut stream, own, peer).await?;
        Ok((stream, tags))
    };
    tokio::time::timeout(DIAL_TIMEOUT, attempt).await.unwrap_or(Err(Refused::Silent))
}

/// The dialler's part of the beginning of a connection.
async fn prove(stream: &mut TcpStream, own: &Identity, peer: u64) -> Result<Tags, Refused> {
    let said = own.greeting(peer)?;
    stream.write_all(&said.encode()).await?;
    let answer = read_greeting(stream, own).await?;
    if answer.from != peer {
        return Err(Refused::NoPeer { from: answer.from });
    }
    let link = own.secret.link(&said, &answer);
    stream.write_all(link.dialler.as_bytes()).await?;
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await.map_err(|_| Refused::NotBelieved)?;
    if proves(proof, link.acceptor) { Ok(link.tags()) } else { Err(Refused::NoSecret) }
}

/// A greeting to this replica, of its cluster.
async fn read_greeting(stream: &mut TcpStream, own: &Identity) -> Result<Greeting, Refused> {
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes).await?;
    let greeting = Greeting::decode(&bytes).ok_or(Refused::NoGreeting)?;
    if greeting.cluster != own.cluster {
        return Err(Refused::OtherCluster);
    }
    if greeting.to != own.replica {
        return Err(Refused::OtherReplica { to: greeting.to });
    }
    Ok(greeting)
}

/// Has the system notice a peer that is gone without a word, well before its own hours are over.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(SILENCE_MAX))?;
    let keepalive = TcpKeepalive::new().with_time(SILENCE_MAX).with_interval(SILENCE_MAX);
    socket.set_tcp_keepalive(&keepalive)
}

/// Keeps a connection until the driver lets go of it, the peer does, or it breaks.
async fn hold(mut reader: OwnedReadHalf, rest: Rest) -> io::Result<()> {
    let mut closed = [0; 1];
    tokio::select! {
        written = rest.write(PATIENCE) => written,
        // The peer never sends here: whatever comes is the end of the connection.
        _ = reader.read(&mut closed) => Ok(()),
    }
}

/// Accepts peers until the task is dropped.
pub(super) async fn accept(listener: TcpListener, own: Identity) {
    let connections = Arc::new(AtomicU64::new(1));
    let refusals = Arc::new(Seldom::default());
    let mut vestibule = Vestibule::new(hosts(&own.members));
    let mut tasks = JoinSet::new();
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a peer could not be accepted");
                tokio::time::sleep(REDIAL).await;
                continue;
            }
        };
        while tasks.try_join_next().is_some() {}
        let (own, connections) = (own.clone(), connections.clone());
        let refusals = refusals.clone();
        let (visitor, leaves) = vestibule.enter(address.ip());
        tasks.spawn(async move {
            let mut stream = stream;
            let welcomed = tokio::select! {
                welcomed = welcome(&mut stream, &own) => welcomed,
                () = tokio::time::sleep(GREETING_TIMEOUT) => Err(Refused::Silent),
                _ = leaves => Err(Refused::Crowded),
            };
            drop(visitor);
            let (peer, tags) = match welcomed {
                Ok(welcomed) => welcomed,
                Err(reason) => {
                    if let Some(count) = refusals.happened() {
                        tracing::warn!(%address, %reason, count, "a connection to the peers' port is refused");
                    }
                    return;
                }
            };
            match receive(stream, peer, tags, &own, &connections).await {
                Ok(()) => tracing::debug!(peer, %address, "a peer's connection ended"),
                Err(error) => tracing::warn!(peer, %address, %error, "a peer's connection broke"),
            }
        });
    }
}

/// The acceptor's part of the beginning of a connection: who it is that has proven itself.
async fn welcome(stream: &mut TcpStream, own: &Identity) -> Result<(u64, Tags), Refused> {
    prepare(stream)?;
    let said = read_greeting(stream, own).await?;
    let from = said.from;
    let mut others = own.members.iter().filter(|member| member.replica != own.replica);
    if !others.any(|member| member.replica == from) {
        return Err(Refused::NoPeer { from });
    }
    let answer = own.greeting(from)?;
    stream.write_all(&answer.encode()).await?;
    let link = own.secret.link(&said, &answer);
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await?;
    if !proves(proof, link.dialler) {
        return Err(Refused::NoSecret);
    }
    stream.write_all(link.acceptor.as_bytes()).await?;
    Ok((from, link.tags()))
}

async fn receive(
    stream: TcpStream,
    peer: u64,
    mut tags: Tags,
    own: &Identity,
    connections: &AtomicU64,
) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(READ_BYTES, stream);
    let connection = connections.fetch_add(1, Ordering::Relaxed);
    let ended = |_| io::Error::other("the replica is stopping");
    let (held, mut dropped) = oneshot::channel();
    own.inputs.send(Input::PeerConnected { peer, connection, held }).await.map_err(ended)?;
    loop {
        let body = tokio::select! {
            body = read_frame(&mut stream, &mut tags) => body?,
            _ = &mut dropped => return Ok(()),
        };
        let Some(body) = body else { return Ok(()) };
        own.inputs.send(Input::Peer { peer, connection, body }).await.map_err(ended)?;
    }
}

/// The next frame, or none at the end.
async fn read_frame(
    stream: &mut BufReader<TcpStream>,
    tags: &mut Tags,
) -> io::Result<Option<Bytes>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    match stream.read_exact(&mut header).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    };
    let (length, tag) = header.split_first_chunk().expect("a header has a length");
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_FRAME_BYTES + FRAME_EXTRA_BYTES {
        return Err(io::Error::other(format!("a frame of {length} bytes is too large")));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    if tags.fits(tag.try_into().expect("the rest is the tag"), &body) {
        Ok(Some(body.into()))
    } else {
        Err(io::Error::other("a frame has a wrong tag"))
    }
}

#[cfg(test)]
mod tests;
