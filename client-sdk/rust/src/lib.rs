//! The Rust client of gesmas.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use gesmas_client::Client;
//!
//! let client = Client::builder().endpoints(["127.0.0.1:7101", "127.0.0.1:7102"]).connect().await?;
//! let session = client.session().open().await?;
//! // Class crates give typed stubs over a session; this is what lies below them.
//! # let (signature, arguments) = (0, vec![]);
//! let reply = session.invoke("Counter", "visits", "increment", signature, arguments).await?;
//! # drop(reply);
//! # Ok(())
//! # }
//! ```
//!
//! - A [`Client`] owns one connection, to whichever replica answers, and reconnects by itself.
//! - [`Session`]s share it. A session survives reconnects; its calls start in the order in which
//!   they were made, each exactly once.
//! - What a session takes, a lock say, is held by a [`Hold`], which gives it back when it is dropped.
//!   Taking it is safe to cancel: afterwards either the caller has it, or nobody has.
//! - A failed call says what is known of its effect: [`CallFailure::Unknown`] when nobody can tell,
//!   and nothing is tried again in a new session.
//! - Code of classes that the client was given is shipped when it is needed, unseen by the caller.
//!
//! Invariant: what decides (sessions, the hub) is free of sockets and clocks and tested so; only
//! `connection.rs` and `driver.rs` touch the outside.

mod admin;
mod attachment;
mod call;
mod client;
mod clock;
mod command;
mod connection;
mod driver;
mod events;
mod failure;
mod guard;
mod handle;
mod holds;
mod hub;
mod openings;
mod session;
mod session_builder;
mod shipping;
mod stub;

pub use gesmas_protocol as protocol;

pub use crate::{
    admin::{InvocationFilter, Page},
    attachment::{Attachment, KeyedCall},
    call::{Call, PendingCall, PendingRead, Read},
    client::{Client, ClientBuilder},
    clock::Clock,
    driver::LinkState,
    events::Events,
    failure::{
        AdminFailure, CallFailure, ConnectError, Fate, NotSentReason, OpenError, UnknownReason,
    },
    guard::Guard,
    handle::Session,
    holds::{Election, Hold, Lease, LeaseHold, Lock, Member, Membership, RwLock, Semaphore, Taken},
    session::core::{SessionEvent, SessionState},
    session_builder::SessionBuilder,
};
