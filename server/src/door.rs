//! A door: so many connections of a listener exist at once, and who comes over that is told and sent away.
//!
//! Whoever connects from this host has some places more: the replica's own clients (the gateway, the
//! loader of standard classes) and operators find room when strangers from elsewhere have taken the rest.
//! Invariants: at most [`Door::descriptors`] descriptors are held by what came through a door and by whom it
//! sends away; a listener that finds no descriptor waits for one and goes on; the log has a line a second
//! at most of those who are sent away.
//! Not here: what a connection says, and how long it may be silent.

use std::{
    io::{self, Write as _},
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

/// Places beyond the others for those who connect from this host.
const LOCAL: usize = 16;
/// Connections that are sent away and have yet to read why.
const PARTING: usize = 16;
/// How long one of them may take.
const PARTING_TIME: Duration = Duration::from_secs(1);
/// Bytes of it that are read meanwhile: to close before all is read would take back what it was told.
const PARTING_BYTES: u64 = 64 << 10;
/// Pause when the system gives no descriptor.
const PAUSE: Duration = Duration::from_millis(50);
/// Time between two lines about those who are sent away.
const TELL: Duration = Duration::from_secs(1);

/// See the file's head.
pub(crate) struct Door {
    /// Whose door it is, in the plural.
    whose: &'static str,
    most: usize,
    open: Arc<AtomicUsize>,
    parting: Arc<Semaphore>,
    told: Seldom,
    failed: Seldom,
}

/// What is said once a second at most, however often it happens.
#[derive(Default)]
pub(crate) struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// It happened: how often since it was said last, if it is to be said now.
    pub(crate) fn happened(&self) -> Option<u64> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.1 += 1;
        if told.0.is_some_and(|at| at.elapsed() < TELL) {
            return None;
        }
        told.0 = Some(Instant::now());
        Some(std::mem::take(&mut told.1))
    }
}

/// A place behind a door, which is free again when this is dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Somebody who connected.
pub(crate) struct Guest {
    pub(crate) stream: TcpStream,
    pub(crate) address: SocketAddr,
    /// None if there is no room.
    pub(crate) place: Option<Place>,
}

impl Door {
    /// A door behind which there is room for so many.
    pub(crate) fn new(whose: &'static str, most: usize) -> Self {
        let parting = Arc::new(Semaphore::new(PARTING));
        Self {
            whose,
            most,
            open: Arc::default(),
            parting,
            told: Seldom::default(),
            failed: Seldom::default(),
        }
    }

    /// Descriptors that such a door takes besides those of `most` connections: of places for this host,
    /// of those who are being sent away, and of the next one.
    pub(crate) const fn descriptors() -> u64 {
        (LOCAL + PARTING + 1) as u64
    }

    /// Waits for the next one who connects.
    pub(crate) async fn next(&self, listener: &TcpListener) -> Guest {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    let place = self.place(address.ip(), &stream);
                    return Guest { stream, address, place };
                }
                Err(error) => {
                    // Out of descriptors, mostly: those that exist go on.
                    if let Some(count) = self.failed.happened() {
                        let whose = self.whose;
                        tracing::warn!(%error, whose, count, "a connection could not be accepted");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn place(&self, from: IpAddr, stream: &TcpStream) -> Option<Place> {
        let here = from.is_loopback() || stream.local_addr().is_ok_and(|own| own.ip() == from);
        let most = self.most + if here { LOCAL } else { 0 };
        if self.open.fetch_add(1, Ordering::Relaxed) < most {
            return Some(Place(self.open.clone()));
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Tells somebody for whom there is no room, in `words`, and closes the connection.
    pub(crate) fn send_away(&self, stream: TcpStream, address: SocketAddr, words: Vec<u8>) {
        if let Some(count) = self.told.happened() {
            let (whose, most) = (self.whose, self.most);
            tracing::warn!(%address, whose, most, count, "too many connections: some are sent away");
        }
        if let Ok(permit) = self.parting.clone().try_acquire_owned() {
            tokio::spawn(async move {
                let _late = tokio::time::timeout(PARTING_TIME, part(stream, &words)).await;
                drop(permit);
            });
        } else if let Ok(stream) = stream.into_std() {
            // The system takes as little as this at once. Whether it is read is the other side's affair.
            let _cut = (&stream).write(&words);
        }
    }
}

/// Lets the other side read what it was told.
async fn part(mut stream: TcpStream, words: &[u8]) -> io::Result<()> {
    stream.write_all(words).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(PARTING_BYTES), &mut tokio::io::sink()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_finds_no_room_is_told_and_there_is_room_again_when_somebody_leaves() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        let door = Door::new("tests", 3);
        let mut inside = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..3 + LOCAL {
            clients.push(TcpStream::connect(address).await.expect("somebody listens"));
            let guest = door.next(&listener).await;
            assert!(guest.place.is_some());
            inside.push(guest);
        }
        for _ in 0..3 * PARTING {
            let mut client = TcpStream::connect(address).await.expect("somebody listens");
            client.write_all(b"what it came for").await.expect("it is connected");
            let Guest { stream, address, place } = door.next(&listener).await;
            assert!(place.is_none());
            door.send_away(stream, address, b"no room".into());
            let mut found = Vec::new();
            client.read_to_end(&mut found).await.expect("it is not cut off");
            assert_eq!(found, b"no room");
        }
        inside.pop();
        let _client = TcpStream::connect(address).await.expect("somebody listens");
        assert!(door.next(&listener).await.place.is_some());
    }
}
