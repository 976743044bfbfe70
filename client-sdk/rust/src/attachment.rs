//! Sessions that are not this client's alone: for gateways, which serve others' sessions.
//!
//! An [`Attachment`] keeps a session alive and hears its events. It makes no updates, since numbers
//! of requests are counted in one place: whoever has something to ask for such a session asks
//! through a session of its own, on its behalf ([`Call::on_behalf`]).
//! A [`KeyedCall`] is a session with one request, which any client may make again, through any
//! replica: it runs once, and its reply stays until the session expires.
//! Invariant: neither closes its session by being dropped.

use std::time::Duration;

use gesmas_protocol::{Bytes, OnBehalf, Refusal};

use crate::{
    call::{Call, Read},
    client::Client,
    events::Events,
    failure::{CallFailure, OpenError},
    handle::Session,
    session::{core::SessionState, settings::Role},
};

/// A session that another client, or an earlier life of this one, has opened.
#[derive(Debug)]
pub struct Attachment {
    session: Session,
}

impl Client {
    /// Attaches an open session. It is kept alive until the attachment is dropped, and lives on after
    /// that as long as its timeout says. A client attaches a session once: another attachment takes
    /// the place of the first.
    ///
    /// # Errors
    /// [`OpenError::Over`] when there is no such session, others when no answer came.
    pub async fn attach(&self, session: u64) -> Result<Attachment, OpenError> {
        let session = self.session().role(Role::Guest { session }).open().await?;
        Ok(Attachment { session })
    }

    /// Opens, or opens again, the session of a keyed call.
    ///
    /// `nonce` is the key, `fingerprint` (not 0) says which call it is for, and `keep` is how long the
    /// outcome is kept, and the call may run, without a sign of life of anybody who waits for it.
    ///
    /// # Errors
    /// [`OpenError`] when the session cannot be opened.
    ///
    /// # Panics
    /// When the fingerprint is 0.
    pub async fn keyed(
        &self,
        nonce: u128,
        fingerprint: u64,
        keep: Duration,
    ) -> Result<KeyedCall, OpenError> {
        assert!(fingerprint != 0, "requests are numbered from 1");
        let session = self.session().nonce(nonce).timeout(keep);
        let session = session.role(Role::Single { number: fingerprint }).open().await?;
        Ok(KeyedCall { session })
    }
}

impl Attachment {
    /// Its number in the cluster.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.session.id()
    }

    /// Its timeout, as the cluster granted it.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.session.timeout()
    }

    /// Its state at the moment.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.session.state()
    }

    /// Says how to read for the session.
    pub fn read(
        &self,
        class: impl Into<String>,
        object: impl Into<String>,
        method: impl Into<String>,
        signature: u64,
        arguments: impl Into<Bytes>,
    ) -> Read {
        self.session.read(class, object, method, signature, arguments)
    }

    /// The events after a number; that one and all before count as consumed, and no other until
    /// [`Attachment::acknowledge_events`] says so. The events of an earlier call of this end.
    #[must_use]
    pub fn events_after(&self, number: u64) -> Events {
        self.session.replay(number)
    }

    /// Says that an event and all before it were consumed.
    pub fn acknowledge_events(&self, number: u64) {
        self.session.consume_events(number);
    }

    /// Waits until the leader, who watches over sessions, has heard of this one.
    ///
    /// # Errors
    /// [`CallFailure::NotSent`] when the session is over.
    pub async fn prove_alive(&self) -> Result<(), CallFailure> {
        self.session.probe().await
    }

    /// Ends the session in the cluster.
    pub async fn close(self) {
        self.session.close().await;
    }
}

/// A call that runs once however often it is asked for. See [`Client::keyed`].
#[derive(Debug)]
pub struct KeyedCall {
    session: Session,
}

impl KeyedCall {
    /// Number of its session in the cluster. Ending that session forgets the outcome: whoever asks again
    /// makes the call anew.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.session.id()
    }

    /// Cancels the call instead of making it, wherever it was made; if it was made nowhere it never
    /// runs. The end tells what became of it: a result if it was served before the cancel came. What is
    /// asked for is the same as in [`KeyedCall::call`].
    pub fn withdraw(
        self,
        class: &str,
        object: &str,
        method: &str,
        signature: u64,
        arguments: impl Into<Bytes>,
        on_behalf: OnBehalf,
    ) -> Call {
        self.call(class, object, method, signature, arguments, on_behalf).withdrawn()
    }

    /// The call. Whoever asks for it again must ask for the same under the same fingerprint; giving it
    /// up cancels it for all who wait for it.
    pub fn call(
        self,
        class: &str,
        object: &str,
        method: &str,
        signature: u64,
        arguments: impl Into<Bytes>,
        on_behalf: OnBehalf,
    ) -> Call {
        self.session.call(class, object, method, signature, arguments).on_behalf(on_behalf)
    }

    /// Whether a call failed because its key was used for another one.
    #[must_use]
    pub const fn was_another(failure: &CallFailure) -> bool {
        matches!(failure, CallFailure::Refused(Refusal::OutOfOrder { .. } | Refusal::Forgotten, _))
    }
}
