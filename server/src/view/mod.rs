//! What operators are shown, as JSON: one form for the command line and for HTTP.
//!
//! Not here: tables and texts (`cli/`), values of classes (`json/`).

pub(crate) mod chain;
pub(crate) mod class;
pub(crate) mod cluster;
pub(crate) mod fault;
pub(crate) mod invocation;
pub(crate) mod object;
pub(crate) mod session;
pub(crate) mod state;
