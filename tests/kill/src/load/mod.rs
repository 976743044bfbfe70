//! The load: clients of four kinds of objects, all in this process.
//!
//! Invariants: every call is in a book before it is made; every session is watched; a worker ends
//! soon after it is told to, unless a call of it hangs.
//! Not here: whether what happened is good (`checkers/`).

pub(crate) mod barrier;
pub(crate) mod counter;
mod desk;
pub(crate) mod lock;
pub(crate) mod queue;
mod worker;

pub(crate) use self::{
    desk::Desk,
    worker::{Line, Manner, Worker},
};
