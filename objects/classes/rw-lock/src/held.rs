//! What is kept of holds.

use gesmas_sdk::prelude::*;

use crate::HolderInfo;

/// An owner.
pub(crate) type Me = (Session, u64);

/// What is kept of a hold.
#[derive(Clone, Value)]
pub(crate) struct Held {
    pub(crate) session: Session,
    pub(crate) owner: u64,
    pub(crate) holds: u32,
    pub(crate) since: Time,
}

impl Held {
    /// The hold with this token, as others see it.
    pub(crate) fn info(self, token: u64, writes: bool) -> HolderInfo {
        let Self { session, owner, holds, since } = self;
        HolderInfo { token, writes, session, owner, holds, since }
    }
}

/// What is kept of the writer.
#[derive(Value)]
pub(crate) struct Writer {
    pub(crate) token: u64,
    pub(crate) held: Held,
    pub(crate) permit: Permit,
}

/// What is kept of a session with holds.
#[derive(Value)]
pub(crate) struct Watch {
    pub(crate) alarm: Alarm,
    pub(crate) holds: u32,
}
