//! Everything that can wake the driver.

use std::time::Instant;

use bytes::Bytes;
use gesmas_coroutine::Compiled;
use gesmas_machine::{ClassInterface, ClassName, CodeHash, Command, Replace};
use gesmas_protocol::ClientMessage;
use tokio::sync::{mpsc, oneshot};

use super::{outbox::Outbox, secret::Tags};

/// Names a connection of a client while this process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(pub(super) u64);

/// One input of the driver.
pub(super) enum Input {
    /// Time for a tick.
    Tick,
    /// A client connected.
    ClientConnected {
        connection: ConnectionId,
        principal: String,
        /// Takes messages for it; dropping it ends the connection.
        outbox: Outbox,
    },
    /// A client's connection has ended.
    ClientGone(ConnectionId),
    /// A client said something.
    Client(ConnectionId, ClientMessage),
    /// A connection to a peer stands.
    PeerUp {
        peer: u64,
        /// Takes frames for it; dropping it ends the connection.
        outbox: Outbox,
        /// What the frames have to have.
        tags: Tags,
    },
    /// A peer connected here; frames of earlier connections no longer count.
    PeerConnected {
        peer: u64,
        connection: u64,
        /// Dropping it ends the connection.
        held: oneshot::Sender<()>,
    },
    /// A peer's host says that nobody listens there.
    PeerGone(u64),
    /// A peer sent a frame.
    Peer { peer: u64, connection: u64, body: Bytes },
    /// A job with a snapshot's file has ended.
    SnapshotDone(crate::snapshot::Done),
    /// The keeper of snapshots panicked.
    KeeperBroke,
    /// A module was compiled, or could not be.
    Compiled(CompileDone),
    /// The process is to end.
    Stop,
}

/// The end of a compilation.
pub(super) struct CompileDone {
    pub(super) code: CodeHash,
    pub(super) result: Result<Compiled, String>,
    pub(super) reason: CompileReason,
}

/// Why a module is compiled.
pub(super) enum CompileReason {
    /// It is in the log: its end is reported to the group.
    Ordered,
    /// A client of this replica puts it: it goes into the log if it compiles.
    BeforeOrdering { connection: ConnectionId, command: Box<Command> },
    /// An operator asks how replacing a class by it would go.
    Trial(TrialRequest),
}

/// A replacement that is tried on a copy of the state.
pub(super) struct TrialRequest {
    pub(super) connection: ConnectionId,
    pub(super) correlation: u64,
    pub(super) class: ClassName,
    pub(super) code: CodeHash,
    pub(super) interface: ClassInterface,
    pub(super) replace: Replace,
}

/// The driver's end of the input queue.
pub(super) type Inputs = mpsc::Receiver<Input>;

/// The clocks of this host, as the core takes them.
pub(super) struct HostClock(Instant);

impl HostClock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// What the clocks say now.
    pub(super) fn now(&self) -> crate::replica::Moment {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanoseconds =
            |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        crate::replica::Moment {
            monotonic: nanoseconds(self.0.elapsed()),
            wall: wall.map_or(0, nanoseconds),
        }
    }
}
