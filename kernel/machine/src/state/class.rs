//! Classes: modules, their interfaces, and how far they are compiled.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{class::ClassInterface, code::CodeHash, command::Replace, names::SessionId};

/// A class by its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Class {
    pub(crate) code: CodeHash,
    #[serde(with = "shared_bytes")]
    pub(crate) module: Arc<[u8]>,
    pub(crate) interface: ClassInterface,
    pub(crate) status: ClassStatus,
    /// Code that it had before and that something may still need, oldest first.
    pub(crate) older: Vec<Version>,
    /// What is to take the code's place.
    pub(crate) next: Option<Box<Replacement>>,
}

/// Code of a class at some time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) code: CodeHash,
    #[serde(with = "shared_bytes")]
    pub(crate) module: Arc<[u8]>,
    pub(crate) interface: ClassInterface,
}

/// New code on its way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Replacement {
    pub(crate) version: Version,
    pub(crate) replace: Replace,
    /// What replicas have reported, as of a class that is pending.
    pub(crate) reports: Reports,
    /// Requests that wait for it.
    pub(crate) puts: Vec<(SessionId, u64)>,
}

/// What replicas have reported: why they could not compile code, or nothing.
pub(crate) type Reports = BTreeMap<u64, Option<String>>;

/// How far a class is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClassStatus {
    /// Replicas compile it.
    Pending {
        /// What replicas have reported: why they could not compile it, or nothing.
        reports: Reports,
        /// Requests that wait for it.
        puts: Vec<(SessionId, u64)>,
    },
    /// A majority has it compiled: it can be called.
    Ready,
}

impl Class {
    /// The interface of its code, or of code that it had before.
    pub(crate) fn interface_of(&self, code: CodeHash) -> Option<&ClassInterface> {
        if self.code == code {
            return Some(&self.interface);
        }
        self.older.iter().find(|version| version.code == code).map(|version| &version.interface)
    }

    /// Takes other code, and gives what it had.
    fn become_version(&mut self, version: Version) -> Version {
        let Version { code, module, interface } = version;
        Version {
            code: std::mem::replace(&mut self.code, code),
            module: std::mem::replace(&mut self.module, module),
            interface: std::mem::replace(&mut self.interface, interface),
        }
    }

    /// Takes other code. What it had is older code from now on, once: code that was there before
    /// keeps its place, which is that of the layout that objects passed.
    pub(crate) fn replace_code(&mut self, version: Version) {
        let old = self.become_version(version);
        if self.older.iter().all(|older| older.code != old.code) {
            self.older.push(old);
        }
    }

    /// Older code that an object with the code at this place passes before it has the class's code:
    /// what came after it, up to where the class's code was before, if it comes back.
    pub(crate) fn passed_from(&self, place: usize) -> impl Iterator<Item = &Version> {
        let newer = &self.older[place + 1..];
        newer.iter().take_while(|version| version.code != self.code)
    }

    /// The code that replicas compile.
    pub(crate) fn compiling(&self) -> Option<CodeHash> {
        match (&self.next, &self.status) {
            (Some(next), _) => Some(next.version.code),
            (None, ClassStatus::Pending { .. }) => Some(self.code),
            (None, ClassStatus::Ready) => None,
        }
    }

    /// What they have reported of it.
    pub(crate) fn reports(&self) -> Option<&Reports> {
        match (&self.next, &self.status) {
            (Some(next), _) => Some(&next.reports),
            (None, ClassStatus::Pending { reports, .. }) => Some(reports),
            (None, ClassStatus::Ready) => None,
        }
    }

    /// The same, to add a report.
    pub(crate) fn reports_mut(&mut self) -> Option<&mut Reports> {
        match (&mut self.next, &mut self.status) {
            (Some(next), _) => Some(&mut next.reports),
            (None, ClassStatus::Pending { reports, .. }) => Some(reports),
            (None, ClassStatus::Ready) => None,
        }
    }

    /// Requests that wait for it.
    pub(crate) fn puts(&self) -> impl Iterator<Item = &(SessionId, u64)> {
        let first = match &self.status {
            ClassStatus::Pending { puts, .. } => puts.as_slice(),
            ClassStatus::Ready => &[],
        };
        first.iter().chain(self.next.iter().flat_map(|next| &next.puts))
    }

    /// One of them waits no longer.
    pub(crate) fn forget_put(&mut self, forgotten: (SessionId, u64)) {
        if let ClassStatus::Pending { puts, .. } = &mut self.status {
            puts.retain(|put| *put != forgotten);
        }
        if let Some(next) = &mut self.next {
            next.puts.retain(|put| *put != forgotten);
        }
    }

    /// The same, when the class is gone.
    pub(crate) fn into_puts(self) -> Vec<(SessionId, u64)> {
        let mut puts = match self.status {
            ClassStatus::Pending { puts, .. } => puts,
            ClassStatus::Ready => Vec::new(),
        };
        puts.extend(self.next.into_iter().flat_map(|next| next.puts));
        puts
    }

    /// All its code: what runs, or may be run when it is compiled.
    pub(crate) fn modules(&self) -> impl Iterator<Item = (CodeHash, &Arc<[u8]>)> {
        let older = self.older.iter().map(|version| (version.code, &version.module));
        let next = self.next.iter().map(|next| (next.version.code, &next.version.module));
        [(self.code, &self.module)].into_iter().chain(older).chain(next)
    }

    /// Code that must be compiled before anything runs.
    pub(crate) fn runnable(&self) -> impl Iterator<Item = CodeHash> {
        let current = (self.status == ClassStatus::Ready).then_some(self.code);
        current.into_iter().chain(self.older.iter().map(|version| version.code))
    }

    /// What tells it from another class of its name: all its code and how far it is.
    pub(crate) fn digest(&self) -> impl Serialize + '_ {
        let older: Vec<_> = self.older.iter().map(|version| version.code).collect();
        let next = self.next.as_ref();
        let next = next.map(|next| (next.version.code, next.replace, &next.reports, &next.puts));
        (self.code, &self.status, older, next)
    }
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
