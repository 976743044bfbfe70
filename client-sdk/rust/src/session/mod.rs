//! Sessions: the lease on the service, and all that is asked for under it.
//!
//! `core.rs` and the files below it are sans-IO; the hub feeds them.

mod acknowledgements;
pub(crate) mod core;
mod keep_alives;
pub(crate) mod pacing;
mod pipeline;
pub(crate) mod reads;
mod refusal;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod undo;
