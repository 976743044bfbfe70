//! Classes: modules, their interfaces, and how far they are compiled.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{class::ClassInterface, code::CodeHash, names::SessionId};

/// A class by its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Class {
    pub(crate) code: CodeHash,
    #[serde(with = "shared_bytes")]
    pub(crate) module: Arc<[u8]>,
    pub(crate) interface: ClassInterface,
    pub(crate) status: ClassStatus,
}

/// How far a class is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClassStatus {
    /// Replicas compile it.
    Pending {
        /// What replicas have reported: why they could not compile it, or nothing.
        reports: BTreeMap<u64, Option<String>>,
        /// Requests that wait for it.
        puts: Vec<(SessionId, u64)>,
    },
    /// A majority has it compiled: it can be called.
    Ready,
}

mod shared_bytes {
    //! Encodes shared bytes as bytes.

    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        Vec::<u8>::deserialize(from).map(Arc::from)
    }
}
