//! Connections between replicas.
//!
//! Each replica dials every other and sends through the connection it dialled; it receives through
//! those it accepted. So a link has one direction, in which frames keep their order. When a
//! connection is made anew, both ends tell the core, before anything of it counts, since frames may
//! have been lost.
//! The core hears when a peer's process is gone: its host answers, and nobody listens.
//! A frame is length (4), CRC32C of the body (4), body. A connection begins with a greeting that
//! names cluster, format, sender and receiver.
//! Not here: what frames hold (`replica/peer.rs`).

use std::{
    io,
    net::SocketAddr,
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
    input::Input,
    outbox::{self, Rest},
};
use crate::paxos::MAX_FRAME_BYTES;

/// Format of greetings and frames.
const FORMAT: u32 = 1;
const MAGIC: [u8; 8] = *b"gesmaspr";
/// Magic, format, cluster, sender, receiver.
const GREETING_BYTES: usize = 8 + 4 + 16 + 8 + 8;
const FRAME_HEADER_BYTES: usize = 8;
/// A peer that has not greeted by then is given up.
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
    pub(super) members: Vec<u64>,
    /// Bytes that may wait for one peer.
    pub(super) output_bytes: usize,
    pub(super) inputs: mpsc::Sender<Input>,
}

fn greeting(cluster: u128, from: u64, to: u64) -> [u8; GREETING_BYTES] {
    let mut bytes = Vec::with_capacity(GREETING_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&cluster.to_le_bytes());
    bytes.extend_from_slice(&from.to_le_bytes());
    bytes.extend_from_slice(&to.to_le_bytes());
    bytes.try_into().expect("the parts have this length")
}

/// Keeps a connection to a peer until the task is dropped.
pub(super) async fn dial(own: Identity, peer: u64, address: SocketAddr) {
    // Whether the driver knows that nobody listens there.
    let mut told = false;
    loop {
        let mut pause = REDIAL;
        match connect(&own, peer, address).await {
            Ok(stream) => {
                told = false;
                let (reader, writer) = stream.into_split();
                let (outbox, rest) = outbox::outbox(writer, own.output_bytes);
                if own.inputs.send(Input::PeerUp { peer, outbox }).await.is_err() {
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
                tracing::debug!(peer, %error, "a peer cannot be reached");
                let gone = error.kind() == io::ErrorKind::ConnectionRefused && !told;
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

async fn connect(own: &Identity, peer: u64, address: SocketAddr) -> io::Result<TcpStream> {
    let attempt = async {
        let mut stream = TcpStream::connect(address).await?;
        prepare(&stream)?;
        stream.write_all(&greeting(own.cluster, own.replica, peer)).await?;
        let mut accepted = [0; GREETING_BYTES];
        stream.read_exact(&mut accepted).await?;
        if accepted == greeting(own.cluster, peer, own.replica) {
            Ok(stream)
        } else {
            Err(io::Error::other("another cluster or replica answers there"))
        }
    };
    tokio::time::timeout(DIAL_TIMEOUT, attempt).await?
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

/// Appends a frame.
pub(super) fn append(body: &Bytes, bytes: &mut Vec<u8>) {
    let length = u32::try_from(body.len()).expect("frames are smaller than their limit");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    bytes.extend_from_slice(body);
}

/// Accepts peers until the task is dropped.
pub(super) async fn accept(listener: TcpListener, own: Identity) {
    let connections = Arc::new(AtomicU64::new(1));
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
        tasks.spawn(async move {
            match receive(stream, &own, &connections).await {
                Ok(()) => tracing::debug!(%address, "a peer's connection ended"),
                Err(error) => tracing::warn!(%address, %error, "a peer's connection broke"),
            }
        });
    }
}

async fn receive(stream: TcpStream, own: &Identity, connections: &AtomicU64) -> io::Result<()> {
    prepare(&stream)?;
    let mut stream = BufReader::with_capacity(READ_BYTES, stream);
    let welcomed = tokio::time::timeout(GREETING_TIMEOUT, welcome(&mut stream, own)).await?;
    let peer = welcomed?;
    let connection = connections.fetch_add(1, Ordering::Relaxed);
    let ended = |_| io::Error::other("the replica is stopping");
    let (held, mut dropped) = oneshot::channel();
    own.inputs.send(Input::PeerConnected { peer, connection, held }).await.map_err(ended)?;
    loop {
        let body = tokio::select! {
            body = read_frame(&mut stream) => body?,
            _ = &mut dropped => return Ok(()),
        };
        let Some(body) = body else { return Ok(()) };
        own.inputs.send(Input::Peer { peer, connection, body }).await.map_err(ended)?;
    }
}

/// The next frame, or none at the end.
async fn read_frame(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Bytes>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    match stream.read_exact(&mut header).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    };
    read_body(stream, header).await.map(Some)
}

/// Checks the greeting and answers it.
async fn welcome(stream: &mut BufReader<TcpStream>, own: &Identity) -> io::Result<u64> {
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes).await?;
    let known = |peer: &&u64| bytes == greeting(own.cluster, **peer, own.replica);
    let peer = own.members.iter().filter(|peer| **peer != own.replica).find(known);
    let peer = *peer.ok_or_else(|| io::Error::other("it is no member of this cluster"))?;
    stream.write_all(&greeting(own.cluster, own.replica, peer)).await?;
    Ok(peer)
}

async fn read_body(
    stream: &mut BufReader<TcpStream>,
    header: [u8; FRAME_HEADER_BYTES],
) -> io::Result<Bytes> {
    let number = |at: usize| {
        u32::from_le_bytes(*header[at..].first_chunk().expect("a header has two numbers"))
    };
    let (length, checksum) = (number(0) as usize, number(4));
    if length > MAX_FRAME_BYTES + FRAME_HEADER_BYTES {
        return Err(io::Error::other(format!("a frame of {length} bytes is too large")));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    if crc32c::crc32c(&body) == checksum {
        Ok(body.into())
    } else {
        Err(io::Error::other("a frame has a wrong checksum"))
    }
}
