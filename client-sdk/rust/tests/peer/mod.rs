//! Replicas that are played by a test, word by word.

use std::time::Duration;

use gesmas_client::{
    Client,
    protocol::{
        BODY_MAX, ClientMessage, FrameDecoder, Outcome, Position, Reply, RequestBody,
        ServerMessage, SessionOpened, VERSION, Welcome,
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A replica: where it listens.
pub(crate) struct Replica {
    listener: TcpListener,
    /// Its address.
    pub(crate) endpoint: String,
}

impl Replica {
    /// Listens.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let endpoint = listener.local_addr().expect("it is bound").to_string();
        Self { listener, endpoint }
    }

    /// Takes the next connection and greets.
    pub(crate) async fn accept(&self) -> Peer {
        let (stream, _) = self.listener.accept().await.expect("the client connects");
        let mut peer = Peer { stream, decoder: FrameDecoder::new(BODY_MAX) };
        assert!(matches!(peer.hear().await, ClientMessage::Hello(_)));
        peer.say(Welcome {
            version: VERSION,
            replica: 1,
            cluster: 9,
            frame_bytes: BODY_MAX,
            argument_bytes: 1 << 20,
            module_bytes: 1 << 20,
            requests_per_session: 100,
            session_timeout_max_ns: 1_000_000_000_000,
            server: "script".into(),
        })
        .await;
        peer
    }
}

/// The server's end of a connection.
pub(crate) struct Peer {
    stream: TcpStream,
    decoder: FrameDecoder,
}

impl Peer {
    /// The next message, signs of life apart.
    pub(crate) async fn hear(&mut self) -> ClientMessage {
        loop {
            while let Some(frame) = self.decoder.poll().expect("the client sends frames") {
                match ClientMessage::from_frame(&frame).expect("the client sends messages") {
                    ClientMessage::KeepAlive(_) | ClientMessage::Acknowledge(_) => {}
                    message => return message,
                }
            }
            let mut bytes = [0; 4_096];
            let count = self.stream.read(&mut bytes).await.expect("the client is there");
            assert!(count > 0, "the client hung up");
            self.decoder.push(&bytes[..count]);
        }
    }

    pub(crate) async fn say(&mut self, message: impl Into<ServerMessage>) {
        let mut bytes = Vec::new();
        message.into().append_to(&mut bytes).expect("it fits");
        self.stream.write_all(&bytes).await.expect("the client is there");
    }

    /// Lets a session be opened under a number.
    pub(crate) async fn open(&mut self, session: u64) {
        let message = self.hear().await;
        let ClientMessage::OpenSession(open) = message else { panic!("an opening: {message:?}") };
        let (correlation, timeout_ns) = (open.correlation, open.timeout_ns);
        self.say(SessionOpened { correlation, session, timeout_ns }).await;
    }

    /// Hears a request and gives its session, its number and what it asks for.
    pub(crate) async fn request(&mut self) -> (u64, u64, RequestBody) {
        match self.hear().await {
            ClientMessage::Request(request) => (request.session, request.number, request.body),
            other => panic!("a request: {other:?}"),
        }
    }

    /// Ends a request.
    pub(crate) async fn end(&mut self, session: u64, number: u64, outcome: Outcome) {
        let position = Position { epoch: 0, step: number };
        self.say(Reply { session, number, position, outcome }).await;
    }
}

/// A client of these.
pub(crate) async fn client<const COUNT: usize>(replicas: [&Replica; COUNT]) -> Client {
    let endpoints = replicas.map(|replica| replica.endpoint.clone());
    Client::builder().endpoints(endpoints).connect().await.expect("a replica answers")
}

/// Ends a test that would wait for ever.
pub(crate) async fn bounded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("the test comes to an end")
}
