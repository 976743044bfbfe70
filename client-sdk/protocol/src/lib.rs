//! The client protocol of gesmas: frames, messages, errors, versions; no I/O.
//!
//! A connection carries [`ClientMessage`]s one way and [`ServerMessage`]s the other, each in a frame
//! of its own (`frame.rs`). Many sessions share a connection; every message names its session.
//! Invariants: nothing that a peer sends makes this crate panic or allocate more than a small
//! multiple of what it sent; whatever is not understood completely is refused completely.
//! Deliberately absent: sockets, time, retries (the client library) and any type of the machine, so
//! that the protocol changes only when somebody changes the protocol.

mod admin;
mod client_message;
mod encoding;
mod error;
mod frame;
mod message;
mod server_message;

pub use bytes::Bytes;

pub use crate::{
    admin::{
        AdminError, AdminReply, AdminRequest, ClassDetail, ClassState, ClassSummary, ClassTrial,
        ClusterStatus, FaultSummary, InvocationState, InvocationSummary, LimitSummary,
        ObjectDetail, ObjectSummary, OwnerSummary, PermitHolder, PinnedCode, SemaphoreDetail,
        SessionSummary, StateEntry, TimerKind, TimerSummary,
    },
    error::{
        CallError, CancelReason, CodeHash, ErrorCode, ErrorId, LimitExceeded, ModuleError,
        ModuleErrorKind, OverReason, ReadError, Refusal, Trap, TrapKind,
    },
    frame::{Frame, FrameDecoder, FrameError},
    message::{
        Acknowledge, Acknowledged, Admin, AdminAnswer, Alive, AttachSession, Cancel, ClientMessage,
        CloseSession, ErrorMessage, Event, EventGap, GoingAway, Hello, KeepAlive, OnBehalf,
        OpenSession, Outcome, Position, Read, ReadReply, Refused, Replace, Reply, Request,
        RequestBody, ServerMessage, SessionAttached, SessionOpened, SessionOver, SessionRefused,
        Welcome,
    },
};

/// The version of the protocol that this crate speaks: of frames and of messages.
pub const VERSION: u16 = 1;

/// Greatest body of a frame, bytes, that either side may ever send: sixteen times the default
/// limit of a module, an argument or a reply, so that lists of an administrator fit too. A side may
/// take less and says so (`Welcome::frame_bytes`).
pub const BODY_MAX: u32 = 16 << 20;
