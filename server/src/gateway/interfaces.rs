//! Interfaces of classes, as this gateway last saw them.
//!
//! Invariant: a call names the signature it was made for, so an interface that is out of date is
//! found out by the cluster, and then asked for again.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use gesmas_abi::interface::Interface;
use gesmas_client::Client;

use crate::{failure::Failure, interface};

/// The interfaces.
pub(super) struct Interfaces {
    client: Client,
    known: Mutex<BTreeMap<String, Arc<Interface>>>,
}

impl Interfaces {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// The interface of a class.
    pub(super) async fn of(&self, class: &str) -> Result<Arc<Interface>, Failure> {
        if let Some(known) = self.table().get(class) {
            return Ok(known.clone());
        }
        // What the replica has will do where it knows the class: a call names the signature. A replica that
        // is behind may not know yet that the class is there, or that a majority has compiled it.
        let found = match interface::of_class(&self.client.stale(), class).await {
            Err(failure) if matches!(failure.code.as_ref(), "class-unknown" | "class-pending") => {
                interface::of_class(&self.client, class).await?
            }
            found => found?,
        };
        let found = Arc::new(found);
        self.table().insert(class.into(), found.clone());
        Ok(found)
    }

    /// What is known of a class is out of date.
    pub(super) fn forget(&self, class: &str) {
        self.table().remove(class);
    }

    fn table(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Interface>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
