//! One session with ZooKeeper on one connection, asynchronous: any number of requests may be under way.
//!
//! ZooKeeper answers in the order of the requests, so that whoever waits first is answered first. A
//! watch that fires wakes everybody here who watches that path.
//! Invariant: bytes that are written are counted, for the figures of bytes for each operation.
//! Not here: reconnection. A connection that breaks fails what waits, and with it the measurement.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::BufMut as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, oneshot},
    task::JoinHandle,
};

use super::wire::{self, Kind, Mode, Refusal};
use crate::systems::counted::Count;

/// Time after which a session ends whose client is not heard of.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ZooKeeperError {
    #[error("ZooKeeper refuses: {0}")]
    Refused(#[from] Refusal),
    #[error("the connection to ZooKeeper broke")]
    Broken,
    #[error(transparent)]
    Short(#[from] wire::Short),
    #[error("ZooKeeper cannot be reached: {0}")]
    Io(#[from] io::Error),
}

type Answer = Result<Vec<u8>, Refusal>;

#[derive(Default)]
struct Waiting {
    /// Requests under way, in order; broken when there are none any more.
    replies: VecDeque<oneshot::Sender<Answer>>,
    watches: BTreeMap<String, Vec<oneshot::Sender<()>>>,
    /// Bytes to be written.
    out: Vec<u8>,
    number: i32,
    broken: bool,
}

struct Shared {
    waiting: Mutex<Waiting>,
    /// There are bytes to be written.
    ready: Notify,
    written: Count,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection is no more: nobody waits for it any longer.
    fn break_off(&self) {
        let mut waiting = self.waiting();
        waiting.broken = true;
        waiting.replies.clear();
        waiting.watches.clear();
    }
}

/// See the file's head.
pub(crate) struct Client {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 3],
}

impl Drop for Client {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Client {
    /// Opens a session.
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, ZooKeeperError> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let timeout = i32::try_from(TIMEOUT.as_millis()).expect("it is short");
        let body = wire::connect(timeout);
        let mut packet = Vec::new();
        wire::put_bytes(&mut packet, &body);
        stream.write_all(&packet).await?;
        let length = stream.read_i32().await?;
        let mut reply = vec![0; usize::try_from(length).map_err(|_| wire::Short)?];
        stream.read_exact(&mut reply).await?;
        let (reader, writer) = stream.into_split();
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            ready: Notify::new(),
            written: Count::default(),
        });
        let tasks = [
            tokio::spawn(read(BufReader::new(reader), shared.clone())),
            tokio::spawn(write(writer, shared.clone())),
            tokio::spawn(ping(shared.clone())),
        ];
        Ok(Self { shared, tasks })
    }

    /// Makes a node and returns its path, which has a number at its end if the mode says so.
    pub(crate) async fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: Mode,
    ) -> Result<String, ZooKeeperError> {
        let reply = self.ask(Kind::Create, &wire::create(path, data, mode), None).await?;
        Ok(wire::text(&mut &reply[..])?)
    }

    /// Removes a node, whatever its version.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), ZooKeeperError> {
        self.ask(Kind::Delete, &wire::delete(path, -1), None).await.map(drop)
    }

    /// Content and version of a node.
    pub(crate) async fn get_data(&self, path: &str) -> Result<(Vec<u8>, i32), ZooKeeperError> {
        let reply = self.ask(Kind::GetData, &wire::watched(path, false), None).await?;
        let mut rest = &reply[..];
        let data = wire::bytes(&mut rest)?.to_vec();
        Ok((data, wire::version(&mut rest)?))
    }

    /// Writes a node of this version, or of any with -1, and returns its new version.
    pub(crate) async fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: i32,
    ) -> Result<i32, ZooKeeperError> {
        let reply = self.ask(Kind::SetData, &wire::set_data(path, data, version), None).await?;
        Ok(wire::version(&mut &reply[..])?)
    }

    /// Names of a node's children.
    pub(crate) async fn children(&self, path: &str) -> Result<Vec<String>, ZooKeeperError> {
        let reply = self.ask(Kind::GetChildren, &wire::watched(path, false), None).await?;
        Ok(wire::texts(&mut &reply[..])?)
    }

    /// Names of a node's children, and what ends when they change.
    pub(crate) async fn watch_children(
        &self,
        path: &str,
    ) -> Result<(Vec<String>, oneshot::Receiver<()>), ZooKeeperError> {
        let (sender, changed) = oneshot::channel();
        let watch = Some((path, sender));
        let reply = self.ask(Kind::GetChildren, &wire::watched(path, true), watch).await?;
        Ok((wire::texts(&mut &reply[..])?, changed))
    }

    /// What ends when a node changes or goes; none if there is no such node.
    pub(crate) async fn watch_node(
        &self,
        path: &str,
    ) -> Result<Option<oneshot::Receiver<()>>, ZooKeeperError> {
        let (sender, changed) = oneshot::channel();
        let watch = Some((path, sender));
        match self.ask(Kind::Exists, &wire::watched(path, true), watch).await {
            Ok(_) => Ok(Some(changed)),
            Err(ZooKeeperError::Refused(Refusal::NoNode)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until this connection's server knows what was written before.
    pub(crate) async fn sync(&self, path: &str) -> Result<(), ZooKeeperError> {
        self.ask(Kind::Sync, &wire::path(path), None).await.map(drop)
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.shared.written.get()
    }

    async fn ask(
        &self,
        kind: Kind,
        body: &[u8],
        watch: Option<(&str, oneshot::Sender<()>)>,
    ) -> Result<Vec<u8>, ZooKeeperError> {
        let (sender, reply) = oneshot::channel();
        {
            let mut waiting = self.shared.waiting();
            if waiting.broken {
                return Err(ZooKeeperError::Broken);
            }
            if let Some((path, changed)) = watch {
                // It may fire before the reply comes.
                waiting.watches.entry(path.to_owned()).or_default().push(changed);
            }
            waiting.number += 1;
            let number = waiting.number;
            waiting.replies.push_back(sender);
            put_request(&mut waiting.out, number, kind, body);
        }
        self.shared.ready.notify_one();
        Ok(reply.await.map_err(|_| ZooKeeperError::Broken)??)
    }
}

fn put_request(out: &mut Vec<u8>, number: i32, kind: Kind, body: &[u8]) {
    out.put_i32(i32::try_from(8 + body.len()).expect("requests are small"));
    out.put_i32(number);
    out.put_i32(kind as i32);
    out.put_slice(body);
}

async fn write(mut stream: OwnedWriteHalf, shared: Arc<Shared>) {
    loop {
        shared.ready.notified().await;
        let bytes = std::mem::take(&mut shared.waiting().out);
        shared.written.add(bytes.len());
        if stream.write_all(&bytes).await.is_err() {
            return shared.break_off();
        }
    }
}

async fn ping(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(TIMEOUT / 3).await;
        put_request(&mut shared.waiting().out, wire::PING, Kind::Ping, &[]);
        shared.ready.notify_one();
    }
}

async fn read(mut stream: BufReader<OwnedReadHalf>, shared: Arc<Shared>) {
    while let Ok(packet) = packet(&mut stream).await {
        if take(&packet, &shared).is_err() {
            break;
        }
    }
    shared.break_off();
}

async fn packet(stream: &mut BufReader<OwnedReadHalf>) -> io::Result<Vec<u8>> {
    let length = usize::try_from(stream.read_i32().await?).map_err(io::Error::other)?;
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet).await?;
    Ok(packet)
}

/// Hands a packet to whoever waits for it.
fn take(packet: &[u8], shared: &Shared) -> Result<(), wire::Short> {
    let mut rest = packet;
    let number = wire::int(&mut rest)?;
    wire::long(&mut rest)?;
    let error = wire::int(&mut rest)?;
    match number {
        wire::PING => {}
        wire::WATCH => {
            wire::int(&mut rest)?;
            wire::int(&mut rest)?;
            let path = wire::text(&mut rest)?;
            let woken = shared.waiting().watches.remove(&path);
            // Who watched may be gone.
            for watch in woken.into_iter().flatten() {
                let _gone = watch.send(());
            }
        }
        _ => {
            let waits = shared.waiting().replies.pop_front();
            let answer = Refusal::of(error).map_or_else(|| Ok(rest.to_vec()), Err);
            if let Some(waits) = waits {
                // Who asked may be gone.
                drop(waits.send(answer));
            }
        }
    }
    Ok(())
}
