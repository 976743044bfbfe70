//! Calls with an `Idempotency-Key`: each runs once, however often and wherever it is asked for.
//!
//! The key names a session of the cluster with one request in it; the request's number is a
//! fingerprint of what is asked for. So the cluster's own rules keep a key from running twice, give
//! a retry the running call or the stored reply, and refuse another call under the same key.
//! Invariants: a call with a key is not given up when its client hangs up: it runs to its deadline, to
//! the end of the session on whose behalf it is made, or until a request withdraws it; one without a
//! deadline has such a session; its outcome is kept for [`KEPT`] after the last request that waited
//! for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gesmas_client::{
    CallFailure, KeyedCall, OpenError,
    protocol::{Bytes, OnBehalf},
};
use tokio::sync::{Notify, watch};

use super::{Shared, calls::Target, spans::RequestSpan};

/// How long an outcome is kept at least.
const KEPT: Duration = Duration::from_secs(300);
/// Longest key, bytes.
pub(super) const KEY_MAX: usize = 255;

/// Why a keyed call has no result.
#[derive(Clone, Debug)]
pub(super) enum KeyedFailure {
    /// Its session could not be opened.
    Open(OpenError),
    /// It failed.
    Call(CallFailure),
    /// The key was used for another call.
    Another,
}

/// How a keyed call ended.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// The session that keeps it; none when it could not be opened.
    pub(super) session: Option<u64>,
    /// Its end.
    pub(super) result: Result<Bytes, KeyedFailure>,
}

struct Run {
    fingerprint: u64,
    outcome: watch::Receiver<Option<Outcome>>,
    /// Notified when the call is withdrawn.
    withdrawal: Arc<Notify>,
}

/// Calls that are under way in this gateway, by key.
#[derive(Default)]
pub(super) struct KeyedRuns(Mutex<BTreeMap<u128, Run>>);

/// What is asked for under a key.
pub(super) struct Keyed {
    pub(super) key: String,
    pub(super) target: Target,
    pub(super) arguments: Vec<u8>,
    pub(super) on_behalf: OnBehalf,
    /// None: the end of the session on whose behalf it is made is the only one.
    pub(super) deadline: Option<Duration>,
    /// For how long the session on whose behalf it is made may be silent: a client that was cut off for
    /// less comes back for the outcome.
    pub(super) returns_within: Option<Duration>,
    /// It is to be cancelled, wherever it is under way, and not to be made if it was not yet.
    pub(super) withdrawn: bool,
    /// The span of the request that asks for it, parent of the call if it is the first that does.
    pub(super) span: Option<RequestSpan>,
}

impl Keyed {
    /// The key as the nonce of a session. Keys of all clients share one space.
    fn nonce(&self) -> u128 {
        let mut hasher = blake3::Hasher::new_derive_key("gesmas HTTP Idempotency-Key");
        hasher.update(self.key.as_bytes());
        first_bytes(&hasher)
    }

    /// What is asked for as a number from 1.
    fn fingerprint(&self) -> u64 {
        let mut hasher = blake3::Hasher::new_derive_key("gesmas HTTP call");
        let Target { class, object, method, .. } = &self.target;
        let session = match self.on_behalf {
            OnBehalf::Session(session) => session,
            OnBehalf::Requester | OnBehalf::Nobody => 0,
        };
        for part in [class.as_bytes(), object.as_bytes(), method.name.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.update(&session.to_le_bytes());
        hasher.update(&self.arguments);
        // One bit less than it has room for: a number has a next one.
        ((first_bytes(&hasher) as u64) >> 1) | 1
    }
}

/// Nonce of a session that is opened under a key.
pub(super) fn session_nonce(key: &str) -> u128 {
    let mut hasher = blake3::Hasher::new_derive_key("gesmas HTTP session Idempotency-Key");
    hasher.update(key.as_bytes());
    first_bytes(&hasher)
}

fn first_bytes(hasher: &blake3::Hasher) -> u128 {
    let hash = hasher.finalize();
    let bytes = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
    u128::from_le_bytes(*bytes)
}

impl KeyedRuns {
    /// Starts the call, or finds the one that is under way; withdraws it if that is what is asked for.
    pub(super) fn start(
        &self,
        gateway: &Shared,
        keyed: Keyed,
    ) -> Result<watch::Receiver<Option<Outcome>>, KeyedFailure> {
        let (nonce, fingerprint) = (keyed.nonce(), keyed.fingerprint());
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = runs.get(&nonce) {
            if run.fingerprint != fingerprint {
                return Err(KeyedFailure::Another);
            }
            if keyed.withdrawn {
                run.withdrawal.notify_one();
            }
            return Ok(run.outcome.clone());
        }
        let (sender, outcome) = watch::channel(None);
        let withdrawal = Arc::new(Notify::new());
        let withdrawn = withdrawal.clone();
        runs.insert(nonce, Run { fingerprint, outcome: outcome.clone(), withdrawal });
        let gateway = Arc::clone(gateway);
        tokio::spawn(async move {
            let result = run(&gateway, nonce, fingerprint, keyed, &withdrawn).await;
            // First out of the table: whoever comes from now on asks the cluster, which knows.
            gateway.keyed.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&nonce);
            sender.send_replace(Some(result));
        });
        Ok(outcome)
    }
}

async fn run(
    gateway: &Shared,
    nonce: u128,
    fingerprint: u64,
    keyed: Keyed,
    withdrawal: &Notify,
) -> Outcome {
    // While it runs the gateway that has it keeps it. What it ends with must outlast a client that is cut
    // off and comes back, or the client would make the call anew and have what it asked for twice.
    let silence = keyed.deadline.max(keyed.returns_within).unwrap_or_default();
    let keep = silence.saturating_add(KEPT);
    let session = match gateway.client.keyed(nonce, fingerprint, keep).await {
        Ok(session) => session,
        Err(error) => return Outcome { session: None, result: Err(KeyedFailure::Open(error)) },
    };
    let kept_by = session.id();
    let Keyed { target, arguments, on_behalf, deadline, withdrawn, span, .. } = keyed;
    let Target { class, object, method, .. } = &target;
    let (name, signature) = (&method.name, method.signature);
    let call = if withdrawn {
        session.withdraw(class, object, name, signature, arguments, on_behalf)
    } else {
        session.call(class, object, name, signature, arguments, on_behalf)
    };
    let call = match deadline {
        Some(deadline) => call.deadline(deadline),
        None => call.without_deadline(),
    };
    let mut call = call.send();
    let _parent = span.zip(call.number()).map(|(span, number)| span.adopt(kept_by, number));
    let ended = tokio::select! {
        ended = &mut call => ended,
        () = withdrawal.notified() => {
            call.withdraw();
            call.await
        }
    };
    let result = ended.map_err(|failure| {
        if KeyedCall::was_another(&failure) {
            KeyedFailure::Another
        } else {
            KeyedFailure::Call(failure)
        }
    });
    Outcome { session: Some(kept_by), result }
}

/// Forgets outcomes that nobody will ask for again, so that they need not be kept for [`KEPT`]. Nobody
/// waits for it: what is not forgotten expires.
pub(super) fn forget(gateway: &Shared, outcomes: Vec<u64>) {
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        let Ok(seat) = gateway.requesters.seat().await else { return };
        let ended = outcomes.into_iter().map(|session| seat.session.kill_session(session).send());
        // All are sent before the first is waited for.
        for ended in ended.collect::<Vec<_>>() {
            drop(ended.await);
        }
    });
}
