//! The interface of a class: what its module tells about itself in a custom section.
//!
//! Two forms with one encoding: constants ([`Class`], [`Type`]) that a macro can place into a
//! module, and owned values ([`Interface`], [`TypeOwned`]) that hosts and tools decode.
//! Invariants: decoding is bounded in depth, counts and size; a decoded interface has the signature
//! and the layout that its types give, at most one `init`, and no method or field twice.
//! Not here: the grammar of names, which the machine checks, and JSON, which the tools do.

mod constant;
mod decode;
mod encode;
mod owned;
#[cfg(test)]
mod tests;
mod types;

use alloc::{string::String, vec::Vec};

pub use constant::{Class, ClassField, ClassMethod};
pub use owned::{NamedOwned, TypeOwned, VariantOwned};
pub use types::{Named, Type, Variant};

/// Greatest nesting of types.
pub const TYPE_DEPTH_MAX: usize = 16;
/// Greatest number of methods, handlers and `init` together.
pub const METHODS_MAX: usize = 256;
/// Greatest number of fields of a class, of a record or of a variant, and of parameters.
pub const FIELDS_MAX: usize = 256;
/// Greatest number of variants of a choice: one byte tells them apart.
pub const VARIANTS_MAX: usize = 256;

/// Kinds of methods; the number is the byte in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MethodKind {
    /// Ordered; may do everything that a client's call may.
    Update = 0,
    /// Not ordered; reads only.
    Read = 1,
    /// Not callable by clients: for timers and watches.
    Handler = 2,
    /// Runs once when an object is created; may not block.
    Init = 3,
    /// Brings an object from the layout before to that of the class; takes nothing, may not block.
    Migrate = 4,
}

/// Kinds of a class's fields; the number is the byte in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FieldKind {
    /// One value, at the field's name in the object's store.
    Value = 0,
    /// A map: has a type of keys and one of values.
    Map = 1,
    /// A deque: has a type of items.
    Deque = 2,
    /// A set: has a type of keys.
    Set = 3,
    /// A semaphore, named like the field.
    Semaphore = 4,
    /// Semaphores named at run time: the field's name, a zero byte, a key.
    SemaphoreMap = 5,
}

/// A decoded interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Version of the ABI that the module speaks.
    pub abi: u32,
    /// Name of the class.
    pub class: String,
    /// What the class is for.
    pub docs: String,
    /// Objects vanish when they are as `init` left them and nobody needs them.
    pub transient: bool,
    /// Hash of the names, kinds and types of the fields.
    pub layout: u64,
    /// The state of an object.
    pub fields: Vec<Field>,
    /// Methods, handlers and `init`.
    pub methods: Vec<Method>,
}

/// A field of a class: a part of an object's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: FieldKind,
    /// Type of its keys, for the kinds that have keys.
    pub key: Option<TypeOwned>,
    /// Type of its values or items, for the kinds that have some.
    pub value: Option<TypeOwned>,
}

/// A method of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// What it does.
    pub docs: String,
    /// Who may invoke it, and what it may do.
    pub kind: MethodKind,
    /// Ignores its caller's fate and deadline.
    pub detached: bool,
    /// Its parameters, in order.
    pub parameters: Vec<NamedOwned>,
    /// Type of its result.
    pub result: TypeOwned,
    /// Type of its errors, when it has errors other than its cancellation.
    pub error: Option<TypeOwned>,
    /// Hash of kind, types of parameters, result and error. Not of names of parameters and docs.
    pub signature: u64,
}

impl Interface {
    /// The method of this name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// The method that creates objects, if the class has one.
    #[must_use]
    pub fn init(&self) -> Option<&Method> {
        self.methods.iter().find(|method| method.kind == MethodKind::Init)
    }

    /// This interface with the layout and the signatures that its types give.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.layout = self.compute_layout();
        for method in &mut self.methods {
            method.signature = method.compute_signature();
        }
        self
    }
}
