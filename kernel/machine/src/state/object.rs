//! Objects: ordered key-value store, semaphores, permits, faults.
//!
//! Not here: the operations on them (`world/store.rs`, `world/semaphore.rs`).

use std::{collections::VecDeque, sync::Arc};

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::{
    code::CodeHash,
    host_call::Holder,
    names::{AlarmId, Incarnation, InvocationId, MethodName, ObjectName, PermitId, Time},
    outcome::Trap,
    sum::{Kind, Sum},
};

/// One life of an object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Object {
    pub(crate) incarnation: Incarnation,
    /// Code whose layout the store has.
    pub(crate) code: CodeHash,
    /// Hash of the arguments it was created with.
    pub(crate) created_with: CodeHash,
    pub(crate) entries: OrdMap<Vec<u8>, Arc<Entry>>,
    /// Keys and values, bytes.
    pub(crate) bytes: u64,
    /// Semaphores that are not as a fresh one is.
    pub(crate) semaphores: OrdMap<Arc<[u8]>, Arc<Semaphore>>,
    /// Counts as `init` left them, where they are not 0.
    pub(crate) initial_counts: OrdMap<Arc<[u8]>, u64>,
    /// Waiters of all its semaphores.
    pub(crate) waiters: u64,
    /// Owned permits of all its semaphores.
    pub(crate) permits: u64,
    /// Its timers and watches.
    pub(crate) alarms: OrdSet<AlarmId>,
    /// Failed handlers, oldest first.
    pub(crate) faults: VecDeque<Fault>,
    /// Sum of all its records.
    pub(crate) sum: Sum,
}

/// One value of a store, with the sum of its record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(with = "serde_bytes")]
    pub(crate) value: Vec<u8>,
    pub(crate) sum: Sum,
}

/// A semaphore. Fresh ones have count 0 and nobody waiting or owning, and are not stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Semaphore {
    pub(crate) count: u64,
    /// Ticket of the next waiter; tickets order the queue.
    pub(crate) next_ticket: u64,
    pub(crate) waiters: OrdMap<u64, InvocationId>,
    pub(crate) owners: OrdSet<PermitId>,
    /// Sum of its own record: count and next ticket.
    pub(crate) sum: Sum,
}

/// A permit that has an owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Permit {
    pub(crate) object: ObjectName,
    #[serde(with = "serde_bytes")]
    pub(crate) semaphore: Vec<u8>,
    pub(crate) holder: Holder,
}

/// A handler that failed; its segment was undone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fault {
    /// The alarm that had called it, which names the fault.
    pub(crate) alarm: AlarmId,
    pub(crate) handler: MethodName,
    /// Hash of the handler's signature when it was called.
    pub(crate) signature: u64,
    #[serde(with = "serde_bytes")]
    pub(crate) arguments: Vec<u8>,
    pub(crate) trap: Trap,
    pub(crate) at: Time,
}

impl Object {
    /// An object without state.
    pub(crate) fn new(incarnation: Incarnation, code: CodeHash, arguments: &[u8]) -> Self {
        let mut object = Self {
            incarnation,
            code,
            created_with: CodeHash::of(arguments),
            entries: OrdMap::new(),
            bytes: 0,
            semaphores: OrdMap::new(),
            initial_counts: OrdMap::new(),
            waiters: 0,
            permits: 0,
            alarms: OrdSet::new(),
            faults: VecDeque::new(),
            sum: Sum::default(),
        };
        object.sum = object.head();
        object
    }

    /// Sum of the record of one of its faults.
    pub(crate) fn fault_record(&self, fault: &Fault) -> Sum {
        Sum::of(Kind::Fault, &(self.incarnation, fault))
    }

    /// Sum of the record that says that the object exists.
    pub(crate) fn head(&self) -> Sum {
        Sum::of(Kind::Object, &(self.incarnation, self.code, self.created_with))
    }

    /// Sum of the record of the counts that `init` left.
    pub(crate) fn initial_record(&self) -> Sum {
        if self.initial_counts.is_empty() {
            return Sum::default();
        }
        Sum::of(Kind::InitialCount, &(self.incarnation, &self.initial_counts))
    }

    /// Whether nothing would be lost if the object vanished: see `transient` in the glossary.
    pub(crate) fn is_as_init_left_it(&self) -> bool {
        self.entries.is_empty()
            && self.waiters == 0
            && self.permits == 0
            && self.alarms.is_empty()
            && self.faults.is_empty()
            && self.initial_counts.iter().all(|(name, count)| {
                self.semaphores.get(name).is_some_and(|semaphore| semaphore.count == *count)
            })
            && self.semaphores.iter().all(|(name, semaphore)| {
                semaphore.count == self.initial_counts.get(name).copied().unwrap_or(0)
            })
    }
}

impl Semaphore {
    /// Sum of its own record.
    pub(crate) fn record(&self, incarnation: Incarnation, name: &[u8]) -> Sum {
        Sum::of(Kind::Semaphore, &(incarnation, name, self.count, self.next_ticket))
    }

    /// Whether it is as a fresh one is, so that it need not be stored.
    pub(crate) fn is_fresh(&self) -> bool {
        self.count == 0 && self.waiters.is_empty() && self.owners.is_empty()
    }
}

/// Sum of the record of a waiter.
pub(crate) fn waiter_sum(
    incarnation: Incarnation,
    semaphore: &[u8],
    ticket: u64,
    id: InvocationId,
) -> Sum {
    Sum::of(Kind::Waiter, &(incarnation, semaphore, ticket, id))
}

/// Sum of the record of a permit.
pub(crate) fn permit_sum(id: PermitId, permit: &Permit) -> Sum {
    Sum::of(Kind::Permit, &(id, permit))
}
