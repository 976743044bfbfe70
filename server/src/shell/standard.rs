//! Standard classes, loaded when a client first needs one: the code is in this program.
//!
//! A request for one that is not loaded is refused as if the class were being compiled, which it is
//! soon: a client of the replica's own puts it, like any client would. So nothing of this is in the
//! log but that put, and a class that has the name already stays.
//! Invariants: a class is asked for once at a time. One that could not be loaded is not asked for again
//! for a while, in which clients are told what the machine says: that it is not loaded.
//! Not here: classes of users, which their clients ship.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gesmas_classes::Standard;
use gesmas_client::Client;
use gesmas_machine::Refusal;
use tokio::sync::mpsc;

/// How long a put may take: compilation by a majority, and an election on the way.
const PATIENCE: Duration = Duration::from_secs(60);

/// For how long one that could not be loaded is not tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Classes that are being put (none), and those that could not be, with the time when that was known.
type Loading = Arc<Mutex<BTreeMap<&'static str, Option<Instant>>>>;

/// Asks for standard classes.
pub(super) struct StandardClasses {
    wanted: mpsc::UnboundedSender<Standard>,
    loading: Loading,
}

/// Puts those that are asked for.
pub(super) struct Loader {
    wanted: mpsc::UnboundedReceiver<Standard>,
    loading: Loading,
}

/// Both ends.
pub(super) fn standard_classes() -> (StandardClasses, Loader) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let loading = Loading::default();
    let classes = StandardClasses { wanted: sender, loading: loading.clone() };
    (classes, Loader { wanted: receiver, loading })
}

impl StandardClasses {
    /// What a client is told instead, if it was refused for want of a standard class, which is loaded
    /// then.
    pub(super) fn instead_of(&self, refusal: Refusal) -> Refusal {
        let Refusal::ClassUnknown { class } = &refusal else { return refusal };
        let Some(standard) = gesmas_classes::find(class.as_str()) else { return refusal };
        let mut loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        match loading.get(standard.name) {
            Some(None) => {}
            Some(Some(failed)) if failed.elapsed() < AGAIN => return refusal,
            Some(Some(_)) | None => {
                if self.wanted.send(standard).is_err() {
                    // The replica stops.
                    return refusal;
                }
                loading.insert(standard.name, None);
            }
        }
        Refusal::ClassPending { class: class.clone() }
    }
}

impl Loader {
    /// Puts what is asked for through the replica that listens here, until nobody can ask any more.
    pub(super) async fn run(mut self, replica: SocketAddr) {
        while let Some(standard) = self.wanted.recv().await {
            tracing::info!(class = standard.name, "a standard class is needed: loading it");
            let put = put(replica, standard).await;
            let mut loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(failure) = put {
                tracing::error!(class = standard.name, failure, "it could not be loaded");
                loading.insert(standard.name, Some(Instant::now()));
            } else {
                loading.remove(standard.name);
            }
        }
    }
}

async fn put(replica: SocketAddr, standard: Standard) -> Result<(), String> {
    let builder = Client::builder().endpoints([replica.to_string()]).name("gesmas-standard");
    let client = builder.patience(PATIENCE).connect().await.map_err(|error| error.to_string())?;
    let session = client.session().open().await.map_err(|error| error.to_string())?;
    let put = session.put_class(standard.name, standard.module).deadline(PATIENCE).await;
    session.close().await;
    client.shutdown().await;
    put.map(|_| ()).map_err(|failure| failure.to_string())
}
