//! Stories of reads, keep-alives and events.

use std::time::Duration;

use gesmas_protocol::{
    Alive, Bytes, ClientMessage, Event, EventGap, Position, ReadError, ReadReply, Refusal,
};

use super::{Bench, SESSION, read_target};
use crate::session::core::{Output, SessionEvent, SessionState};

#[test]
fn a_read_follows_the_requests_before_it() {
    let mut bench = Bench::new();
    bench.call("a");
    bench.call("b");
    bench.core.read(30, 2, read_target(), None, "r");
    bench.core.cancel(2);
    bench.core.handle_connected(1);
    bench.core.handle_opened(bench.now, SESSION, Duration::from_secs(9));
    bench.call("c");
    bench.core.read(31, 3, read_target(), None, "s");
    let sent = bench.sent();
    let [.., ClientMessage::Request(_), ClientMessage::Read(read)] = &sent[..] else {
        panic!("one request (the window is 1) and the first read: {sent:?}")
    };
    assert_eq!((read.correlation, read.after), (30, 1), "2 was given up unsent");
    bench.reply(1);
    let sent = bench.sent();
    let [ClientMessage::Request(_), ClientMessage::Read(read)] = &sent[..] else {
        panic!("the third request, then the second read: {sent:?}")
    };
    assert_eq!((read.correlation, read.after, read.seen.step), (31, 3, 1));
    let busy = Err(ReadError::Refused(Refusal::Busy));
    let position = Position { epoch: 0, step: 9 };
    let reply = |correlation, result| ReadReply { correlation, position, result, id: None };
    bench.core.handle_read_reply(bench.now, reply(30, busy));
    bench.core.handle_read_reply(bench.now, reply(31, Ok(Bytes::from_static(b"2"))));
    bench.core.handle_read_reply(bench.now, reply(31, Ok(Bytes::from_static(b"2"))));
    bench.outputs().into_iter().for_each(|output| {
        if let Output::Resolved(name, result) = output {
            assert!(name == "a" || (name == "s" && result == Ok(Bytes::from_static(b"2"))));
        }
    });
    bench.pass(Duration::from_millis(5));
    assert!(matches!(&bench.sent()[..], [ClientMessage::Read(read)] if read.correlation == 30));
}

#[test]
fn silence_of_the_server_is_noticed_and_doubt_grows_into_loss_only_by_its_word() {
    let mut bench = Bench::open();
    bench
        .core
        .handle_alive(bench.now, &Alive { session: SESSION, correlation: 1, last_admitted: 0 });
    assert_eq!(bench.core.poll_timeout(), Some(bench.now + Duration::from_secs(3)));
    bench.pass(Duration::from_secs(3));
    assert!(matches!(bench.sent()[..], [ClientMessage::KeepAlive(_)]));
    bench.pass(Duration::from_secs(3));
    assert_eq!(bench.outputs(), [Output::Unresponsive]);
    bench.core.handle_disconnected();
    bench.pass(Duration::from_secs(3));
    assert_eq!(
        bench.outputs(),
        [Output::State(SessionState::Suspended), Output::Doubtful(true)],
        "nothing was heard for the whole timeout of 9 s"
    );
    bench.core.handle_connected(1_000);
    bench.core.handle_attached(bench.now, 0);
    let sent = bench.sent();
    let [_, ClientMessage::KeepAlive(keep_alive)] = &sent[..] else { panic!("{sent:?}") };
    let correlation = keep_alive.correlation;
    bench.core.handle_alive(bench.now, &Alive { session: SESSION, correlation, last_admitted: 0 });
    assert_eq!(bench.outputs(), [Output::State(SessionState::Connected), Output::Doubtful(false)]);
}

#[test]
fn a_request_that_vanished_is_found_by_keep_alives() {
    let mut bench = Bench::open();
    bench.call("a");
    assert_eq!(bench.requests(), ["1<0"]);
    for correlation in 1..=2 {
        let alive = Alive { session: SESSION, correlation, last_admitted: 0 };
        bench.core.handle_alive(bench.now, &alive);
        assert_eq!(bench.requests(), [""; 0], "it may still be on its way");
        bench.pass(Duration::from_secs(3));
        bench.sent();
    }
    let alive = Alive { session: SESSION, correlation: 3, last_admitted: 0 };
    bench.core.handle_alive(bench.now, &alive);
    assert_eq!(bench.requests(), ["1<0"]);
}

#[test]
fn events_come_once_and_gaps_are_told() {
    let mut bench = Bench::open();
    let event = |number| Event {
        session: SESSION,
        number,
        position: Position { epoch: 0, step: number },
        payload: Bytes::new(),
    };
    let told = |number| {
        let Event { number, position, payload, .. } = event(number);
        Output::Event(SessionEvent::Event { number, position, payload })
    };
    bench.core.handle_event(event(1));
    bench.core.handle_event(event(1));
    bench.core.handle_event_gap(&EventGap { session: SESSION, from: 1, to: 4 });
    bench.core.handle_event(event(5));
    let gap = Output::Event(SessionEvent::Gap { from: 2, to: 4 });
    assert_eq!(bench.outputs(), [told(1), gap, told(5)]);
    bench.core.consume_events(bench.now, 5);
    bench.pass(Duration::from_millis(200));
    assert!(matches!(&bench.sent()[..],
        [ClientMessage::Acknowledge(alone)] if alone.acknowledged.events == 5));
}
