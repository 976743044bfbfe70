//! The interface of a class, as far as the machine needs it to decide and to schedule.
//!
//! The whole interface (types, docs, errors) stays in the module's custom section; engines read it
//! from there once and hand the machine this extract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names::MethodName;

/// What the machine knows of a class's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassInterface {
    /// Methods, handlers and `init`, by name.
    pub methods: BTreeMap<MethodName, Method>,
    /// Objects vanish when they are as `init` left them and nobody needs them.
    pub transient: bool,
    /// Hash of the layout of the object's state: names and types of its fields.
    pub layout: u64,
}

/// One method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Method {
    /// Who may invoke it, and what it may do.
    pub kind: MethodKind,
    /// Ignores its caller's fate and deadline.
    pub detached: bool,
    /// Hash of the types of parameters, result and error.
    pub signature: u64,
    /// How many parameters it takes.
    pub parameters: u32,
}

/// Kinds of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MethodKind {
    /// Ordered; may do everything that a client's call may.
    Update,
    /// Not ordered; reads only.
    Read,
    /// Not callable by clients: for timers and watches.
    Handler,
    /// Runs once when an object is created; may not block.
    Init,
    /// Brings the state of an object from the layout before to that of its class; may not block.
    Migrate,
}

impl MethodKind {
    /// Whether an invocation may go on in such a method.
    pub(crate) const fn can_be_continued_with(self) -> bool {
        matches!(self, Self::Update | Self::Handler)
    }
}

impl ClassInterface {
    /// The method that creates objects, if the class has one.
    #[must_use]
    pub fn init(&self) -> Option<(&MethodName, &Method)> {
        self.methods.iter().find(|(_, method)| method.kind == MethodKind::Init)
    }
}
