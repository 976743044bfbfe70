//! Stories of requests: order, repetition, cancels, classes, deadlines, the end of the session.

use std::time::Duration;

use gesmas_protocol::{
    CallError, CancelReason, ClientMessage, LimitExceeded, OverReason, Position, Refusal, Reply,
};

use super::{Bench, SESSION, body, end};
use crate::failure::{CallFailure, NotSentReason, UnknownReason};
use crate::session::core::{Output, SessionState};

#[test]
fn calls_are_pipelined_in_order_and_their_replies_told_once() {
    let mut bench = Bench::open();
    for name in ["a", "b", "c"] {
        bench.call(name);
    }
    assert_eq!(bench.requests(), ["1<0", "2<1", "3<2"]);
    bench.reply(2);
    bench.reply(2);
    bench.reply(1);
    assert_eq!(bench.outputs(), [end("b", 2), end("a", 1)]);
}

#[test]
fn requests_lost_on_the_way_go_again_in_order() {
    let mut bench = Bench::open();
    for name in ["a", "b", "c"] {
        bench.call(name);
    }
    assert_eq!(bench.requests().len(), 3);
    bench.refuse(3, Refusal::OutOfOrder { last: 0 });
    assert_eq!(bench.requests(), [""; 0], "refusals of others may still be on their way");
    bench.pass(Duration::from_millis(5));
    assert_eq!(bench.requests(), ["1<0", "2<1", "3<2"]);
    bench.refuse(3, Refusal::OutOfOrder { last: 1 });
    bench.pass(Duration::from_millis(10));
    assert_eq!(bench.requests(), ["2<1", "3<2"]);
}

#[test]
fn a_new_connection_gets_all_open_requests_with_their_old_numbers() {
    let mut bench = Bench::open();
    for name in ["a", "b", "c"] {
        bench.call(name);
    }
    let first = bench.sent();
    bench.reply(2);
    bench.core.handle_disconnected();
    bench.call("d");
    assert_eq!(bench.sent(), []);
    assert_eq!(bench.outputs(), [end("b", 2), Output::State(SessionState::Suspended)]);

    bench.core.handle_connected(1_000);
    let [ClientMessage::AttachSession(attach)] = &bench.sent()[..] else { panic!("an attach") };
    assert_eq!((attach.session, attach.seen.step), (SESSION, 2));
    assert_eq!(attach.acknowledged.replies, [(2, 2)]);
    bench.core.handle_attached(bench.now, 0);
    let again = bench.sent();
    let requests: Vec<_> =
        again.iter().filter(|message| matches!(message, ClientMessage::Request(_))).collect();
    assert_eq!(requests[..2], [&first[0], &first[2]], "the very same requests");
    let ClientMessage::Request(fourth) = requests[2] else { panic!("a request") };
    assert_eq!((fourth.number, fourth.previous), (4, 3));
    assert_eq!(fourth.acknowledged.replies, [(2, 2)], "an announcement is confirmed by nobody");
}

#[test]
fn a_cancel_takes_the_place_of_its_request() {
    let mut bench = Bench::open();
    for name in ["a", "b", "c"] {
        bench.call(name);
    }
    assert_eq!(bench.requests().len(), 3);
    bench.core.cancel(2);
    assert_eq!(bench.requests(), ["!2<1"]);
    // The cancel overtook everything: nothing was admitted.
    bench.refuse(2, Refusal::OutOfOrder { last: 0 });
    bench.pass(Duration::from_millis(5));
    assert_eq!(bench.requests(), ["1<0", "!2<1", "3<2"]);
    bench.reply(2);
    assert_eq!(bench.outputs(), [], "nobody waits for the end of what was given up");
}

#[test]
fn a_request_that_was_never_sent_is_given_up_without_a_trace() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.call(name);
    }
    bench.core.cancel(2);
    bench.core.handle_connected(1_000);
    bench.core.handle_opened(bench.now, SESSION, Duration::from_secs(9));
    assert_eq!(bench.requests(), ["1<0", "3<1"]);
}

#[test]
fn the_end_of_a_withdrawn_request_is_told() {
    let mut bench = Bench::open();
    for name in ["a", "b"] {
        bench.call(name);
    }
    assert_eq!(bench.requests(), ["1<0", "2<1"]);
    bench.core.withdraw(1);
    bench.core.withdraw(1);
    assert_eq!(bench.requests(), ["!1<0"], "once");
    bench.reply(1);
    assert_eq!(bench.outputs(), [end("a", 1)]);
    // One that was withdrawn before it was sent is sent as a cancel: somebody else may have sent it.
    bench.call("c");
    bench.core.withdraw(3);
    assert_eq!(bench.requests(), ["!3<2"]);
    bench.core.handle_disconnected();
    bench.core.handle_connected(1_000);
    bench.core.handle_attached(bench.now, 0);
    assert_eq!(bench.requests(), ["2<1", "!3<2"], "and again on every connection");
    bench.reply(3);
    assert!(bench.outputs().contains(&end("c", 3)));
}

#[test]
fn the_server_never_has_more_open_requests_than_it_takes() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.call(name);
    }
    bench.core.handle_connected(2);
    bench.core.handle_opened(bench.now, SESSION, Duration::from_secs(9));
    assert_eq!(bench.requests(), ["1<0", "2<1"]);
    bench.reply(2);
    assert_eq!(bench.requests(), ["3<2"]);
}

#[test]
fn acknowledgements_ride_on_requests_or_go_alone_after_a_while() {
    let mut bench = Bench::open();
    for name in ["a", "b", "c", "d"] {
        bench.call(name);
    }
    assert_eq!(bench.requests().len(), 4);
    for number in [1, 2, 4] {
        bench.reply(number);
    }
    bench.call("e");
    let [ClientMessage::Request(fifth)] = &bench.sent()[..] else { panic!("a request") };
    assert_eq!(fifth.acknowledged.replies, [(1, 2), (4, 4)]);
    bench.reply(3);
    assert_eq!(bench.sent(), []);
    bench.pass(Duration::from_millis(200));
    let [ClientMessage::Acknowledge(alone)] = &bench.sent()[..] else { panic!("one message") };
    assert_eq!(alone.acknowledged.replies, [(3, 3)]);
}

#[test]
fn a_missing_class_is_asked_for_once_and_the_pipeline_goes_on_behind_it() {
    let mut bench = Bench::open();
    for name in ["a", "b", "c"] {
        bench.call(name);
    }
    assert_eq!(bench.requests().len(), 3);
    bench.refuse(1, Refusal::ClassUnknown { class: "Queue".into() });
    bench.refuse(2, Refusal::OutOfOrder { last: 0 });
    bench.refuse(3, Refusal::OutOfOrder { last: 0 });
    assert_eq!(bench.outputs(), [Output::ClassNeeded("Queue".into(), None)]);
    bench.call("d");
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.requests(), [""; 0], "all waits for the class");
    bench.core.class_settled(bench.now, "Queue", None);
    assert_eq!(bench.requests(), ["1<0", "2<1", "3<2", "4<3"]);
    bench.refuse(1, Refusal::ClassPending { class: "Queue".into() });
    assert_eq!(bench.requests(), [""; 0]);
    bench.pass(Duration::from_millis(20));
    assert_eq!(bench.requests(), ["1<0", "2<1", "3<2", "4<3"]);
}

#[test]
fn a_request_whose_class_cannot_be_had_makes_way() {
    let mut bench = Bench::open();
    bench.call("a");
    bench.core.call(body("Other", "b"), None, "b", None);
    assert_eq!(bench.requests().len(), 2);
    let refusal = Refusal::ClassUnknown { class: "Queue".into() };
    bench.refuse(1, refusal.clone());
    bench.refuse(2, Refusal::OutOfOrder { last: 0 });
    assert_eq!(bench.outputs(), [Output::ClassNeeded("Queue".into(), None)]);
    let failure = CallFailure::Refused(refusal, None);
    bench.core.class_settled(bench.now, "Queue", Some(&failure));
    assert_eq!(bench.requests(), ["!1<0", "2<1"]);
    assert_eq!(bench.outputs(), [], "a copy of it may still be admitted");
    bench.cancelled(1);
    assert_eq!(bench.outputs(), [Output::Resolved("a", Err(failure))]);
}

#[test]
fn a_call_dropped_while_its_class_is_shipped_makes_way_at_once() {
    let mut bench = Bench::open();
    bench.call("a");
    bench.call("b");
    assert_eq!(bench.requests().len(), 2);
    bench.refuse(1, Refusal::ClassUnknown { class: "Queue".into() });
    bench.core.cancel(1);
    assert_eq!(bench.requests(), ["!1<0", "2<1"]);
}

#[test]
fn a_final_refusal_is_told_and_its_place_is_taken_by_a_cancel() {
    let mut bench = Bench::open();
    bench.call("a");
    bench.call("b");
    assert_eq!(bench.requests().len(), 2);
    let refusal = Refusal::Limit(LimitExceeded { name: "argument_bytes".into(), limit: 10 });
    bench.refuse(1, refusal.clone());
    assert_eq!(bench.requests(), ["!1<0", "2<1"]);
    assert_eq!(bench.outputs(), [], "a copy of it may still be admitted");
    bench.cancelled(1);
    assert_eq!(bench.outputs(), [Output::Resolved("a", Err(CallFailure::Refused(refusal, None)))]);
}

/// Replicas send requests on more than once: a late copy of one that was refused may be admitted before its
/// cancel, and then that is what became of it.
#[test]
fn a_refused_request_of_which_a_copy_runs_has_its_outcome() {
    let mut bench = Bench::open();
    bench.call("a");
    assert_eq!(bench.requests().len(), 1);
    let refusal = Refusal::Limit(LimitExceeded { name: "argument_bytes".into(), limit: 10 });
    bench.refuse(1, refusal);
    assert_eq!(bench.requests(), ["!1<0"]);
    bench.reply(1);
    assert_eq!(bench.outputs(), [Output::Resolved("a", Ok("end of 1".into()))]);
}

#[test]
fn a_busy_server_is_asked_again_after_growing_pauses() {
    let mut bench = Bench::open();
    bench.call("a");
    for pause in [5, 10, 20, 40] {
        assert_eq!(bench.requests(), ["1<0"]);
        bench.refuse(1, Refusal::Busy);
        bench.pass(Duration::from_micros(pause * 500 - 1));
        assert_eq!(bench.requests(), [""; 0], "not before half of {pause} ms");
        bench.pass(Duration::from_micros(pause * 500 + 1));
    }
    assert_eq!(bench.requests(), ["1<0"]);
}

#[test]
fn the_end_of_the_session_leaves_sent_calls_unknown_and_others_unsent() {
    let mut bench = Bench::open();
    bench.call("a");
    assert_eq!(bench.requests(), ["1<0"]);
    bench.core.handle_disconnected();
    bench.call("b");
    bench.outputs();
    bench.core.handle_connected(1_000);
    bench.core.handle_over(OverReason::Expired);
    let unknown = CallFailure::Unknown(UnknownReason::SessionOver(OverReason::Expired));
    let unsent = CallFailure::NotSent(NotSentReason::SessionOver(OverReason::Expired));
    assert_eq!(
        bench.outputs(),
        [
            Output::Resolved("a", Err(unknown)),
            Output::Resolved("b", Err(unsent.clone())),
            Output::State(SessionState::Lost(OverReason::Expired)),
        ]
    );
    bench.call("c");
    assert_eq!(bench.outputs(), [Output::Resolved("c", Err(unsent))]);
    bench.core.handle_connected(1_000);
    assert_eq!(bench.requests(), [""; 0], "nothing is tried again");
}

#[test]
fn a_deadline_without_connection_is_unknown_only_for_what_was_sent() {
    let mut bench = Bench::open();
    let deadline = Some(bench.now + Duration::from_secs(2));
    bench.core.call(body("Queue", "a"), deadline, "a", None);
    assert_eq!(bench.requests(), ["1<0"]);
    bench.core.handle_disconnected();
    bench.core.call(body("Queue", "b"), deadline, "b", None);
    bench.outputs();
    bench.pass(Duration::from_secs(2));
    let unknown = CallFailure::Unknown(UnknownReason::Deadline);
    let unsent = CallFailure::NotSent(NotSentReason::Deadline);
    assert_eq!(
        bench.outputs(),
        [Output::Resolved("a", Err(unknown)), Output::Resolved("b", Err(unsent))]
    );
    bench.core.handle_connected(1_000);
    bench.core.handle_attached(bench.now, 0);
    assert_eq!(bench.requests(), ["!1<0"], "it must not start after its deadline");
}

#[test]
fn a_connected_call_waits_a_little_for_the_server_to_tell_its_deadline() {
    let mut bench = Bench::open();
    let deadline = Some(bench.now + Duration::from_secs(2));
    bench.core.call(body("Queue", "a"), deadline, "a", None);
    bench.core.call(body("Queue", "b"), deadline, "b", None);
    let sent = bench.sent();
    let ClientMessage::Request(request) = &sent[0] else { panic!("a request") };
    assert_eq!(request.time_left_ns, Some(2_000_000_000));
    bench.pass(Duration::from_secs(2));
    assert_eq!(bench.outputs(), []);
    let cancelled = CallError::Cancelled(CancelReason::Deadline);
    bench.core.handle_reply(
        bench.now,
        Reply {
            session: SESSION,
            number: 1,
            position: Position::default(),
            outcome: Err(cancelled.clone()),
        },
    );
    let failure = CallFailure::Failed(cancelled, None);
    assert_eq!(bench.outputs(), [Output::Resolved("a", Err(failure))]);
    bench.pass(Duration::from_secs(1));
    let unknown = CallFailure::Unknown(UnknownReason::Deadline);
    assert_eq!(bench.outputs()[0], Output::Resolved("b", Err(unknown)));
    assert!(bench.requests().contains(&"!2<1".into()));
}

#[test]
fn a_forgotten_request_is_unknown_and_holds_nobody_up() {
    let mut bench = Bench::open();
    bench.call("a");
    assert_eq!(bench.requests(), ["1<0"]);
    bench.refuse(1, Refusal::Forgotten);
    let unknown = CallFailure::Unknown(UnknownReason::Forgotten);
    assert_eq!(bench.outputs(), [Output::Resolved("a", Err(unknown))]);
    bench.call("b");
    assert_eq!(bench.requests(), ["2<1"]);
}
