//! Checkers that do not depend on what clients do.
//!
//! Each says what must hold of any run, and sees everything it needs as it happens.

mod history;
mod replies;
mod sessions;

pub(crate) use self::{history::History, replies::Replies, sessions::Sessions};
