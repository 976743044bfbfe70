//! The one trait through which the machine runs the bodies of methods.
//!
//! An engine keeps *activations*: bodies that are running or suspended. The machine tells it to
//! start one, to go on with an answer, or to drop one; the engine runs the body until its next
//! host call or its end and says which. Nothing of an activation is state of the machine: it can
//! be dropped at any suspension and rebuilt from its journal.
//! Invariants an engine keeps: equal code, arguments and answers give equal calls, ends and fuel,
//! on every replica; a body's failure is an [`End`], never a panic of the engine; exhaustion of the
//! host (memory, pool slots) is a panic, since a replica that cannot run a body must stop.
//! Not here: scheduling, semaphores, undo. An engine knows none of them.

use serde::{Deserialize, Serialize};

use crate::{
    class::ClassInterface,
    code::CodeHash,
    host_call::{Answer, HostCall},
    limits::ModuleLimits,
    names::MethodName,
    outcome::{ModuleError, Trap},
};

/// Names an activation between [`Engine::start`] and its end or [`Engine::discard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActivationId(pub u64);

/// What an activation runs.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The code, known to be compiled ([`Engine::is_compiled`]).
    pub code: CodeHash,
    /// A method, handler or `init` of the code's interface.
    pub method: &'a MethodName,
    /// Its encoded arguments.
    pub arguments: &'a [u8],
    /// Memory of the instance, bytes; growing past it is [`Trap::OutOfMemory`].
    pub memory: u64,
}

/// Where a run of a body stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It made a host call and waits for the answer. The second part is the fuel it has left.
    Call(HostCall, u64),
    /// It ended; the activation is gone. The second part is the fuel it has left.
    End(End, u64),
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The method returned `Ok`, with its encoded result.
    Returned(Vec<u8>),
    /// The method returned `Err`, with the class's own encoded error.
    Failed(Vec<u8>),
    /// The method returned its cancellation.
    Cancelled,
    /// `ctx::abort`: the segment is to be undone. With the class's own encoded error.
    Aborted(Vec<u8>),
    /// `ctx::continue_with`: start over in another method, with an empty journal.
    Continue {
        /// The method.
        method: MethodName,
        /// Its encoded arguments.
        arguments: Vec<u8>,
    },
    /// The body failed: the segment is to be undone.
    Trapped(Trap),
}

/// What makes two engines equal for the machine: all of it is replicated state, and a replica with
/// another identity refuses to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineIdentity {
    /// Kind, version, target and settings, as one line for people.
    pub description: String,
    /// Hash over everything that can change a result or a fuel count.
    pub hash: [u8; 32],
}

/// Runs bodies. See the file's head for what an implementation promises.
pub trait Engine {
    /// What makes this engine equal to another.
    fn identity(&self) -> EngineIdentity;

    /// Checks a module by the rules of a version and reads its interface, which must name the
    /// class it is put as. Pure.
    ///
    /// # Errors
    /// [`ModuleError`] names the first rule the module breaks.
    fn inspect(
        &self,
        class: &str,
        module: &[u8],
        rules: u32,
        limits: &ModuleLimits,
    ) -> Result<ClassInterface, ModuleError>;

    /// Whether [`Engine::start`] can run this code at once.
    fn is_compiled(&self, code: CodeHash) -> bool;

    /// Starts a body and runs it until its first host call or its end.
    fn start(&mut self, id: ActivationId, entry: Entry<'_>, fuel: u64) -> Turn;

    /// Goes on after a host call. `fuel` replaces what was left.
    fn resume(&mut self, id: ActivationId, answer: &Answer, fuel: u64) -> Turn;

    /// Drops a suspended body. Host calls it makes while it unwinds are ignored.
    fn discard(&mut self, id: ActivationId);
}
