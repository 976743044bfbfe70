//! Handles to an object's state, which lives in the kernel.
//!
//! A field of a class is a handle named by the field. It holds nothing itself: every method of it
//! is one host call, and what another call changed while this one was blocked is seen at once.
//! Methods that change state take `&mut self`, so that a `read` method cannot even be written to
//! change something.
//! Invariant: a value in the store that does not decode was written by a class of another layout,
//! which the kernel keeps apart; so it panics.

mod deque;
mod map;
mod portion;
mod semaphore;
mod set;
mod value;

use gesmas_abi::interface::{ClassField, FieldKind, Type};

pub use crate::ctx::Permit;
pub use deque::Deque;
pub use map::{Entries, Map};
pub use portion::Portion;
pub use semaphore::{Holder, Owner, Semaphore, SemaphoreMap};
pub use set::{Keys, Set};
pub use value::Value;

/// What a field of a class may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handle to state",
    label = "a field of a class is a handle",
    note = "use Value<T>, Map<K, V>, Set<K>, Deque<T>, Semaphore or SemaphoreMap<K>"
)]
pub trait Handle {
    /// What it is.
    const KIND: FieldKind;
    /// Type of its keys.
    const KEY: Option<Type>;
    /// Type of its values.
    const VALUE: Option<Type>;

    /// The handle of this field.
    fn open(name: &'static str) -> Self;
}

/// The field of this name as the interface lists it.
#[must_use]
pub const fn field<H: Handle>(name: &'static str) -> ClassField {
    ClassField { name, kind: H::KIND, key: H::KEY, value: H::VALUE }
}
