//! Stories of grants: who has what was granted when its caller gives up, at each point where it can.

use std::time::Duration;

use gesmas_protocol::{CallError, CancelReason, OverReason, Refusal};

use super::{Bench, SESSION, body};
use crate::{
    failure::{CallFailure, UnknownReason},
    session::{
        core::{Output, SessionCore, SessionState},
        settings::{Role, SessionSettings},
        undo::Undo,
    },
};

/// Takes back anything but what is empty.
fn undo() -> Undo {
    Undo::new(|result| (!result.is_empty()).then(|| body("Lock", "unlock")))
}

impl Bench {
    /// Makes a call that may be granted something; gives its number.
    fn acquire(&mut self, deadline: Option<Duration>) -> u64 {
        let deadline = deadline.map(|deadline| self.now + deadline);
        self.core.call(body("Lock", "lock"), deadline, "l", Some(undo()))
    }
}

fn taken_back() -> Output<&'static str> {
    Output::Undo(body("Lock", "unlock"))
}

#[test]
fn a_grant_goes_to_its_caller_with_what_takes_it_back() {
    let mut bench = Bench::open();
    let number = bench.acquire(None);
    bench.requests();
    bench.end(number, Ok("token"));
    let outputs = bench.outputs();
    let [Output::Granted("l", granted, undo)] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(undo.of(granted), Some(body("Lock", "unlock")));
}

#[test]
fn a_grant_that_a_cancel_came_too_late_for_is_taken_back_once() {
    let mut bench = Bench::open();
    let number = bench.acquire(None);
    assert_eq!(bench.requests(), ["1<0"]);
    bench.core.cancel(number);
    assert_eq!(bench.requests(), ["!1<0"]);
    bench.end(number, Ok("token"));
    assert_eq!(bench.outputs(), [taken_back()]);
    bench.end(number, Ok("token"));
    assert_eq!(bench.outputs(), [], "the repetition of a reply grants nothing");
}

#[test]
fn what_was_withdrawn_or_grants_nothing_is_not_taken_back() {
    let withdrawn = Err(CallError::Cancelled(CancelReason::Caller));
    for end in [withdrawn, Ok("")] {
        let mut bench = Bench::open();
        let number = bench.acquire(None);
        bench.requests();
        bench.core.cancel(number);
        bench.end(number, end);
        assert_eq!(bench.outputs(), []);
    }
}

#[test]
fn what_was_never_sent_is_granted_nothing() {
    let mut bench = Bench::new();
    let number = bench.acquire(None);
    bench.core.cancel(number);
    bench.core.handle_connected(1_000);
    bench.core.handle_opened(bench.now, SESSION, Duration::from_secs(9));
    assert_eq!(bench.requests(), [""; 0]);
}

#[test]
fn a_grant_after_a_deadline_that_passed_without_word_is_taken_back() {
    let mut bench = Bench::open();
    let number = bench.acquire(Some(Duration::from_secs(2)));
    bench.requests();
    bench.core.handle_disconnected();
    bench.outputs();
    bench.pass(Duration::from_secs(2));
    let unknown = CallFailure::Unknown(UnknownReason::Deadline);
    assert_eq!(bench.outputs(), [Output::Resolved("l", Err(unknown))]);
    bench.core.handle_connected(1_000);
    bench.core.handle_attached(bench.now, number);
    bench.end(number, Ok("token"));
    let outputs = bench.outputs();
    assert!(outputs.contains(&taken_back()), "{outputs:?}");
}

#[test]
fn a_grant_is_taken_back_across_connections_and_repetitions() {
    let mut bench = Bench::open();
    let number = bench.acquire(None);
    bench.requests();
    bench.core.cancel(number);
    bench.core.handle_disconnected();
    bench.core.handle_connected(1_000);
    bench.core.handle_attached(bench.now, 0);
    assert_eq!(bench.requests(), ["!1<0"], "it was lost, and never runs");
    bench.refuse(number, Refusal::OutOfOrder { last: 0 });
    bench.pass(Duration::from_millis(5));
    assert_eq!(bench.requests(), ["!1<0"]);
    bench.end(number, Ok("token"));
    let outputs = bench.outputs();
    assert!(outputs.contains(&taken_back()), "an earlier copy was served: {outputs:?}");
}

#[test]
fn the_end_of_the_session_takes_back_by_itself() {
    let mut bench = Bench::open();
    let number = bench.acquire(None);
    bench.requests();
    bench.core.cancel(number);
    bench.core.handle_over(OverReason::Expired);
    let lost = Output::State(SessionState::Lost(OverReason::Expired));
    assert_eq!(bench.outputs(), [lost]);
}

#[test]
fn the_outcome_of_a_keyed_call_is_not_taken_from_others() {
    let settings =
        SessionSettings { role: Role::Single { number: 1 }, ..SessionSettings::default() };
    let mut bench = Bench { core: SessionCore::new(settings, 1, 42), ..Bench::new() };
    let number = bench.acquire(None);
    bench.core.handle_connected(1_000);
    bench.core.handle_opened(bench.now, SESSION, Duration::from_secs(9));
    bench.requests();
    bench.core.cancel(number);
    bench.outputs();
    bench.end(number, Ok("token"));
    assert_eq!(bench.outputs(), []);
}
