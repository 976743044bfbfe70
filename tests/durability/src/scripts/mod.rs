//! The scripts: for each standard class, logs in which its methods wait wherever they can.
//!
//! Invariant: what a script says about a class (its points, that its other methods never wait) is
//! what the test demands, so that a class which learns to wait elsewhere needs a longer script.
//! Not here: whether the class is right in every respect; its own crate tests that.

mod barrier;
mod counter;
mod election;
mod lock;
mod queue;
mod register;

use gesmas_machine::Limits;

use crate::writer::Writer;

/// A log of one class.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The class.
    pub class: &'static str,
    /// Limits of the group.
    pub limits: fn() -> Limits,
    /// Writes it.
    pub write: fn(&mut Writer<'_>),
}

/// A standard class.
#[derive(Clone, Copy, Debug)]
pub struct Standard {
    /// Its name.
    pub name: &'static str,
    /// Its suspension points: method, which `P` of the call, semaphore.
    pub points: &'static [(&'static str, u32, &'static str)],
    /// The logs that reach them.
    pub scripts: &'static [Script],
}

/// All of them, by name.
pub const ALL: [Standard; 6] = [
    barrier::BARRIER,
    counter::COUNTER,
    election::ELECTION,
    lock::LOCK,
    queue::QUEUE,
    register::REGISTER,
];
