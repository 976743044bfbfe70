//! Classes in other languages, compiled and put through the same work as a class in Rust.
//!
//! [`Language`] compiles them, with the compilers that `tests/languages/prepare` finds or installs;
//! [`history`] writes down all that callers and operators see of a class while a seed draws what is
//! done to it. Two classes that promise the same have equal histories for every seed.
//! Invariants: nothing is written into the folders of sources; a language whose compiler cannot be had
//! fails its tests, unless `GESMAS_LANGUAGES` says that it is not wanted; a history depends on the seed
//! and on the class, and on nothing of how long its code takes or how much fuel.
//! Not here: several replicas and faults. They cannot tell in which language a module was written.

mod draw;
pub mod history;
mod language;
mod sampler;

pub use crate::{
    language::Language,
    sampler::{Browsed, Sampler, SamplerError},
};
