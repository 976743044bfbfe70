//! Connections that take places and say nothing: they take no file that a replica needs, nobody waits for
//! them for ever, and there is room again when they are gone.

use std::net::SocketAddr;

use gesmas_client::protocol::{
    ClientMessage, CloseSession, ErrorCode, Hello, KeepAlive, ServerMessage, VERSION,
};
use gesmas_cluster_tests::{Cluster, Http, Setup, Wire, wait};
use gesmas_queue::QueueStub;
use reqwest::Method;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// What a process may have open if nobody says otherwise.
const DESCRIPTORS: u64 = 1_024;
/// More connections than that, to each port.
const IDLE: usize = 1_200;

/// Lets this process have as many files open as it may.
fn raise_own_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    raised.expect("the limit may be raised to its maximum");
    assert!(maximum.is_none_or(|most| most > 3 * IDLE as u64), "the test needs many descriptors");
}

/// Connections that say this and no more.
async fn idle(address: SocketAddr, words: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        let mut stream = wait::bounded("a connection", TcpStream::connect(address)).await;
        if let Ok(stream) = &mut stream {
            // One that is sent away may be closed by now.
            let _closed = stream.write_all(words).await;
        }
        streams.extend(stream);
    }
    streams
}

/// What the server says until it closes.
async fn last_words(mut stream: TcpStream) -> Vec<u8> {
    let mut words = Vec::new();
    // One that is cut off has had its words.
    let _cut = wait::bounded("the end of a connection", stream.read_to_end(&mut words)).await;
    words
}

fn hello() -> Vec<u8> {
    let hello = Hello { versions: vec![VERSION], token: None, client: "idle".into() };
    let mut bytes = Vec::new();
    ClientMessage::Hello(hello).append_to(&mut bytes).expect("it fits");
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_idle_connections_than_descriptors_take_none_that_a_replica_needs() {
    raise_own_limit();
    let (log_file_mib, descriptors) = (Some(1), Some(DESCRIPTORS));
    let cluster = Cluster::set_up(Setup { log_file_mib, descriptors, ..Setup::default() }).await;
    assert!(cluster.logged(0).contains("fewer are let in"), "the replica says what it does");
    let here = cluster.session_of(0).await;
    let elsewhere = cluster.session_of(1).await;
    let queue = QueueStub::new(elsewhere, "filled");
    queue.create(1_000).await.expect("the queue is created");
    let clients = idle(cluster.address(0), &hello()).await;
    let http = idle(cluster.http_address(0), b"GET /readyz HTTP/1.1\r\n").await;

    // Whoever came last finds no room, and is told so.
    let mut late = Wire::connect(cluster.address(0)).await;
    let Some(ServerMessage::Error(error)) = late.receive().await else { panic!("it is told") };
    assert_eq!(error.code, ErrorCode::Busy);
    assert_eq!(late.receive().await, None);
    let late = TcpStream::connect(cluster.http_address(0)).await.expect("it listens");
    let words = last_words(late).await;
    assert!(words.starts_with(b"HTTP/1.1 503 "), "{}", String::from_utf8_lossy(&words));

    // Each of these files has to be made, on the crowded replica too.
    let first = cluster.look(0).await.counter("log_syncs");
    for _ in 0..60 {
        queue.produce(vec![7; 200_000].into()).await.expect("an unrelated client is served");
    }
    QueueStub::new(here, "filled").consume().await.expect("so is one that was there before");
    cluster.caught_up(0).await;
    assert!(cluster.look(0).await.counter("log_syncs") > first);
    assert_eq!(cluster.look(0).await.counter("standstills"), 0, "it never lacked a descriptor");

    drop((clients, http));
    let answer = wait::until_some("that there is room again over HTTP", || async {
        let http = Http::new(cluster.http_address(0));
        let answer = http.try_send(Method::GET, "/readyz", &Value::Null).await;
        answer.filter(|answer| answer.status == 200)
    });
    assert_eq!(answer.await.body["status"], "ready");
    wait::until("that there is room again for clients", || async {
        let mut wire = Wire::connect(cluster.address(0)).await;
        wire.send(Hello { versions: vec![VERSION], token: None, client: "new".into() }).await;
        matches!(wire.receive().await, Some(ServerMessage::Welcome(_)))
    })
    .await;
    cluster.assert_equal().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_nothing_for_long_is_not_waited_for() {
    let (settings, http) = ("[queues]\nidle_ms = 400", "idle_ms = 400");
    let cluster = Cluster::set_up(Setup { settings, http, ..Setup::default() }).await;
    let address = cluster.http_address(0);
    for words in [&b""[..], b"GET /readyz HTTP/1.1\r\n", b"GET /readyz HTTP/1.1\r\nHost: x\r\nX: "]
    {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(words).await.expect("it is connected");
        last_words(stream).await;
    }
    // A connection that is kept after an answer ends as well, and not before the answer.
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is connected");
    let words = last_words(stream).await;
    assert!(words.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&words));
    // A call that takes longer than that is answered.
    let http = Http::new(address);
    let created = http.send(Method::PUT, "/v1/objects/Queue/empty", json!({ "capacity": 1 })).await;
    assert_eq!(created.status, 204, "{created:?}");
    let waits = http.with("Gesmas-Deadline", "1200ms").call("Queue/empty/consume", json!({})).await;
    assert_eq!(waits.problem(), (504, "cancelled"), "{waits:?}");

    // A client without a session ends, one with a session stays.
    let (mut with, _) = Wire::greet(cluster.address(0)).await;
    let session = with.open_session(7, 60_000_000_000).await;
    let (mut without, _) = Wire::greet(cluster.address(0)).await;
    let Some(ServerMessage::GoingAway(away)) = without.receive().await else {
        panic!("it is told to go");
    };
    assert!(away.reason.contains("idle"), "{away:?}");
    assert_eq!(without.receive().await, None);
    with.send(KeepAlive { session, correlation: 3 }).await;
    with.receive_until(|message| match message {
        ServerMessage::Alive(alive) => {
            assert_eq!(alive.session, session);
            Some(())
        }
        _ => None,
    })
    .await;
}

/// The number of a session that a client made up keeps no place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_made_up_session_keeps_no_place() {
    let cluster = Cluster::set_up(Setup::default()).await;
    let (mut stranger, _) = Wire::greet(cluster.address(0)).await;
    let before = attached(&cluster).await;
    for made_up in 1..50 {
        stranger.send(CloseSession { session: 1 << 60 | made_up }).await;
    }
    for _ in 1..50 {
        stranger
            .receive_until(|message| matches!(message, ServerMessage::SessionOver(_)).then_some(()))
            .await;
    }
    assert_eq!(attached(&cluster).await, before);
}

async fn attached(cluster: &Cluster) -> u64 {
    cluster.look(0).await.counter("sessions_attached")
}
