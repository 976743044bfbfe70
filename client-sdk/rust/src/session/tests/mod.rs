//! A session against a scripted server (each test is one story) and against a model of the cluster.

mod grants;
mod leases;
mod liveness;
mod model;
mod requests;
mod shared;

use std::time::Duration;

use gesmas_protocol::{
    Bytes, CallError, CancelReason, ClientMessage, OnBehalf, Position, Refusal, Refused, Reply,
    Request, RequestBody,
};

use super::core::{Output, SessionCore, SessionState};
use super::reads::ReadTarget;
use super::settings::SessionSettings;
use crate::clock::Moment;

const SESSION: u64 = 7;

struct Bench {
    core: SessionCore<&'static str>,
    now: Moment,
}

impl Bench {
    /// A session that is not connected yet.
    fn new() -> Self {
        Self { core: SessionCore::new(SessionSettings::default(), 1, 42), now: Moment::at(1 << 50) }
    }

    /// A session that is open and has said its first keep-alive.
    fn open() -> Self {
        let mut bench = Self::new();
        bench.core.handle_connected(1_000);
        assert!(matches!(bench.sent()[..], [ClientMessage::OpenSession(_)]));
        bench.core.handle_opened(bench.now, SESSION, Duration::from_secs(9));
        assert!(matches!(bench.sent()[..], [ClientMessage::KeepAlive(_)]));
        assert_eq!(bench.outputs(), [Output::State(SessionState::Connected)]);
        bench
    }

    fn call(&mut self, name: &'static str) -> u64 {
        self.core.call(body("Queue", name), None, name, None)
    }

    fn sent(&mut self) -> Vec<ClientMessage> {
        let mut messages = Vec::new();
        self.core.poll_transmit(self.now, &mut |message| messages.push(message.clone()));
        messages
    }

    /// What was sent of requests and cancels: `number<predecessor`, a cancel with `!`.
    fn requests(&mut self) -> Vec<String> {
        let sent = self.sent();
        sent.iter()
            .filter_map(|message| match message {
                ClientMessage::Request(Request { number, previous, .. }) => {
                    Some(format!("{number}<{previous}"))
                }
                ClientMessage::Cancel(cancel) => {
                    Some(format!("!{}<{}", cancel.number, cancel.previous))
                }
                _ => None,
            })
            .collect()
    }

    fn outputs(&mut self) -> Vec<Output<&'static str>> {
        std::iter::from_fn(|| self.core.poll_output()).collect()
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.core.handle_timeout(self.now);
    }

    fn reply(&mut self, number: u64) {
        self.end(number, Ok(&format!("end of {number}")));
    }

    fn cancelled(&mut self, number: u64) {
        self.end(number, Err(CallError::Cancelled(CancelReason::Caller)));
    }

    fn end(&mut self, number: u64, outcome: Result<&str, CallError>) {
        let outcome = outcome.map(|result| Bytes::from(result.to_owned()));
        let position = Position { epoch: 0, step: number };
        self.core.handle_reply(self.now, Reply { session: SESSION, number, position, outcome });
    }

    fn refuse(&mut self, number: u64, refusal: Refusal) {
        self.core.handle_refused(self.now, Refused { session: SESSION, number, refusal, id: None });
    }
}

fn body(class: &str, method: &str) -> RequestBody {
    RequestBody::Call {
        class: class.into(),
        object: "jobs".into(),
        method: method.into(),
        signature: 0,
        arguments: Bytes::new(),
        on_behalf: OnBehalf::Requester,
    }
}

fn read_target() -> ReadTarget {
    ReadTarget {
        class: "Queue".into(),
        object: "jobs".into(),
        method: "length".into(),
        signature: 0,
        arguments: Bytes::new(),
        stale: false,
        anonymous: false,
    }
}

fn end(name: &'static str, number: u64) -> Output<&'static str> {
    Output::Resolved(name, Ok(Bytes::from(format!("end of {number}"))))
}
