//! How a session behaves, and what it is to the session in the cluster.
//!
//! Not here: what the cluster decides, the granted timeout for one.

use std::time::Duration;

/// How a session behaves. All of it is the client's own affair.
#[derive(Clone, Debug)]
pub(crate) struct SessionSettings {
    /// The timeout to ask for.
    pub(crate) timeout: Duration,
    /// How long after its deadline a connected request still waits for the server's word.
    pub(crate) grace: Duration,
    /// After how long an idle session announces what it has received.
    pub(crate) acknowledge_after: Duration,
    /// First pause after a refusal that passes.
    pub(crate) pause_first: Duration,
    /// Longest pause after a refusal that passes.
    pub(crate) pause_longest: Duration,
    /// What it is to the session in the cluster.
    pub(crate) role: Role,
    /// Whether nobody can have opened the session before: its nonce was drawn for it.
    pub(crate) fresh: bool,
}

/// What a session of the client is to the one in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It makes all requests of it, and closes it.
    Owner,
    /// It only opens it, and leaves it at once to others, who may have it here already.
    Opener,
    /// The session is there already, and others have it too: it makes no requests and leaves it open.
    Guest {
        /// The session.
        session: u64,
    },
    /// It makes the one request that there is, perhaps not for the first time. The session is left
    /// open and the reply is not acknowledged, for whoever asks again.
    Single {
        /// Number of the request.
        number: u64,
    },
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            grace: Duration::from_secs(1),
            acknowledge_after: Duration::from_millis(200),
            pause_first: Duration::from_millis(5),
            pause_longest: Duration::from_millis(500),
            role: Role::Owner,
            fresh: true,
        }
    }
}
