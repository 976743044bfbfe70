//! What the macros build on: how a class is opened, how its methods end.
//!
//! The macros only name things; what is done is written here, where a reader and a compiler find
//! it. Class authors need none of it by name.

use gesmas_abi::{
    Malformed, Reader,
    interface::ClassField,
    value::{Type, Value, to_bytes},
};

pub use crate::failure::ErrorEnum;
use crate::failure::MethodError;

/// A struct of handles. `#[class]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a class",
    note = "mark the struct with `#[class]`"
)]
pub trait State: Sized {
    /// Name of the class.
    const NAME: &'static str;
    /// What it is for.
    const DOCS: &'static str;
    /// Its objects vanish when they are as `init` left them.
    const TRANSIENT: bool;
    /// Its fields, for the interface.
    const FIELDS: &'static [ClassField];

    /// The handles to the state of the object that is running.
    fn open() -> Self;
}

/// How the run of a method ended.
///
/// A native engine gets it from `host::NativeClass::run`. A module tells the
/// host the same by its last call, and never sees the last three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// `Ok`, with the encoded result.
    Returned(Vec<u8>),
    /// `Err`, with the encoded error of the class.
    Failed(Vec<u8>),
    /// `Err(Cancelled)`.
    Cancelled,
    /// The arguments do not decode.
    ArgumentsMalformed(String),
    /// `ctx::abort`, with the encoded error of the class.
    Aborted(Vec<u8>),
    /// `ctx::continue_with`.
    Continue {
        /// The method.
        method: String,
        /// Its encoded arguments.
        arguments: Vec<u8>,
    },
    /// A panic, with its message and place.
    Panicked(String),
}

impl Finish {
    /// The arguments do not decode.
    #[must_use]
    pub fn malformed(reason: Malformed) -> Self {
        Self::ArgumentsMalformed(reason.0.into())
    }
}

/// What a method may return.
#[diagnostic::on_unimplemented(
    message = "a method cannot return `{Self}`",
    note = "return `Result<T>` or `Result<T, E>` with an enum marked `#[error]`"
)]
pub trait Returned {
    /// Its result.
    type Output: Value;
    /// Its error.
    type Error: MethodError;

    /// Ends the method.
    fn finish(self) -> Finish;
}

impl Returned for () {
    type Output = ();
    type Error = crate::Cancelled;

    fn finish(self) -> Finish {
        Finish::Returned(Vec::new())
    }
}

impl<T: Value, E: MethodError> Returned for Result<T, E> {
    type Output = T;
    type Error = E;

    fn finish(self) -> Finish {
        match self {
            Ok(value) => Finish::Returned(to_bytes(&value)),
            Err(error) => error.finish(),
        }
    }
}

/// Type of the result of a method that returns `R`.
#[must_use]
pub const fn result_type<R: Returned>() -> Type {
    <R::Output as Value>::TYPE
}

/// Type of the error of a method that returns `R`.
#[must_use]
pub const fn error_type<R: Returned>() -> Option<Type> {
    <R::Error as MethodError>::TYPE
}

/// Runs a method: decodes its arguments, all of them, opens the state, calls the body. While the body
/// runs, a large argument is in memory once.
pub fn run<S: State, A, R: Returned>(
    arguments: Vec<u8>,
    decode: impl FnOnce(&mut Reader<'_>) -> Result<A, Malformed>,
    body: impl FnOnce(&mut S, A) -> R,
) -> Finish {
    let mut reader = Reader::new(&arguments);
    let decoded = decode(&mut reader).and_then(|decoded| reader.end().map(|()| decoded));
    drop(arguments);
    match decoded {
        Ok(decoded) => body(&mut S::open(), decoded).finish(),
        Err(reason) => Finish::malformed(reason),
    }
}
