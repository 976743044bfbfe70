//! What takes back what a request was granted, if nobody takes the grant.
//!
//! A cancel may come too late: then a request that its caller has given up ends with a grant, a lock say,
//! which the session would hold for nobody. So a request that is granted something is made with its undo,
//! and whoever finds that nobody takes the grant makes the request that the undo names, in the same
//! session.
//! Invariant: a grant with an undo goes to its caller or into the undo, never both and never neither.

use std::{fmt, sync::Arc};

use gesmas_protocol::{Bytes, RequestBody};

type Name = dyn Fn(&Bytes) -> Option<RequestBody> + Send + Sync;

/// Names the request that takes back what another one was granted, by its result.
#[derive(Clone)]
pub(crate) struct Undo(Arc<Name>);

impl Undo {
    pub(crate) fn new(
        name: impl Fn(&Bytes) -> Option<RequestBody> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(name))
    }

    /// The request; none when nothing was granted.
    pub(crate) fn of(&self, result: &Bytes) -> Option<RequestBody> {
        (self.0)(result)
    }
}

impl fmt::Debug for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undo")
    }
}

/// Equal are an undo and its clones.
impl PartialEq for Undo {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Undo {}
