//! Sessions: a session is over once and for one reason, and no session of a living client expires
//! while the cluster is in order.
//!
//! While faults happen a client may be cut off for longer than its timeout; that its session lives
//! is demanded only a while after the last fault.

use std::collections::BTreeMap;

use gesmas_machine::{SessionEnd, SessionId};

use crate::verdict::{Checked, demand};

/// All sessions that are over.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    over: BTreeMap<SessionId, SessionEnd>,
}

impl Sessions {
    /// A replica says that a session is over. True when it is the first to say so.
    pub(crate) fn said_over(
        &mut self,
        replica: u64,
        session: SessionId,
        reason: SessionEnd,
    ) -> Checked<bool> {
        let is_first = !self.over.contains_key(&session);
        let first = *self.over.entry(session).or_insert(reason);
        demand(first == reason, "sessions", || {
            format!("replica {replica} says that {session} is {reason:?}, it was {first:?}")
        })?;
        Ok(is_first)
    }

    /// The sessions, and why they are over.
    pub(crate) fn over(&self) -> &BTreeMap<SessionId, SessionEnd> {
        &self.over
    }
}
