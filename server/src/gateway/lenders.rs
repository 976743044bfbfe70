//! Sessions of HTTP clients, attached here while something of theirs is under way.
//!
//! Whoever waits for an answer or listens to events shows that it lives; so while there is such a
//! request, the gateway keeps its session alive. Between requests the client's own keep-alives do.
//! Invariant: a session is attached once, however many of its requests are under way, and let go with
//! the last of them; so one whose client is gone expires.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use gesmas_client::{Attachment, Client, OpenError, SessionState};
use tokio::sync::OnceCell;

type Attached = OnceCell<Attachment>;

/// The sessions that are attached.
pub(super) struct Lenders {
    client: Client,
    attached: Arc<Mutex<BTreeMap<u64, Weak<Attached>>>>,
}

/// A session that is kept alive as long as this is held.
pub(super) struct Lender {
    session: u64,
    attached: Arc<Attached>,
    table: Arc<Mutex<BTreeMap<u64, Weak<Attached>>>>,
}

impl Lenders {
    pub(super) fn new(client: Client) -> Self {
        Self { client, attached: Arc::default() }
    }

    /// Attaches a session, unless it is.
    pub(super) async fn hold(&self, session: u64) -> Result<Lender, OpenError> {
        let attached = {
            let mut table = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
            let known = table.get(&session).and_then(Weak::upgrade);
            let usable = known.filter(|attached| {
                let state = attached.get().map(Attachment::state);
                !matches!(state, Some(SessionState::Lost(_)))
            });
            usable.unwrap_or_else(|| {
                let fresh = Arc::new(Attached::new());
                table.insert(session, Arc::downgrade(&fresh));
                fresh
            })
        };
        let lender = Lender { session, attached, table: self.attached.clone() };
        lender.attached.get_or_try_init(|| self.client.attach(session)).await?;
        Ok(lender)
    }
}

impl Lender {
    /// The session.
    pub(super) fn attachment(&self) -> &Attachment {
        self.attached.get().expect("a session is held once it is attached")
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(&self.attached) == 1
            && let Some(known) = table.get(&self.session)
            && known.as_ptr() == Arc::as_ptr(&self.attached)
        {
            table.remove(&self.session);
        }
    }
}
