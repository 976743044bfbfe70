//! A network between clients and replicas that tests can break.
//!
//! Invariant: a switch ends the connections that stand; the next ones go to the new place.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// Passes connections on to a place that can be changed.
pub struct Proxy {
    address: SocketAddr,
    target: Arc<watch::Sender<Option<SocketAddr>>>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// A proxy for this place.
    ///
    /// # Panics
    /// When there is no port.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there are ports");
        let address = listener.local_addr().expect("a listener has an address");
        let target = Arc::new(watch::channel(Some(target)).0);
        let task = tokio::spawn(accept(listener, target.clone()));
        Self { address, target, task }
    }

    /// Where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and sends the next ones to this place.
    pub fn switch(&self, target: SocketAddr) {
        self.target.send_replace(Some(target));
    }

    /// Ends all connections, and takes no more.
    pub fn cut(&self) {
        self.target.send_replace(None);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: Arc<watch::Sender<Option<SocketAddr>>>) {
    while let Ok((client, _)) = listener.accept().await {
        let mut changes = target.subscribe();
        let Some(place) = *changes.borrow_and_update() else { continue };
        tokio::spawn(async move {
            tokio::select! {
                _ = changes.changed() => {}
                () = pass(client, place) => {}
            }
        });
    }
}

async fn pass(mut client: TcpStream, place: SocketAddr) {
    if let Ok(mut server) = TcpStream::connect(place).await {
        // Whichever side breaks the connection, it is broken.
        let _broken = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}
