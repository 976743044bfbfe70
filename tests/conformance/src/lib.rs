//! What clients in every language must do: one list of cases, which each language's runner has under the
//! same names, run against three real replicas.
//!
//! ```text
//! cases.json ──► this crate ──lines of JSON──► runner of a language ──HTTP──► replicas
//!                    │ kills, restarts, ends sessions when a runner asks for it
//!                    └──► runner of another language, to which one runner hands calls
//! ```
//! Invariants: a case counts as passed only if its runner says so; every language must have every case and
//! no other; nothing waits without a bound, and nothing sleeps in place of a condition.
//! Not here: what a case is in a language (`runners/`).

mod desk;
mod http;
mod list;
mod runner;

pub use crate::{
    desk::Desk,
    http::{Answer, post},
    list::{Case, cases},
    runner::{Face, PYTHON, PYTHON_ASYNCIO, TYPESCRIPT, prepare, run_unit_tests},
};

mod embedded {
    #![allow(unreachable_pub, reason = "the build helper writes for crates that export it")]
    include!(concat!(env!("OUT_DIR"), "/classes.rs"));
}

/// The module of the class `Echo`.
#[must_use]
pub const fn echo_module() -> &'static [u8] {
    embedded::MODULES[0].1
}
