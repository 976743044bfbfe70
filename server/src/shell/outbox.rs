//! The sending side of a connection.
//!
//! What the socket takes at once is written by whoever sends, without a word to anybody; only what is
//! left over waits for the connection's own task. So a lone message costs no change of tasks, and a
//! frame for a peer is on its way before the log is synced.
//! Invariants: bytes leave in the order in which they were added; nothing waits without bound; what
//! was added before the outbox was dropped is still written, as long as the other side takes it; when
//! the connection's task has ended, nothing is taken any more, and whoever sends can see it.
//! Not here: what is written, and who reads.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{net::tcp::OwnedWriteHalf, sync::Notify};

/// Bytes of room that are kept for the next messages when all is written.
const KEPT_BYTES: usize = 256 << 10;

/// The end of whoever sends. Dropping it ends the connection.
pub(super) struct Outbox(Arc<Line>);

/// The end of the connection's task.
pub(super) struct Rest(Arc<Line>);

/// What can add a last message.
pub(super) struct Last(Arc<Line>);

struct Line {
    stream: OwnedWriteHalf,
    /// Bytes that may wait.
    most: usize,
    waiting: Mutex<Waiting>,
    /// There is something to do for the task.
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// How many of them are written.
    written: usize,
    /// Nothing more will be added.
    closed: bool,
    /// Nobody writes any more.
    ended: bool,
    broken: Option<io::Error>,
}

/// More waits than may, or the connection is over.
#[derive(Debug)]
pub(super) struct Refused;

/// Two ends for a socket on which at most so many bytes wait, or one message.
pub(super) fn outbox(stream: OwnedWriteHalf, most: usize) -> (Outbox, Rest) {
    let (waiting, changed) = (Mutex::default(), Notify::new());
    let line = Arc::new(Line { stream, most, waiting, changed });
    (Outbox(line.clone()), Rest(line))
}

impl Outbox {
    /// Adds what `fill` appends. It is written by [`Outbox::flush`], with what else was added.
    pub(super) fn add(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refused> {
        self.0.add(fill)
    }

    /// Writes what the socket takes.
    pub(super) fn flush(&self) {
        self.0.flush();
    }

    /// Whether the connection's task still runs.
    pub(super) fn is_open(&self) -> bool {
        !self.0.waiting().ended
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.0.flush();
        self.0.waiting().closed = true;
        self.0.changed.notify_one();
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.ended = true;
        // Whoever sends may hold its end for long, and looks only when it has something to say.
        waiting.bytes = Vec::new();
        waiting.written = 0;
    }
}

impl Last {
    /// Adds a last message, if the connection still stands.
    pub(super) fn add(&self, fill: impl FnOnce(&mut Vec<u8>)) {
        if self.0.waiting().closed {
            return;
        }
        // Whoever lets so much wait is not told.
        let _refused = self.0.add(fill);
        self.0.flush();
    }
}

impl Rest {
    /// What can add a last message while another task writes.
    pub(super) fn last(&self) -> Last {
        Last(self.0.clone())
    }

    /// Writes what the socket did not take at once, until the other end is dropped and all is written.
    /// `patience` is how long the other side may take nothing.
    pub(super) async fn write(self, patience: Duration) -> io::Result<()> {
        loop {
            let idle = {
                let mut waiting = self.0.waiting();
                if let Some(error) = waiting.broken.take() {
                    return Err(error);
                }
                let idle = waiting.bytes.is_empty();
                if idle && waiting.closed {
                    return Ok(());
                }
                idle
            };
            if idle {
                self.0.changed.notified().await;
            } else if tokio::time::timeout(patience, self.0.stream.writable()).await.is_err() {
                return Err(io::Error::other("the other side does not read what it is sent"));
            } else {
                self.0.write_some(&mut self.0.waiting());
            }
        }
    }
}

impl Line {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // What a panic left is whole: bytes are added at the end.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refused> {
        let mut waiting = self.waiting();
        if waiting.ended || waiting.bytes.len() - waiting.written > self.most {
            return Err(Refused);
        }
        fill(&mut waiting.bytes);
        Ok(())
    }

    fn flush(&self) {
        let mut waiting = self.waiting();
        self.write_some(&mut waiting);
        if !waiting.bytes.is_empty() || waiting.broken.is_some() {
            self.changed.notify_one();
        }
    }

    /// Writes until all is written or the socket takes no more.
    fn write_some(&self, waiting: &mut Waiting) {
        while waiting.written < waiting.bytes.len() && waiting.broken.is_none() {
            match self.stream.try_write(&waiting.bytes[waiting.written..]) {
                Ok(0) => waiting.broken = Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => waiting.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => waiting.broken = Some(error),
            }
        }
        if waiting.written == waiting.bytes.len() {
            waiting.bytes.clear();
            waiting.bytes.shrink_to(KEPT_BYTES);
            waiting.written = 0;
        } else if waiting.written > self.most {
            waiting.bytes.drain(..waiting.written);
            waiting.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::AsyncReadExt as _,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        let near = TcpStream::connect(address).await.expect("somebody listens");
        (near, listener.accept().await.expect("somebody connects").0)
    }

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn what_is_added_arrives_in_order_and_in_full() {
        let (near, mut far) = pair().await;
        // Far less than is sent, so that room is made again and again while bytes wait.
        let (outbox, rest) = outbox(near.into_split().1, 100_000);
        let task = tokio::spawn(rest.write(PATIENCE));
        let reader = tokio::spawn(async move {
            let mut found = Vec::new();
            far.read_to_end(&mut found).await.map(|_| found)
        });
        let mut expected = Vec::new();
        for number in 0..2_000_u32 {
            // More than the buffers of the sockets hold, in pieces of all sizes.
            let piece = vec![number as u8; (number * 7) as usize];
            while outbox.add(|bytes| bytes.extend_from_slice(&piece)).is_err() {
                assert!(outbox.is_open(), "the other side reads");
                tokio::task::yield_now().await;
            }
            if number % 3 == 0 {
                outbox.flush();
            }
            expected.extend(piece);
        }
        drop(outbox);
        let found = reader.await.expect("it does not panic").expect("it is read to its end");
        assert!(found == expected, "{} of {} bytes", found.len(), expected.len());
        task.await.expect("it does not panic").expect("all was taken");
    }

    #[tokio::test]
    async fn nothing_waits_without_bound() {
        let (near, far) = pair().await;
        let (outbox, _rest) = outbox(near.into_split().1, 1_000);
        let piece = vec![0; 100_000];
        let mut added = 0;
        while outbox.add(|bytes| bytes.extend_from_slice(&piece)).is_ok() {
            outbox.flush();
            added += 1;
            assert!(added < 1_000, "the other side reads nothing");
        }
        assert!(outbox.is_open(), "it was refused because of what waits");
        drop(far);
    }

    #[tokio::test]
    async fn who_takes_nothing_is_given_up() {
        let (near, far) = pair().await;
        let (outbox, rest) = outbox(near.into_split().1, 1_000);
        let task = tokio::spawn(rest.write(Duration::from_millis(50)));
        outbox.add(|bytes| bytes.resize(100 << 20, 0)).expect("one message always fits");
        outbox.flush();
        let ended = task.await.expect("it does not panic");
        ended.expect_err("the other side took nothing");
        assert!(!outbox.is_open());
        drop(far);
    }

    #[tokio::test]
    async fn a_connection_that_is_over_takes_nothing() {
        let (near, far) = pair().await;
        let (outbox, rest) = outbox(near.into_split().1, 1_000);
        outbox.add(|bytes| bytes.extend_from_slice(b"first")).expect("it fits");
        assert!(outbox.is_open());
        drop(rest);
        assert!(!outbox.is_open());
        let Refused = outbox
            .add(|_| panic!("there is nobody to write it"))
            .expect_err("the connection is over");
        drop(far);
    }

    #[tokio::test]
    async fn a_last_word_is_written_and_no_word_after_it() {
        let (near, mut far) = pair().await;
        let (outbox, rest) = outbox(near.into_split().1, 1_000);
        let last = rest.last();
        last.add(|bytes| bytes.extend_from_slice(b"last"));
        drop(outbox);
        last.add(|bytes| bytes.extend_from_slice(b"later"));
        drop(last);
        rest.write(PATIENCE).await.expect("it is taken");
        let mut found = Vec::new();
        far.read_to_end(&mut found).await.expect("it is read to its end");
        assert_eq!(found, b"last");
    }
}
