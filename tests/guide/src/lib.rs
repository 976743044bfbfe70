//! The code of the documentation, so that it compiles as long as the documentation stands.
//!
//! Invariant: each page of the guide with Rust code is named here; its blocks are tests of the documentation of this
//! crate. They are compiled and not run: most of them wait for a cluster.

/// See the file's head.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/recipes.md")]
pub struct Recipes;

/// See the file's head.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts.md")]
pub struct Concepts;
