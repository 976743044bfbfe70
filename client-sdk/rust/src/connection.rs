//! One connection: greeting, bytes in, bytes out.
//!
//! Invariant: reading and writing go on at the same time, so that a server that waits for us to read
//! is never waited for to read.
//! Not here: what the messages mean (`hub.rs`) and when to connect (`driver.rs`).

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gesmas_protocol::{
    BODY_MAX, ClientMessage, FrameDecoder, Hello, ServerMessage, VERSION, Welcome,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::failure::ConnectError;

/// How long one endpoint may take to accept a connection and to greet.
const GREETING_PATIENCE: Duration = Duration::from_secs(2);
/// How many bytes wait to be written before no more requests are turned into bytes.
pub(crate) const UNWRITTEN_MAX: usize = 1 << 20;
/// Room for one read: many replies arrive at once, and each read is a system call.
const READ_ROOM: usize = 64 << 10;

/// A greeted connection.
#[derive(Debug)]
pub(crate) struct Connection {
    endpoint: String,
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    decoder: FrameDecoder,
    unwritten: Vec<u8>,
    written: usize,
    /// Bytes that the client has sent in all, on this connection and those before it.
    sent: Arc<AtomicU64>,
}

impl Connection {
    /// Connects and greets.
    pub(crate) async fn open(
        endpoint: String,
        token: Option<String>,
        client: String,
        sent: Arc<AtomicU64>,
    ) -> Result<(Self, Welcome), ConnectError> {
        let greeting = Self::greet(endpoint.clone(), token, client, sent);
        match tokio::time::timeout(GREETING_PATIENCE, greeting).await {
            Ok(result) => result,
            Err(_) => {
                Err(ConnectError::Network { endpoint, error: io::ErrorKind::TimedOut.into() })
            }
        }
    }

    async fn greet(
        endpoint: String,
        token: Option<String>,
        client: String,
        sent: Arc<AtomicU64>,
    ) -> Result<(Self, Welcome), ConnectError> {
        let network = |error| ConnectError::Network { endpoint: endpoint.clone(), error };
        let stream = TcpStream::connect(endpoint.as_str()).await.map_err(network)?;
        // Frames are batched here; waiting for more would only delay them.
        stream.set_nodelay(true).map_err(network)?;
        let (reader, writer) = stream.into_split();
        let mut connection = Self {
            endpoint: endpoint.clone(),
            reader,
            writer,
            decoder: FrameDecoder::new(BODY_MAX),
            unwritten: Vec::new(),
            written: 0,
            sent,
        };
        let hello = Hello { versions: vec![VERSION], token, client };
        ClientMessage::Hello(hello)
            .append_to(&mut connection.unwritten)
            .map_err(|error| ConnectError::Protocol { endpoint: endpoint.clone(), error })?;
        loop {
            match connection.next_message()? {
                Some(ServerMessage::Welcome(welcome)) => return Ok((connection, welcome)),
                Some(ServerMessage::Error(error)) => {
                    return Err(ConnectError::Rejected { endpoint, error });
                }
                Some(_) => return Err(ConnectError::NoWelcome { endpoint }),
                None => connection.turn().await.map_err(network)?,
            }
        }
    }

    /// Who is at the other end.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The next message that has arrived.
    pub(crate) fn next_message(&mut self) -> Result<Option<ServerMessage>, ConnectError> {
        let frame = self.decoder.poll();
        let message =
            frame.and_then(|frame| frame.as_ref().map(ServerMessage::from_frame).transpose());
        message.map_err(|error| ConnectError::Protocol { endpoint: self.endpoint.clone(), error })
    }

    /// Where to append what is to be written.
    pub(crate) const fn output(&mut self) -> &mut Vec<u8> {
        &mut self.unwritten
    }

    /// How many bytes wait to be written.
    pub(crate) const fn backlog(&self) -> usize {
        self.unwritten.len() - self.written
    }

    /// Reads some bytes or writes some, whichever is possible first. Cancel safe.
    pub(crate) async fn turn(&mut self) -> io::Result<()> {
        let buffer = self.decoder.buffer_mut();
        if buffer.capacity() - buffer.len() < READ_ROOM / 4 {
            buffer.reserve(READ_ROOM);
        }
        let unwritten = &self.unwritten[self.written..];
        let written = tokio::select! {
            read = self.reader.read_buf(self.decoder.buffer_mut()) => {
                return match read? {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    _ => Ok(()),
                };
            }
            written = self.writer.write(unwritten), if !unwritten.is_empty() => written?,
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written += written;
        self.sent.fetch_add(written as u64, Ordering::Relaxed);
        if self.written == self.unwritten.len() {
            self.unwritten.clear();
            self.written = 0;
        } else if self.written >= UNWRITTEN_MAX {
            self.unwritten.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }
}
