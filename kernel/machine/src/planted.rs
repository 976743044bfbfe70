//! Bugs that tests plant, to prove that their checkers notice them.
//!
//! Each bug is one line at the place where it would be made: `if planted.has(…)`. Without the cargo
//! feature `planted` nothing can be planted: [`Planted`] is empty, `has` is constantly false, and no
//! such line is left in the machine code. With the feature and nothing planted all is as without.
//! Bugs of the replica's core (the crate `gesmas`) are listed here too, so that there is one list.
//! Invariant: no crate of the product turns the feature on; `.ci/run` looks.
//! Not here: faults of the surroundings (disks, networks, clients), which the simulator plants.

macro_rules! planted_bugs {
    ($($(#[$doc:meta])+ $name:ident,)*) => {
        /// A bug that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PlantedBug {
            $($(#[$doc])+ $name,)*
        }

        impl PlantedBug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

planted_bugs! {
    /// A permit goes to whoever came last.
    Barging,
    /// Now and then a permit goes to the count although somebody waits.
    LostWakeUp,
    /// Permits of an invocation that was cancelled are gone.
    PermitLostOnCancel,
    /// Permits of a session that is over are gone.
    PermitLostWithSession,
    /// The permit that resumed a segment is gone when the segment is undone.
    PermitLostOnUndo,
    /// A `V` gives twice as many permits.
    VTwice,
    /// An owned permit that is given back is given twice.
    ReleaseTwice,
    /// Who was cancelled or timed out stays in its queue, and takes a permit along.
    CancelledStaysQueued,
    /// The end of a timed wait is taken for a permit.
    TimeoutGrants,
    /// A timer goes off twice.
    TimerTwice,
    /// Deadlines are not kept.
    DeadlineForgotten,
    /// Batches are stamped with the leader's wall clock, and taken as they are.
    TimeBackwards,
    /// Undoing leaves semaphores as they are.
    UndoForgetsSemaphore,
    /// Undoing leaves entries as they are.
    UndoForgetsEntry,
    /// Effects of an undone segment leave.
    UndoKeepsEffects,
    /// Drawn tokens are in no journal.
    JournalSkipsCall,
    /// Journals have another answer than the body got.
    JournalForgetsAnswer,
    /// A body that is rebuilt has the memory of the limit at that moment.
    MemoryOfTheMoment,
    /// What a trial has changed stays.
    TrialStays,
    /// Snapshots lack one of the invocations that wait.
    SnapshotMissesWaiter,
    /// The last request of a session runs again when it comes again.
    DoubleApply,
    /// Replies are sent and not kept.
    ReplyNotKept,
    /// Requests are admitted whatever came before them.
    AdmissionIgnoresOrder,
    /// The calls of a session that is over are cleaned up in another order on each replica.
    HashMapOrder,
    /// Now and then a fencing token is given out twice.
    TokenRepeats,
    /// Batches of a leader that was deposed count, and it goes on ordering.
    StaleBatchCounts,
    /// Votes leave before the log is durable, which it becomes now and then.
    AcknowledgedBeforeSync,
    /// Promises are not written.
    VoteNotPersisted,
    /// Who leads, as far as it knows, answers reads without asking others.
    ReadWithoutMajority,
    /// A leader counts the silence while it did not lead.
    StalledLeaderExpires,
    /// What came due before a leader began to lead is taken for what a batch takes along.
    DueBeforeReign,
    /// A first leader takes a wall clock that nobody has set for a time.
    UnsetClockCounts,
    /// Ranges of an acknowledgement count for no bytes, and a batch that is then too large waits.
    RangesWeighNothing,
    /// The log is compacted beyond the snapshots.
    TrimTooFar,
    /// Entries are applied before they are decided.
    AppliesUndecided,
    /// A restart from a snapshot skips an entry.
    SnapshotSkipsEntry,
    /// A replica whose state is not the majority's goes on.
    DivergenceIgnored,
}

/// What is planted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    #[cfg(feature = "planted")]
    bug: Option<(PlantedBug, u64)>,
}

impl Planted {
    /// A bug; `salt` differs from replica to replica.
    #[cfg(feature = "planted")]
    #[must_use]
    pub fn new(bug: PlantedBug, salt: u64) -> Self {
        Self { bug: Some((bug, salt)) }
    }

    /// Whether it is this bug.
    #[must_use]
    pub const fn has(self, bug: PlantedBug) -> bool {
        #[cfg(feature = "planted")]
        if let Some((planted, _)) = self.bug {
            return planted as u8 == bug as u8;
        }
        let _ = bug;
        false
    }

    /// A number in place of another that differs from replica to replica, and is otherwise any.
    pub(crate) const fn disordered(self, number: u64) -> u64 {
        #[cfg(feature = "planted")]
        if let Some((_, salt)) = self.bug {
            return (number ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
        number
    }
}

#[cfg(feature = "planted")]
impl<E: crate::Engine> crate::Machine<E> {
    /// Plants a bug.
    pub fn plant(&mut self, planted: Planted) {
        self.world.planted = planted;
    }

    /// Changes a value as a processor might that computes wrongly: the state stays sound, and is
    /// another one than that of other replicas. Says which object has the value, if there is one;
    /// `choice` chooses among them.
    pub fn miscompute(&mut self, choice: u64) -> Option<crate::ObjectName> {
        use crate::sum::Sum;
        assert!(self.is_between_entries(), "what is half done is left alone");
        let state = &mut self.world.state;
        let values = |object: &crate::state::Object| {
            object.entries.iter().any(|(_, entry)| !entry.value.is_empty())
        };
        let all: Vec<_> = state.objects.iter().filter(|(_, object)| values(object)).collect();
        let (name, _) = all.get(usize::try_from(choice % (all.len().max(1) as u64)).ok()?)?;
        let name = (*name).clone();
        let object = state.object_mut(&name)?;
        let incarnation = object.incarnation.0;
        let found = object.entries.iter().find(|(_, entry)| !entry.value.is_empty());
        let (key, mut entry) = found.map(|(key, entry)| (key.clone(), entry.as_ref().clone()))?;
        let before = entry.sum;
        entry.value[0] ^= 1;
        entry.sum = Sum::of_entry(incarnation, &key, &entry.value);
        let after = entry.sum;
        object.entries.insert(key, std::sync::Arc::new(entry));
        state.adjust_object(&name, before, after);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_planted_by_default() {
        for bug in PlantedBug::ALL {
            assert!(!Planted::default().has(*bug), "{bug:?}");
        }
    }
}
