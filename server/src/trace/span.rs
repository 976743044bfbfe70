//! What is known of a span when it ends, as plain data.
//!
//! Invariant: making one copies no text that is long: names are shared, codes are mostly constants.
//! Not here: what a collector gets to see of it (`convert.rs`).

use std::{borrow::Cow, time::SystemTime};

use gesmas_machine::{InvocationId, MethodName, ObjectName};
use opentelemetry::trace::SpanContext;

/// A span that has ended.
#[derive(Debug)]
pub(crate) enum Span {
    /// An ordered call, from its request to its reply.
    Call(CallSpan),
    /// A read, from its request to its reply.
    Read(ReadSpan),
    /// A request over HTTP.
    Http(Box<HttpSpan>),
}

/// What a call is for.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) object: ObjectName,
    /// None for the creation of the object, which runs `init`.
    pub(crate) method: Option<MethodName>,
}

/// An ordered call, as the replica sees it that its client is connected to.
#[derive(Debug)]
pub(crate) struct CallSpan {
    pub(crate) subject: Subject,
    pub(crate) session: u64,
    pub(crate) number: u64,
    /// The span of the HTTP request that made it.
    pub(crate) parent: Option<SpanContext>,
    pub(crate) start: SystemTime,
    pub(crate) end: SystemTime,
    /// Where it blocked first.
    pub(crate) blocked: Option<Blocked>,
    /// Whether the reply went to a client that is connected here.
    pub(crate) replied: bool,
    pub(crate) outcome: CallEnd,
}

/// That a call blocked.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// When this replica saw it.
    pub(crate) at: SystemTime,
    pub(crate) invocation: InvocationId,
    pub(crate) semaphore: Vec<u8>,
}

/// How a call or read ended.
#[derive(Debug)]
pub(crate) struct CallEnd {
    /// `ok`, or the stable code of the error or refusal.
    pub(crate) code: Cow<'static, str>,
    /// Whether it is a failure that neither the class nor the caller meant.
    pub(crate) failed: bool,
    /// Step in which it ended; none for what was not admitted.
    pub(crate) step: Option<u64>,
    /// What finds it in the log.
    pub(crate) id: Option<u64>,
}

/// A read.
#[derive(Debug)]
pub(crate) struct ReadSpan {
    pub(crate) subject: Subject,
    /// The session whose requests it follows.
    pub(crate) session: Option<u64>,
    /// Whether it was answered from what the replica had.
    pub(crate) stale: bool,
    pub(crate) start: SystemTime,
    pub(crate) end: SystemTime,
    pub(crate) outcome: CallEnd,
}

/// A request over HTTP.
#[derive(Debug)]
pub(crate) struct HttpSpan {
    pub(crate) context: SpanContext,
    /// The caller's span, as `traceparent` says.
    pub(crate) parent: Option<SpanContext>,
    pub(crate) method: &'static str,
    pub(crate) route: String,
    pub(crate) path: String,
    pub(crate) start: SystemTime,
    pub(crate) end: SystemTime,
    /// None when its client hung up.
    pub(crate) status: Option<u16>,
    /// Stable code of its failure.
    pub(crate) code: Option<String>,
    pub(crate) call: HttpCall,
}

/// The call that a request over HTTP makes, as far as it came to one.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpCall {
    /// Class, object and method.
    pub(crate) target: Option<(String, String, String)>,
    /// Session and number of the call.
    pub(crate) place: Option<(u64, u64)>,
}
