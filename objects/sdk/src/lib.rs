//! What the author of a gesmas class writes with.
//!
//! A class is a struct of *handles* to state that lives in the kernel, and methods that run there
//! one at a time, in the same order on every replica:
//!
//! ```
//! use gesmas_sdk::prelude::*;
//!
//! /// A rendezvous: two parties meet and swap values.
//! #[class(transient)]
//! pub struct Rendezvous {
//!     place: Semaphore,
//!     offers: Deque<Bytes>,
//!     answers: Deque<Bytes>,
//! }
//!
//! #[methods]
//! impl Rendezvous {
//!     /// Offers a value; blocks until the other party comes, and returns its value.
//!     pub fn swap(&mut self, value: Bytes) -> Result<Bytes> {
//!         if let Some(other) = self.offers.pop_front() {
//!             self.answers.push_back(value);
//!             self.place.v();
//!             return Ok(other);
//!         }
//!         self.offers.push_back(value);
//!         if let Err(cancelled) = self.place.p() {
//!             self.offers.pop_front();
//!             return Err(cancelled);
//!         }
//!         Ok(self.answers.pop_front().expect("who woke us has left an answer"))
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! # The rules
//!
//! - `pub fn` is a method that clients call; `fn` is a private helper. `#[init] fn` runs once when
//!   an object is created, `#[handler] fn` for timers and watches, `#[migrate] fn` when the class got
//!   another layout; `#[read] pub fn` is not ordered, `#[detached] pub fn` outlives its caller.
//! - A method runs alone until it blocks: nothing happens in between, so no locks are needed. What
//!   happens between two suspensions is one atomic *segment*: a panic or [`ctx::abort`] undoes it.
//!   Returning `Err` does not: what was done stands.
//! - Each call runs in a fresh instance: nothing survives in statics or on the heap. State is what
//!   the handles hold: [`state::Value`], [`state::Map`], [`state::Set`], [`state::Deque`],
//!   [`state::Semaphore`].
//! - Arguments and results are owned values, `&str` or `&[u8]`. Own types derive `Value`.
//!   No floats and no `HashMap`: replicas must compute equal bytes.
//! - Methods return [`Result<T>`](Result), or `Result<T, E>` with an error enum marked
//!   [`#[error]`](error).
//! - The time, randomness and everything else about the call come from [`ctx`].
//! - A list that one call returns, and the work that one handler does, are bounded in number and in bytes:
//!   [`state::Portion`]. A handler whose work can fail sets a timer for the next attempt before it begins:
//!   [`ctx::continue_with`] shows how.
//! - An argument of the greatest size, a megabyte of the four that an instance has, is in memory once when
//!   the method begins, and so is a value that was stored or read. A method that holds two more at one time
//!   has room for nothing else.
//!
//! The crate of a class is an ordinary library crate. `gesmas-build` compiles it to WebAssembly from
//! a build script, `gesmas class build` from the command line; off WebAssembly the same crate gives
//! the typed client stub ([`stub`]) and the native class ([`host::NativeClass`]).
//! Invariant of this crate: no feature flags; the target alone decides what is there.

pub mod class;
pub mod ctx;
mod failure;
pub mod host;
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod stub;

/// The binary interface below, for what the macros emit and for tools.
pub use gesmas_abi as abi;
/// Makes a struct of handles a class. `#[class(transient)]`: its objects vanish when they are as
/// `init` left them and nobody waits, owns, or is awaited. The `init` of such a class takes nothing.
pub use gesmas_macros::class;
/// Makes an enum the error of a class's methods: it becomes a value, an
/// [`Error`](std::error::Error) whose text is each variant's documentation, and, if it has a variant
/// `Cancelled`, convertible from [`Cancelled`], so that `?` works on what blocks. A
/// [`NotAcquired`] for want of a session becomes the variant `NoSession`, if there is one.
///
/// ```
/// use gesmas_sdk::prelude::*;
///
/// #[error]
/// pub enum TicketError {
///     /// the ticket is not known
///     Unknown { ticket: u64 },
///     /// the call was cancelled
///     Cancelled,
/// }
/// # fn main() { assert_eq!(TicketError::Cancelled.to_string(), "the call was cancelled") }
/// ```
pub use gesmas_macros::error;
/// Makes the functions of an `impl` block the methods of a class. See the [crate](self) for how
/// `pub`, `#[init]`, `#[read]`, `#[handler]`, `#[migrate]` and `#[detached]` tell them apart.
///
/// For each handler and method it also defines a constant with its name in capitals, which
/// [`ctx::after`], [`ctx::watch_session`] and [`ctx::continue_with`] take.
pub use gesmas_macros::methods;

pub use failure::{Cancelled, MethodError, NotAcquired, Result};

/// All that a class usually needs.
pub mod prelude {
    pub use gesmas_abi::value::{Bytes, Time};
    /// Makes a struct or enum a value: usable in arguments, results and state.
    ///
    /// Small items take more memory than their encoding: half a million flags fit into one argument, and
    /// as an enum into 8 MiB. A class that bounds a list says `#[value(keep = N)]` at the items' type,
    /// with one more than the bound. Of a longer list only the first N items are decoded into memory, and the
    /// class refuses it by its length.
    ///
    /// ```
    /// use gesmas_sdk::{abi::value::from_bytes, prelude::*};
    ///
    /// #[derive(Debug, PartialEq, Value)]
    /// #[value(keep = 2)]
    /// enum Step {
    ///     Forward,
    ///     Back,
    /// }
    /// # fn main() {
    /// let three = [3, 0, 0, 0, 0, 1, 0];
    /// assert_eq!(from_bytes(&three), Ok(vec![Step::Forward, Step::Back]));
    /// # }
    /// ```
    pub use gesmas_macros::Value;
    pub use gesmas_macros::{class, error, methods};

    pub use crate::{
        Cancelled, NotAcquired, Result, ctx,
        ctx::{Alarm, Session},
        state::{Deque, Holder, Map, Owner, Permit, Portion, Semaphore, SemaphoreMap, Set, Value},
    };
    pub use core::time::Duration;
    pub use std::collections::{BTreeMap, BTreeSet};
}
