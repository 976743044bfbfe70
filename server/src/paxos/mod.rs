//! Paxos: the only code that touches the omnipaxos crate.
//!
//! A [`Node`] is one group in one configuration on one replica, sans-IO: messages, ticks and
//! entries go in, messages and decided entries come out, and everything it must not forget goes to
//! the [`log`](crate::log). The crate has two bugs that lose decided entries and several sharp
//! edges; `node.rs` lists the workarounds, and each has a test that fails without it.
//!
//! One turn of a driver, for all nodes that share a log:
//! 1. any number of inputs (`handle_message`, `append`, `tick`, `reconnected`);
//! 2. `take_early_messages` of every node, and send them;
//! 3. one `sync` of the log;
//! 4. `take_late_messages` of every node, and send them; `read_decided` and apply.
//!
//! Invariants: between 2 and 4 a node takes no input, and late messages leave only when the log is
//! durable; both are asserted.
//! Not here: connections (messages of one peer to another arrive in the order sent, without gaps,
//! or both ends call `reconnected`), snapshots, reconfiguration, and what entries mean.

mod ballot;
mod codec;
mod config;
mod entry;
mod gate;
mod message;
mod node;
mod outside;
mod storage;
#[cfg(test)]
mod tests;

pub use ballot::Ballot;
pub use codec::{DecodeError, EncodeError, MAX_FRAME_BYTES, decode, encode};
pub use config::{ConfigError, MAX_REPLICA_ID, NodeConfig, Workarounds};
pub use entry::{LogEntry, MAX_ENTRY_BYTES};
pub use gate::PeerFault;
pub use message::{MessageKind, PeerPaxosMessage};
pub use node::{AppendError, Leader, Node, NodeError, Received};
pub(crate) use storage::lock;
pub use storage::{
    SharedLog, begin_sync, end_sync, lack, make_room, needs_sync, share, sync, syncs,
};
