//! The shell of a replica: sockets, threads and clocks around the core.
//!
//! ```text
//! clients ─┐                         ┌─► clients and peers (`outbox.rs`)
//! peers   ─┼─► driver                │
//! ticks   ─┤   core, log, kernel ────┼─► compiler (a thread and a child process)
//! compiler─┤                         └─► keeper of snapshots (a thread)
//! keeper  ─┘
//! ```
//!
//! One task, the driver, owns the core and takes its work from one closed enum of inputs through one
//! bounded queue. It shares its thread with the sockets' tasks, on a runtime of its own: waking
//! another thread costs more than a call. A client that reads slower than it is written to is cut
//! off and comes back; a full input queue holds up the sockets.
//! Not here: what inputs mean (`replica/`), and the command line (`cli/`).

mod admin;
mod clients;
mod compiler;
mod config;
mod convert;
mod descriptors;
mod driver;
mod errors;
mod input;
mod keeper;
mod lines;
mod outbox;
mod outputs;
mod peers;
mod questions;
mod recover;
mod requests;
mod router;
mod secret;
mod serve;
mod sessions;
mod spans;
mod standard;
mod syncer;
mod trial;
mod vestibule;

pub(crate) use self::secret::Secret;
pub use self::{
    config::{
        CompileConfig, Config, ConfigError, HttpConfig, KernelConfig, LogConfig, Member,
        QueueConfig, SnapshotConfig, Timing, TracingConfig,
    },
    descriptors::{Bounds, Descriptors, reserve as descriptors_reserved},
    serve::{ServeError, Server, start, start_among, start_with},
};
