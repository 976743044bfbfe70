//! Members, as they are kept and as others see them.

use gesmas_sdk::prelude::*;

/// What is kept of a member.
#[derive(Value)]
pub(crate) struct Kept {
    pub(crate) metadata: Bytes,
    pub(crate) token: u64,
    pub(crate) session: Session,
    pub(crate) since: Time,
}

impl Kept {
    /// The member of this name, as others see it.
    pub(crate) fn member(self, name: String) -> Member {
        let Self { metadata, token, session, since } = self;
        Member { name, metadata, token, session, since }
    }
}

/// What is kept of a session with members.
#[derive(Value)]
pub(crate) struct Watch {
    pub(crate) alarm: Alarm,
    /// How many it has; 0 while they leave since it is over.
    pub(crate) members: u32,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Member {
    /// Its name, which no other member has.
    pub name: String,
    /// What it says of itself.
    pub metadata: Bytes,
    /// What it changes and leaves with: a fencing token.
    pub token: u64,
    /// Its session.
    pub session: Session,
    /// Since when it is there.
    pub since: Time,
}

/// Some members, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, Value)]
pub struct Members {
    /// The members.
    pub members: Vec<Member>,
    /// The name after which the list goes on; none at its end.
    pub next: Option<String>,
}
