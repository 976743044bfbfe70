//! Connections of clients: frames in, frames out.
//!
//! The first message is `Hello`; everything after it goes to the driver as it comes. A frame or
//! message that breaks the protocol gets a typed error with an id and ends its connection only.
//! Invariant: a connection ends when either side of it does: when the client closes it or breaks the
//! protocol, when the driver has dropped it and what was meant for it is written, or when the client
//! takes nothing of that for long. So many exist at once (`crate::door`); one over is told so and closed.
//! Not here: what messages mean (`driver.rs`).

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gesmas_protocol::{
    BODY_MAX, ClientMessage, ErrorCode, ErrorMessage, FrameDecoder, FrameError, Hello,
    ServerMessage, VERSION, Welcome,
};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf},
    sync::mpsc,
};

use super::{
    errors,
    input::{ConnectionId, Input},
    outbox::{self, Last, Outbox},
};
use crate::door::{Door, Guest};

/// A client that has not said `Hello` by then is cut off.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// A client that takes no byte for this long is not waited for.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// What all connections share.
pub(super) struct Clients {
    pub(super) inputs: mpsc::Sender<Input>,
    pub(super) welcome: Welcome,
    /// Bytes that may wait for one client.
    pub(super) output_bytes: usize,
    door: Door,
    /// When nobody holds this any more, everything is written.
    _writers: mpsc::Sender<()>,
    next: AtomicU64,
}

impl Clients {
    pub(super) fn new(
        inputs: mpsc::Sender<Input>,
        welcome: Welcome,
        output_bytes: usize,
        connections: usize,
        writers: mpsc::Sender<()>,
    ) -> Self {
        let (next, door) = (AtomicU64::new(1), Door::new("clients", connections));
        Self { inputs, welcome, output_bytes, door, _writers: writers, next }
    }
}

/// Accepts clients until the task is dropped. Connections go on after it, until the driver lets go of
/// them and what it said last is written.
pub(super) async fn accept(listener: TcpListener, clients: Arc<Clients>) {
    loop {
        let Guest { stream, address, place } = clients.door.next(&listener).await;
        let Some(place) = place else {
            clients.door.send_away(stream, address, no_room());
            continue;
        };
        let clients = clients.clone();
        tokio::spawn(async move {
            if let Err(error) = connection(stream, &clients).await {
                tracing::debug!(%address, %error, "a client's connection ended");
            }
            drop(place);
        });
    }
}

/// What a client is told for whom there is no room. It has no id, and the log counts such clients only.
fn no_room() -> Vec<u8> {
    let message = "the replica has as many clients as it takes: try another, or later".into();
    let error = ErrorMessage { id: 0, correlation: None, code: ErrorCode::Busy, message };
    let mut bytes = Vec::new();
    append(&ServerMessage::Error(error), &mut bytes);
    bytes
}

async fn connection(stream: TcpStream, clients: &Clients) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let mut reader = Reader::new(reader);
    let (outbox, rest) = outbox::outbox(writer, clients.output_bytes);
    let id = ConnectionId(clients.next.fetch_add(1, Ordering::Relaxed));
    let last = rest.last();
    let write = rest.write(WRITE_PATIENCE);
    tokio::pin!(write);
    tokio::select! {
        result = talk(&mut reader, clients, id, outbox, &last) => {
            // The driver lets go of the connection, and the writer ends when it has written what is
            // left.
            let _gone = clients.inputs.send(Input::ClientGone(id)).await;
            drop(last);
            write.await.and(result)
        }
        written = &mut write => {
            let _gone = clients.inputs.send(Input::ClientGone(id)).await;
            written
        }
    }
}

/// Takes messages in. From the greeting on only the driver holds on to the connection.
async fn talk(
    reader: &mut Reader,
    clients: &Clients,
    id: ConnectionId,
    outbox: Outbox,
    last: &Last,
) -> io::Result<()> {
    let hello = tokio::time::timeout(HELLO_TIMEOUT, reader.next()).await;
    let principal = match hello {
        Err(_) => return Ok(()),
        Ok(Ok(Some(ClientMessage::Hello(hello)))) => match check_hello(&hello) {
            Ok(principal) => principal,
            Err(error) => return refuse(last, ErrorCode::VersionUnsupported, error),
        },
        Ok(Ok(Some(_))) => {
            let error = "the first message must be Hello".into();
            return refuse(last, ErrorCode::Unexpected, error);
        }
        Ok(Ok(None)) => return Ok(()),
        Ok(Err(error)) => return malformed(last, error),
    };
    let welcome = ServerMessage::Welcome(clients.welcome.clone());
    if outbox.add(|bytes| append(&welcome, bytes)).is_err() {
        return Ok(());
    }
    outbox.flush();
    let connected = Input::ClientConnected { connection: id, principal, outbox };
    if clients.inputs.send(connected).await.is_err() {
        return Ok(());
    }
    loop {
        match reader.next().await {
            Ok(Some(ClientMessage::Hello(_))) => {
                return refuse(last, ErrorCode::Unexpected, "Hello is said once".into());
            }
            Ok(Some(message)) => {
                if clients.inputs.send(Input::Client(id, message)).await.is_err() {
                    return Ok(());
                }
            }
            Ok(None) => return Ok(()),
            Err(error) => return malformed(last, error),
        }
    }
}

/// Who the client is, if it speaks this version.
fn check_hello(hello: &Hello) -> Result<String, String> {
    if hello.versions.contains(&VERSION) {
        Ok(principal(&hello.client))
    } else {
        Err(format!("this server speaks version {VERSION} of the protocol only"))
    }
}

/// Who a client is. What follows a slash or a space in its name is a version, as HTTP writes it: a session
/// is found again by its key after its client was brought up to date.
fn principal(client: &str) -> String {
    let name = client.split(['/', ' ']).next().unwrap_or_default();
    format!("client:{}", printable(name))
}

/// A name that is safe to log and to show.
fn printable(name: &str) -> String {
    name.chars().filter(|char| char.is_ascii_graphic()).take(64).collect()
}

fn malformed(last: &Last, error: ReadError) -> io::Result<()> {
    match error {
        ReadError::Frame(error) => {
            let code = match error {
                FrameError::TooLarge { .. } => ErrorCode::TooLarge,
                FrameError::UnknownVersion { .. } => ErrorCode::VersionUnsupported,
                _ => ErrorCode::Malformed,
            };
            refuse(last, code, error.to_string())
        }
        ReadError::Io(error) => Err(error),
    }
}

/// Tells the client what it did wrong; its connection ends. One that the driver has dropped meanwhile
/// is not told.
fn refuse(last: &Last, code: ErrorCode, message: String) -> io::Result<()> {
    let error = errors::message(None, code, message);
    last.add(|bytes| append(&ServerMessage::Error(error), bytes));
    Ok(())
}

/// Why no message came.
enum ReadError {
    Frame(FrameError),
    Io(io::Error),
}

struct Reader {
    stream: OwnedReadHalf,
    decoder: FrameDecoder,
}

impl Reader {
    fn new(stream: OwnedReadHalf) -> Self {
        Self { stream, decoder: FrameDecoder::new(BODY_MAX) }
    }

    /// The next message; none when the client has closed.
    async fn next(&mut self) -> Result<Option<ClientMessage>, ReadError> {
        loop {
            if let Some(frame) = self.decoder.poll().map_err(ReadError::Frame)? {
                return ClientMessage::from_frame(&frame).map(Some).map_err(ReadError::Frame);
            }
            let read = self.stream.read_buf(self.decoder.buffer_mut()).await;
            if read.map_err(ReadError::Io)? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Appends a message.
pub(super) fn append(message: &ServerMessage, bytes: &mut Vec<u8>) {
    if let Err(error) = message.append_to(bytes) {
        // Limits of results keep messages below this; an operator's list may exceed it.
        let text = format!("the answer does not fit into a frame: {error}");
        let correlation = match message {
            ServerMessage::AdminAnswer(answer) => Some(answer.correlation),
            _ => None,
        };
        let error = errors::message(correlation, ErrorCode::TooLarge, text);
        let appended = ServerMessage::Error(error).append_to(bytes);
        appended.expect("an error message fits into a frame");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_has_no_version_and_is_safe_to_show() {
        for client in ["desk", "desk/1.2.0", "desk/1.3.0-rc (linux)", "desk 1.2.0", "de\u{1b}sk"] {
            assert_eq!(principal(client), "client:desk", "{client}");
        }
        assert_ne!(principal("desk"), principal("hall"));
        assert_eq!(principal(&"x".repeat(100)).len(), "client:".len() + 64);
    }

    #[test]
    fn who_finds_no_room_is_told_so() {
        let mut decoder = FrameDecoder::new(BODY_MAX);
        decoder.buffer_mut().extend_from_slice(&no_room());
        let frame = decoder.poll().expect("it is a frame").expect("all of it is there");
        let message = ServerMessage::from_frame(&frame).expect("it is a message");
        let ServerMessage::Error(error) = message else { panic!("{message:?}") };
        assert_eq!(error.code, ErrorCode::Busy);
    }
}
