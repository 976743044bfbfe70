//! A class on the native side: the host calls it makes, byte for byte, and the ways it ends.
//!
//! The port here is a script of responses. What calls *do* is tested where machine and engine are.

use std::{
    cell::RefCell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
};

use gesmas_sdk::{
    abi::{
        call::{Op, PStatus, Request, Response},
        interface::Interface,
        value::to_bytes,
    },
    class::Finish,
    host::{Port, install},
    prelude::*,
};

/// A queue and what else can happen in a method.
#[class]
pub struct Sample {
    items: Deque<Bytes>,
    filled: Semaphore,
    scores: Map<String, u32>,
    doors: SemaphoreMap<u16>,
}

/// How a sample fails.
#[error]
pub enum SampleError {
    /// there are too many
    TooMany {
        /// How many there are.
        count: u64,
    },
    /// the call was cancelled
    Cancelled,
}

/// Calls the host when it is dropped, as a careless guard would.
struct Careless;

impl Drop for Careless {
    fn drop(&mut self) {
        ctx::log("dropped");
        assert_eq!(ctx::fencing_token(), 0, "calls made while unwinding are ignored");
    }
}

#[methods]
impl Sample {
    /// Puts an item.
    pub fn put(&mut self, item: &[u8], times: u32) -> Result<()> {
        for _ in 0..times {
            self.items.push_back(item.into());
        }
        self.filled.v_n(times);
        Ok(())
    }

    /// Takes an item.
    pub fn take(&mut self) -> Result<Bytes> {
        self.filled.p()?;
        Ok(self.items.pop_front().expect("a permit is an item"))
    }

    /// Passes a door.
    pub fn pass(&mut self, door: u16) -> Result<bool, SampleError> {
        Ok(self.doors.at(&door).p_for(Duration::from_nanos(5))?)
    }

    /// Sums the scores.
    pub fn sum(&mut self) -> Result<u32, SampleError> {
        let sum: u32 = self.scores.iter().map(|(_, score)| score).sum();
        if sum > 10 { Err(SampleError::TooMany { count: sum.into() }) } else { Ok(sum) }
    }

    /// Gives up.
    pub fn give_up(&mut self, name: &str) -> Result<(), SampleError> {
        let _careless = Careless;
        ctx::abort(SampleError::TooMany { count: name.len() as u64 })
    }

    /// Starts over.
    pub fn again(&mut self) -> Result<()> {
        ctx::continue_with(Self::PASS, (7,))
    }
}

/// Responses to give, and the calls that were made.
#[derive(Default)]
struct Script {
    responses: RefCell<VecDeque<Response>>,
    calls: RefCell<Vec<String>>,
}

impl Port for Script {
    fn call(&self, op: u32, request: &[u8], take: &mut dyn FnMut(&[u8])) {
        let request = Request::decode(op, request).expect("the class speaks the ABI");
        self.calls.borrow_mut().push(format!("{request:?}"));
        let response = self.responses.borrow_mut().pop_front().expect("the script goes on");
        let mut encoded = Vec::new();
        response.encode(&mut encoded);
        let shape = Op::from_number(op).map(|op| Response::decode(op, &encoded));
        assert_eq!(shape, Some(Ok(response)), "the script answers in the form of the call");
        take(&encoded);
    }
}

/// Runs a method against responses; returns how it ended and the calls it made.
fn run(method: &str, arguments: &[u8], responses: Vec<Response>) -> (Finish, Vec<String>) {
    let script = Rc::new(Script { responses: RefCell::new(responses.into()), ..Script::default() });
    let before = install(Some(script.clone()));
    let finish = (Sample::native().run)(method, arguments);
    install(before);
    assert!(script.responses.borrow().is_empty(), "the class made fewer calls than expected");
    (finish, script.calls.take())
}

fn granted() -> Response {
    Response::P { status: PStatus::Granted, permit: 0 }
}

#[test]
fn interface_lists_what_is_public() {
    let native = Sample::native();
    let interface = Interface::decode(native.interface).unwrap();
    let names: Vec<_> = interface.methods.iter().map(|method| method.name.as_str()).collect();
    assert_eq!(names, ["put", "take", "pass", "sum", "give_up", "again"]);
    assert_eq!((native.name, native.version), ("Sample", env!("CARGO_PKG_VERSION")));
    assert_eq!(interface.docs, "A queue and what else can happen in a method.");
    assert_eq!(interface.method("take").unwrap().error, None);
    assert!(interface.method("sum").unwrap().error.is_some());
}

#[test]
fn handles_make_one_call_each() {
    let arguments = to_bytes(&(Bytes::from("ab"), 2_u32));
    let (finish, calls) = run("put", &arguments, vec![Response::Unit; 3]);
    assert_eq!(finish, Finish::Returned(vec![]));
    let push = "PushBack { deque: [105, 116, 101, 109, 115], value: [2, 0, 0, 0, 97, 98] }";
    let v = "V { count: 2, semaphore: [102, 105, 108, 108, 101, 100] }";
    assert_eq!(calls, [push, push, v]);

    let item = Response::Optional(Some(to_bytes(&Bytes::from("ab"))));
    let (finish, _) = run("take", &[], vec![granted(), item]);
    assert_eq!(finish, Finish::Returned(to_bytes(&Bytes::from("ab"))));
}

#[test]
fn semaphores_of_a_map_are_named_by_field_and_key() {
    let timed_out = Response::P { status: PStatus::TimedOut, permit: 0 };
    let (finish, calls) = run("pass", &to_bytes(&258_u16), vec![timed_out]);
    assert_eq!(finish, Finish::Returned(vec![0]));
    let name = "[100, 111, 111, 114, 115, 0, 1, 2]";
    assert_eq!(calls, [format!("P {{ wait: For(5), owner: Nobody, semaphore: {name} }}")]);
}

#[test]
fn cancellation_is_its_own_end_or_an_error_of_the_class() {
    let cancelled = Response::P { status: PStatus::Cancelled, permit: 0 };
    let (finish, _) = run("take", &[], vec![cancelled.clone()]);
    assert_eq!(finish, Finish::Cancelled);
    let (finish, _) = run("pass", &to_bytes(&1_u16), vec![cancelled]);
    assert_eq!(finish, Finish::Failed(to_bytes(&SampleError::Cancelled)));
    assert_eq!(to_bytes(&SampleError::Cancelled), [1]);
}

#[test]
fn maps_are_read_page_by_page() {
    let entry =
        |key: &str, score: u32| (gesmas_sdk::abi::key::to_key(&key.to_owned()), to_bytes(&score));
    let pages = vec![
        Response::Entries(vec![entry("a", 4), entry("b", 5)]),
        Response::Entries(vec![entry("c", 2)]),
        Response::Entries(vec![]),
    ];
    let (finish, calls) = run("sum", &[], pages);
    assert_eq!(finish, Finish::Failed(to_bytes(&SampleError::TooMany { count: 11 })));
    assert!(calls[1].contains("after: Some([98, 0, 0])"), "{}", calls[1]);
    assert!(calls[2].contains("after: Some([99, 0, 0])"), "{}", calls[2]);
}

#[test]
fn abort_and_continue_end_the_body_and_ignore_calls_on_the_way() {
    let (finish, calls) = run("give_up", &to_bytes(&"abc".to_owned()), vec![]);
    assert_eq!(finish, Finish::Aborted(to_bytes(&SampleError::TooMany { count: 3 })));
    assert_eq!(calls, [""; 0]);
    let (finish, _) = run("again", &[], vec![]);
    let arguments = to_bytes(&7_u16);
    assert_eq!(finish, Finish::Continue { method: "pass".into(), arguments });
}

#[test]
fn panics_end_with_message_and_place() {
    let (finish, _) = run("take", &[], vec![granted(), Response::Optional(None)]);
    let Finish::Panicked(message) = finish else { panic!("{finish:?}") };
    let line = message.strip_prefix("a permit is an item, objects/sdk/tests/native.rs:");
    assert!(line.is_some_and(|line| line.parse::<u32>().is_ok()), "{message}");
}

#[test]
fn arguments_that_do_not_decode_are_told() {
    let (finish, _) = run("take", &[1], vec![]);
    assert_eq!(finish, Finish::ArgumentsMalformed("bytes follow after its end".into()));
    let (finish, _) = run("pass", &[1], vec![]);
    assert_eq!(finish, Finish::ArgumentsMalformed("it ends too early".into()));
}

#[test]
fn unwinding_of_an_engine_passes_through() {
    struct Dropped;
    struct Unwinding;
    impl Port for Unwinding {
        fn call(&self, _: u32, _: &[u8], _: &mut dyn FnMut(&[u8])) {
            resume_unwind(Box::new(Dropped))
        }
    }
    let before = install(Some(Rc::new(Unwinding)));
    let unwound = catch_unwind(AssertUnwindSafe(|| (Sample::native().run)("take", &[])));
    install(before);
    assert!(unwound.is_err_and(|payload| payload.is::<Dropped>()));
}

#[test]
fn errors_say_what_their_documentation_says() {
    assert_eq!(SampleError::TooMany { count: 1 }.to_string(), "there are too many");
    assert_eq!(SampleError::from(NotAcquired::NoSession), SampleError::Cancelled);
}
