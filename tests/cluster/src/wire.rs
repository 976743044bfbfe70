//! A connection without the client library: bytes and messages as they are.

use std::net::SocketAddr;

use gesmas_protocol::{
    AttachSession, BODY_MAX, ClientMessage, FrameDecoder, Hello, OpenSession, ServerMessage,
    VERSION, Welcome,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::wait;

/// A frame with any header.
#[must_use]
pub fn frame(version: u16, kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("the tests' frames are small");
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes), body);
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(body);
    bytes
}

/// See the file's head.
pub struct Wire {
    /// The connection.
    pub stream: TcpStream,
    decoder: FrameDecoder,
}

impl Wire {
    /// Connects and says nothing.
    ///
    /// # Panics
    /// When nobody listens.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the replica listens");
        Self { stream, decoder: FrameDecoder::new(BODY_MAX) }
    }

    /// Connects and greets.
    ///
    /// # Panics
    /// When the server does not greet.
    pub async fn greet(address: SocketAddr) -> (Self, Welcome) {
        let mut wire = Self::connect(address).await;
        wire.send(Hello { versions: vec![VERSION], token: None, client: "wire".into() }).await;
        match wire.receive().await {
            Some(ServerMessage::Welcome(welcome)) => (wire, welcome),
            other => panic!("the server does not greet but says {other:?}"),
        }
    }

    /// Sends a message.
    ///
    /// # Panics
    /// When the connection is broken.
    pub async fn send(&mut self, message: impl Into<ClientMessage>) {
        let mut bytes = Vec::new();
        message.into().append_to(&mut bytes).expect("the tests' messages fit");
        self.send_bytes(&bytes).await;
    }

    /// Sends bytes.
    ///
    /// # Panics
    /// When the connection is broken.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let written = wait::bounded("a write", self.stream.write_all(bytes)).await;
        written.expect("the connection stands");
    }

    /// The next message; none when the server has closed the connection.
    ///
    /// # Panics
    /// When the server says nothing for long, or something that is no message.
    pub async fn receive(&mut self) -> Option<ServerMessage> {
        loop {
            if let Some(frame) = self.decoder.poll().expect("the server sends frames") {
                return Some(ServerMessage::from_frame(&frame).expect("the server sends messages"));
            }
            let read = self.stream.read_buf(self.decoder.buffer_mut());
            match wait::bounded("a word of the server", read).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next message that is wanted; others are passed over.
    ///
    /// # Panics
    /// When the server closes the connection before.
    pub async fn receive_until<T>(
        &mut self,
        mut wanted: impl FnMut(ServerMessage) -> Option<T>,
    ) -> T {
        loop {
            let message = self.receive().await.expect("the connection stands");
            if let Some(found) = wanted(message) {
                return found;
            }
        }
    }

    /// Opens a session with this timeout, nanoseconds.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn open_session(&mut self, nonce: u128, timeout_ns: u64) -> u64 {
        self.send(OpenSession { correlation: 1, nonce, timeout_ns }).await;
        self.receive_until(|message| match message {
            ServerMessage::SessionOpened(opened) => Some(opened.session),
            ServerMessage::SessionRefused(refused) => panic!("no session: {refused:?}"),
            _ => None,
        })
        .await
    }

    /// Attaches a session.
    ///
    /// # Panics
    /// When it is over.
    pub async fn attach_session(&mut self, session: u64) {
        let (seen, acknowledged) = (Default::default(), Default::default());
        self.send(AttachSession { session, seen, acknowledged, answered: 0 }).await;
        self.receive_until(|message| match message {
            ServerMessage::SessionAttached(_) => Some(()),
            ServerMessage::SessionOver(over) => panic!("the session is over: {over:?}"),
            _ => None,
        })
        .await;
    }
}
