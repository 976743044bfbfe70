//! Shipping of classes, unseen by callers.
//!
//! When a request is refused because its class is not loaded, and the client was given the code, the
//! code is put through a session of the hub's own: a *put* is a numbered request, and in the
//! caller's session it would have to queue behind the very request that waits for it.
//! Invariants: a class is put once at a time, for however many sessions; an automatic put never
//! replaces code: if another has the name, the requests go on and meet whatever is loaded.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use gesmas_protocol::{Bytes, CallError, ErrorId, Refusal, RequestBody};

use crate::{
    clock::Moment, command::Ticket, failure::CallFailure, hub::Hub,
    session::settings::SessionSettings,
};

/// How long a put may take: compilation by a majority, and an election on the way.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the hub knows about shipping.
#[derive(Debug)]
pub(crate) struct Shipping {
    modules: HashMap<String, Bytes>,
    /// Sessions that wait, by class; a class is in this table while it is being put.
    waiting: HashMap<String, HashSet<u64>>,
    session: Option<u64>,
    seed: u64,
    sessions: u64,
}

impl Shipping {
    pub(crate) fn new(seed: u64) -> Self {
        Self { modules: HashMap::new(), waiting: HashMap::new(), session: None, seed, sessions: 0 }
    }

    /// Gives the client the code of a class.
    pub(crate) fn register(&mut self, class: String, module: Bytes) {
        self.modules.insert(class, module);
    }

    /// A nonce that no other session has: the client's own random seed and a count.
    fn nonce(&mut self) -> u128 {
        self.sessions += 1;
        (u128::from(self.seed) << 64) | u128::from(self.sessions)
    }
}

impl Hub {
    /// A session needs a class.
    pub(crate) fn class_needed(
        &mut self,
        now: Moment,
        key: u64,
        class: String,
        id: Option<ErrorId>,
    ) {
        let Some(module) = self.shipping.modules.get(&class).cloned() else {
            let failure = CallFailure::Refused(Refusal::ClassUnknown { class: class.clone() }, id);
            self.with(key, |core| core.class_settled(now, &class, Some(&failure)));
            return;
        };
        if let Some(waiting) = self.shipping.waiting.get_mut(&class) {
            waiting.insert(key);
            return;
        }
        self.shipping.waiting.insert(class.clone(), HashSet::from([key]));
        tracing::info!(class, "the class is not loaded; shipping it");
        let shipper = self.shipper();
        let body = RequestBody::PutClass { class: class.clone(), module, replace: None };
        self.with(shipper, |core| {
            core.call(body, Some(now + PATIENCE), Ticket::Shipped(class), None)
        });
    }

    fn shipper(&mut self) -> u64 {
        let living = self
            .shipping
            .session
            .filter(|key| self.slots.get(key).is_some_and(|slot| !slot.core.is_over()));
        living.unwrap_or_else(|| {
            if let Some(old) = self.shipping.session {
                self.slots.remove(&old);
            }
            let nonce = self.shipping.nonce();
            let key = self.open(SessionSettings::default(), nonce, None);
            self.shipping.session = Some(key);
            key
        })
    }

    /// A put has ended.
    pub(crate) fn shipped(&mut self, now: Moment, class: &str, result: Result<Bytes, CallFailure>) {
        let failure = match result {
            // Sent again, the requests find the class, or ask for it once more.
            Ok(_)
            | Err(
                CallFailure::Failed(CallError::ClassExists { .. } | CallError::Cancelled(_), _)
                | CallFailure::Unknown(_)
                | CallFailure::NotSent(_),
            ) => None,
            Err(CallFailure::Failed(error, _)) => {
                Some(CallFailure::Shipping { class: class.into(), error })
            }
            Err(failure) => Some(failure),
        };
        for key in self.shipping.waiting.remove(class).unwrap_or_default() {
            self.with(key, |core| core.class_settled(now, class, failure.as_ref()));
        }
    }

    /// No session for shipping can be had.
    pub(crate) fn shipping_refused(&mut self, now: Moment, refusal: &Refusal) {
        self.shipping.session = None;
        let failure = CallFailure::Refused(refusal.clone(), None);
        for (class, keys) in std::mem::take(&mut self.shipping.waiting) {
            for key in keys {
                self.with(key, |core| core.class_settled(now, &class, Some(&failure)));
            }
        }
    }
}
