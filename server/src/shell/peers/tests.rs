//! Links between replicas on real sockets: peers that know the secret, and strangers.

use std::path::PathBuf;

use tokio::task::JoinHandle;

use super::*;

const CLUSTER: u128 = 0x7e57;
const PATIENCE: Duration = Duration::from_secs(30);

/// A secret of this text, or none.
fn secret(text: Option<&str>) -> Secret {
    let Some(text) = text else { return Secret::none() };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path: PathBuf = folder.path().join("secret");
    std::fs::write(&path, format!("a secret that says {text}")).expect("it can be written");
    Secret::read(&path).expect("it is long enough")
}

fn identity(replica: u64, text: Option<&str>) -> (Identity, mpsc::Receiver<Input>) {
    let (inputs, receiver) = mpsc::channel(1_000);
    let members = (1..=3).map(|replica| Member { replica, peers: ([127, 0, 0, 1], 1).into() });
    let members = members.collect();
    let (cluster, output_bytes, secret) = (CLUSTER, 1 << 20, secret(text));
    (Identity { cluster, replica, members, secret, output_bytes, inputs }, receiver)
}

/// Replica 1, which listens for peers that know the secret.
struct Listening {
    address: SocketAddr,
    inputs: mpsc::Receiver<Input>,
    task: JoinHandle<()>,
    /// What holds the connections of peers.
    held: Vec<oneshot::Sender<()>>,
}

impl Listening {
    async fn start() -> Self {
        let (own, inputs) = identity(1, Some("open"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        let task = tokio::spawn(accept(listener, own));
        Self { address, inputs, task, held: Vec::new() }
    }

    /// A connection that has begun as replica 2 of the cluster begins one.
    async fn begin(&self) -> (TcpStream, Tags) {
        let (own, _inputs) = identity(2, Some("open"));
        connect(&own, 1, self.address).await.expect("it knows the secret")
    }

    async fn input(&mut self) -> Input {
        let input = tokio::time::timeout(PATIENCE, self.inputs.recv()).await;
        input.expect("it comes soon").expect("the task runs")
    }

    /// The body of the next frame that reached the core.
    async fn frame(&mut self) -> Bytes {
        loop {
            match self.input().await {
                Input::Peer { peer, body, .. } => {
                    assert_eq!(peer, 2);
                    return body;
                }
                Input::PeerConnected { held, .. } => self.held.push(held),
                _ => panic!("nothing else comes of a link"),
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether the other side ends a connection, whatever it says before.
async fn is_ended(stream: &mut TcpStream) {
    let mut bytes = [0; 1_024];
    let ended = async { while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("it is ended");
}

fn greeting(from: u64, to: u64) -> Greeting {
    Greeting { cluster: CLUSTER, from, to, nonce: [7; NONCE_BYTES] }
}

#[tokio::test]
async fn the_frames_of_a_peer_arrive() {
    let mut listening = Listening::start().await;
    let (own, mut inputs) = identity(2, Some("open"));
    let dialling = tokio::spawn(dial(own, 1, listening.address));
    let Some(Input::PeerUp { peer: 1, outbox, mut tags }) = inputs.recv().await else {
        panic!("the link stands");
    };
    let Input::PeerConnected { peer: 2, held, .. } = listening.input().await else {
        panic!("a peer has connected");
    };
    let bodies = [&b"first"[..], b"", &[9; 300_000]];
    for body in bodies {
        outbox.add(|bytes| tags.append(body, bytes)).expect("there is room");
        outbox.flush();
    }
    for body in bodies {
        assert!(listening.frame().await == body, "a body of {} bytes", body.len());
    }
    drop(held);
    let up = tokio::time::timeout(PATIENCE, inputs.recv()).await.expect("it is dialled again");
    assert!(matches!(up, Some(Input::PeerUp { .. })));
    dialling.abort();
}

/// A stranger knows the cluster, its members and the protocol, and has heard a connection begin.
#[tokio::test]
async fn nothing_that_a_stranger_says_reaches_the_core() {
    let mut listening = Listening::start().await;
    for text in [None, Some("sesame")] {
        let (own, _inputs) = identity(2, text);
        let refused = connect(&own, 1, listening.address).await;
        assert!(matches!(refused, Err(Refused::NotBelieved)), "{:?}", refused.err());
    }
    let other = Greeting { cluster: 8, ..greeting(2, 1) };
    for said in [other, greeting(1, 1), greeting(9, 1), greeting(2, 3)] {
        let mut stream = TcpStream::connect(listening.address).await.expect("it listens");
        stream.write_all(&said.encode()).await.expect("it is connected");
        is_ended(&mut stream).await;
    }
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 2 * GREETING_BYTES]] {
        let mut stream = TcpStream::connect(listening.address).await.expect("it listens");
        stream.write_all(bytes).await.expect("it is connected");
        // The first one is too short for a greeting.
        stream.shutdown().await.expect("it is connected");
        is_ended(&mut stream).await;
    }
    assert!(listening.inputs.try_recv().is_err(), "the core has heard of nobody");
    // It still takes a peer.
    let (mut stream, mut tags) = listening.begin().await;
    let mut bytes = Vec::new();
    tags.append(b"frame", &mut bytes);
    stream.write_all(&bytes).await.expect("it is connected");
    assert_eq!(listening.frame().await, &b"frame"[..]);
}

/// What a peer has said once is said again, to the byte, on another connection.
#[tokio::test]
async fn what_was_recorded_proves_nothing() {
    let mut listening = Listening::start().await;
    // A relay that records what a peer says until it has proven itself, and some frames.
    let relay = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
    let address = relay.local_addr().expect("it is bound");
    let (own, _inputs) = identity(2, Some("open"));
    let peer = tokio::spawn(async move {
        let (mut stream, mut tags) = connect(&own, 1, address).await.expect("it is relayed");
        let mut bytes = Vec::new();
        tags.append(b"recorded", &mut bytes);
        stream.write_all(&bytes).await.expect("it is connected");
        stream
    });
    let mut near = relay.accept().await.expect("it dials").0;
    let mut far = TcpStream::connect(listening.address).await.expect("it listens");
    let said = GREETING_BYTES + PROOF_BYTES + FRAME_HEADER_BYTES + b"recorded".len();
    let mut recorded = Vec::new();
    while recorded.len() < said {
        let (mut there, mut back) = ([0; 512], [0; 512]);
        tokio::select! {
            read = near.read(&mut there) => {
                let bytes = &there[..read.expect("it is connected")];
                recorded.extend_from_slice(bytes);
                far.write_all(bytes).await.expect("it is connected");
            }
            read = far.read(&mut back) => {
                let bytes = &back[..read.expect("it is connected")];
                near.write_all(bytes).await.expect("it is connected");
            }
        }
    }
    assert_eq!(listening.frame().await, &b"recorded"[..], "a relay changes nothing");
    let mut again = TcpStream::connect(listening.address).await.expect("it listens");
    again.write_all(&recorded).await.expect("it is connected");
    is_ended(&mut again).await;
    assert!(listening.inputs.try_recv().is_err(), "the core has heard nothing more");
    drop(peer);
}

/// Somebody listens at a peer's address, and has what the dialler says to say it back.
#[tokio::test]
async fn a_false_acceptor_gets_no_frames() {
    let false_acceptor = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
    let address = false_acceptor.local_addr().expect("it is bound");
    let (own, _inputs) = identity(2, Some("open"));
    let dialling = tokio::spawn(async move { connect(&own, 1, address).await.err() });
    let mut stream = false_acceptor.accept().await.expect("it dials").0;
    let mut said = [0; GREETING_BYTES];
    stream.read_exact(&mut said).await.expect("it greets");
    let said = Greeting::decode(&said).expect("it is a greeting");
    let answer = Greeting { from: 1, to: 2, ..said };
    stream.write_all(&answer.encode()).await.expect("it is connected");
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await.expect("it proves itself");
    stream.write_all(&proof).await.expect("it is connected");
    let refused = dialling.await.expect("it does not panic");
    assert!(matches!(refused, Some(Refused::NoSecret)), "{refused:?}");
}

#[tokio::test]
async fn a_frame_that_is_repeated_or_changed_ends_its_connection() {
    let mut listening = Listening::start().await;
    for change in [|_: &mut Vec<u8>| {}, |bytes: &mut Vec<u8>| bytes[FRAME_HEADER_BYTES] ^= 1] {
        let (mut stream, mut tags) = listening.begin().await;
        let mut bytes = Vec::new();
        tags.append(b"frame", &mut bytes);
        stream.write_all(&bytes).await.expect("it is connected");
        assert_eq!(listening.frame().await, &b"frame"[..]);
        change(&mut bytes);
        stream.write_all(&bytes).await.expect("it is connected");
        is_ended(&mut stream).await;
        let others = std::iter::from_fn(|| listening.inputs.try_recv().ok());
        assert!(others.into_iter().all(|input| !matches!(input, Input::Peer { .. })));
    }
}

#[tokio::test]
async fn silent_strangers_make_room_for_a_peer() {
    let mut listening = Listening::start().await;
    let mut strangers = Vec::new();
    for _ in 0..3 * crate::shell::vestibule::WAITING {
        strangers.push(TcpStream::connect(listening.address).await.expect("it listens"));
    }
    let (_stream, _tags) = listening.begin().await;
    assert!(matches!(listening.input().await, Input::PeerConnected { peer: 2, .. }));
    is_ended(&mut strangers[0]).await;
}
