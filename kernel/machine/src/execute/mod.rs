//! Running bodies: segments, host calls, ends, and rebuilding from journals.
//!
//! Not here: what admits a call (`steps/`), and what host calls change (`world/`).

mod deadlock;
mod finish;
mod perform;
mod rebuild;
mod segment;

use std::collections::BTreeMap;

pub(crate) use self::{
    perform::Performed,
    segment::{Begin, Segment},
};
use crate::{engine::ActivationId, names::InvocationId};

/// Which blocked invocations have an activation in the engine, oldest first.
///
/// Not state: any of them may be dropped at any time without changing a result.
#[derive(Debug, Default)]
pub(crate) struct Live {
    next: u64,
    by_invocation: BTreeMap<InvocationId, ActivationId>,
    by_age: BTreeMap<ActivationId, InvocationId>,
}

impl Live {
    /// A new activation's id; later ones are greater.
    pub(crate) fn fresh(&mut self) -> ActivationId {
        self.next += 1;
        ActivationId(self.next)
    }

    /// Goes on with ids that another has not given.
    pub(crate) fn follow(&mut self, other: &Self) {
        self.next = self.next.max(other.next);
    }

    pub(crate) fn insert(&mut self, invocation: InvocationId, activation: ActivationId) {
        self.by_age.insert(activation, invocation);
        let twice = self.by_invocation.insert(invocation, activation);
        assert!(twice.is_none(), "an invocation has one activation");
    }

    pub(crate) fn take(&mut self, invocation: InvocationId) -> Option<ActivationId> {
        let activation = self.by_invocation.remove(&invocation)?;
        self.by_age.remove(&activation);
        Some(activation)
    }

    /// The one that has been there longest.
    pub(crate) fn oldest(&self) -> Option<InvocationId> {
        self.by_age.first_key_value().map(|(_, invocation)| *invocation)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_invocation.len()
    }
}
