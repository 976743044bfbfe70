//! Stories of sessions that are not this client's alone: attached ones, and keyed calls.

use gesmas_protocol::{Alive, Bytes, ClientMessage, Event, OverReason, Position, Refusal};

use super::{Bench, SESSION, end};
use crate::{
    failure::{CallFailure, NotSentReason},
    session::{
        core::{Output, SessionCore, SessionEvent, SessionState},
        settings::{Role, SessionSettings},
    },
};

const FINGERPRINT: u64 = 1 << 40;

impl Bench {
    fn with_role(role: Role) -> Self {
        let settings = SessionSettings { role, ..SessionSettings::default() };
        let core = SessionCore::new(settings, 1, 42);
        Self { core, ..Self::new() }
    }

    fn attached() -> Self {
        let mut bench = Self::with_role(Role::Guest { session: SESSION });
        bench.core.handle_connected(1_000);
        assert!(matches!(&bench.sent()[..], [ClientMessage::AttachSession(attach)]
            if attach.session == SESSION && attach.acknowledged.events == 0));
        bench.core.handle_attached(bench.now, 99);
        assert!(matches!(bench.sent()[..], [ClientMessage::KeepAlive(_)]));
        assert_eq!(bench.outputs(), [Output::State(SessionState::Connected)]);
        bench
    }

    fn single() -> Self {
        let mut bench = Self::with_role(Role::Single { number: FINGERPRINT });
        bench.call("k");
        bench.core.handle_connected(1_000);
        let timeout = std::time::Duration::from_secs(9);
        bench.core.handle_opened(bench.now, SESSION, timeout);
        assert_eq!(bench.requests(), [format!("{FINGERPRINT}<0")]);
        bench.outputs();
        bench
    }

    fn event(&mut self, number: u64) {
        let payload = Bytes::from_static(b"news");
        let event = Event { session: SESSION, number, position: Position::default(), payload };
        self.core.handle_event(event);
    }
}

#[test]
fn a_guest_hears_events_and_leaves_without_a_word() {
    let mut bench = Bench::attached();
    bench.event(4);
    let event = |number| {
        let (position, payload) = (Position::default(), Bytes::from_static(b"news"));
        Output::Event(SessionEvent::Event { number, position, payload })
    };
    assert_eq!(bench.outputs(), [event(4)]);
    bench.core.replay(bench.now, 3);
    let sent = bench.sent();
    let [ClientMessage::AttachSession(attach), ..] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(attach.acknowledged.events, 3);
    bench.core.handle_attached(bench.now, 99);
    bench.event(3);
    bench.event(4);
    assert_eq!(bench.outputs(), [event(4)], "what comes after the third comes again");
    bench.core.leave();
    assert!(bench.sent().is_empty(), "the session is not closed");
    assert!(bench.core.is_over());
}

#[test]
fn a_probe_is_answered_by_a_keep_alive_that_left_after_it() {
    let mut bench = Bench::attached();
    bench.core.probe(bench.now, "p");
    let alive = |correlation| Alive { session: SESSION, correlation, last_admitted: 99 };
    let sent = bench.sent();
    let [ClientMessage::KeepAlive(keep)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(keep.correlation, 2);
    bench.core.handle_alive(bench.now, &alive(1));
    assert!(bench.outputs().is_empty(), "that one had left before");
    bench.core.handle_alive(bench.now, &alive(2));
    assert_eq!(bench.outputs(), [Output::Resolved("p", Ok(Bytes::new()))]);
    bench.core.probe(bench.now, "q");
    bench.core.handle_over(OverReason::Expired);
    let over = CallFailure::NotSent(NotSentReason::SessionOver(OverReason::Expired));
    assert_eq!(bench.outputs()[0], Output::Resolved("q", Err(over)));
}

#[test]
fn a_keyed_call_has_the_number_of_its_fingerprint_and_keeps_its_reply() {
    let mut bench = Bench::single();
    bench.core.handle_disconnected();
    bench.core.handle_connected(1_000);
    bench.core.handle_attached(bench.now, FINGERPRINT);
    assert!(bench.requests().is_empty(), "it was admitted: its reply comes by itself");
    bench.reply(FINGERPRINT);
    assert!(bench.outputs().contains(&end("k", FINGERPRINT)));
    bench.pass(std::time::Duration::from_secs(1));
    let acknowledges = |message: &ClientMessage| matches!(message, ClientMessage::Acknowledge(_));
    assert!(!bench.sent().iter().any(acknowledges), "whoever asks again wants the reply too");
}

#[test]
fn a_key_that_was_used_for_another_call_is_told() {
    let refused = |last| {
        let failure = CallFailure::Refused(Refusal::OutOfOrder { last }, None);
        Output::Resolved("k", Err(failure))
    };
    let mut bench = Bench::single();
    bench.refuse(FINGERPRINT, Refusal::OutOfOrder { last: 5 });
    assert_eq!(bench.outputs(), [refused(5)]);
    let mut bench = Bench::single();
    bench.refuse(FINGERPRINT, Refusal::OutOfOrder { last: FINGERPRINT });
    assert!(bench.outputs().is_empty(), "it is the one, and runs");
    let mut bench = Bench::single();
    bench.refuse(FINGERPRINT, Refusal::Forgotten);
    let forgotten = CallFailure::Refused(Refusal::Forgotten, None);
    assert_eq!(bench.outputs(), [Output::Resolved("k", Err(forgotten))]);
    let mut bench = Bench::single();
    bench.core.handle_disconnected();
    bench.core.handle_connected(1_000);
    bench.core.handle_attached(bench.now, FINGERPRINT + 1);
    assert!(bench.outputs().contains(&refused(FINGERPRINT + 1)));
}
