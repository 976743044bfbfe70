//! The typed stub of a class: what it asks of a client, and how it reads the answers.

use std::{
    convert::Infallible,
    future::{Future, ready},
    pin::pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use gesmas_sdk::{
    abi::{interface::Interface, value::to_bytes},
    prelude::*,
    stub::{CallMode, Invoke, InvokeError, StubCall, StubError},
};

/// A shelf.
#[class]
pub struct Shelf {
    books: Map<String, u32>,
}

/// Why a book is not put.
#[error]
pub enum ShelfError {
    /// the shelf is full
    Full,
}

#[methods]
impl Shelf {
    /// Makes room.
    #[init]
    fn init(&mut self, _room: u32) {}

    /// Puts books.
    pub fn put(&mut self, title: &str, pages: u32) -> Result<(), ShelfError> {
        self.books.insert(&title.to_owned(), pages);
        Ok(())
    }

    /// How many books there are.
    #[read]
    pub fn count(&self) -> Result<u64> {
        Ok(self.books.len())
    }
}

type Answer = Result<Vec<u8>, InvokeError<Infallible>>;

/// A client that answers always the same and keeps what it was asked.
struct Client {
    answer: Answer,
    calls: Mutex<Vec<StubCall>>,
}

impl Invoke for &Client {
    type Error = Infallible;

    fn invoke(&self, call: StubCall) -> impl Future<Output = Answer> + Send {
        self.calls.lock().unwrap().push(call);
        ready(self.answer.clone())
    }
}

fn client(answer: Answer) -> Client {
    Client { answer, calls: Mutex::default() }
}

/// The result of a future that does not wait; it has to be `Send`, as a runtime wants it.
fn now<T>(future: impl Future<Output = T> + Send) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the client answers at once"),
    }
}

#[test]
fn calls_carry_name_mode_signature_and_arguments() {
    let interface = Interface::decode(Shelf::native().interface).unwrap();
    let client = client(Ok(vec![]));
    let stub = ShelfStub::new(&client, "top");
    now(stub.create(9)).unwrap();
    now(stub.put("Iliad", 700)).unwrap();
    now(stub.count()).unwrap_err();
    let expected = [
        ("init", to_bytes(&9_u32), CallMode::Create),
        ("put", to_bytes(&("Iliad".to_owned(), 700_u32)), CallMode::Update),
        ("count", vec![], CallMode::Read),
    ];
    let expected = expected.map(|(method, arguments, mode)| StubCall {
        class: "Shelf",
        object: "top".into(),
        method,
        signature: interface.method(method).unwrap().signature,
        arguments,
        mode,
    });
    assert_eq!(*client.calls.lock().unwrap(), expected);
}

#[test]
fn answers_are_typed() {
    let full = to_bytes(&ShelfError::Full);
    let put = |answer| now(ShelfStub::new(&client(answer), "top").put("", 0));
    assert_eq!(put(Ok(vec![])), Ok(()));
    assert_eq!(
        put(Err(InvokeError::Failed(full.clone()))),
        Err(StubError::Failed(ShelfError::Full))
    );
    assert_eq!(put(Err(InvokeError::Aborted(full))), Err(StubError::Aborted(ShelfError::Full)));
    assert!(matches!(put(Ok(vec![1])), Err(StubError::Malformed(_))));
    assert!(matches!(put(Err(InvokeError::Failed(vec![9]))), Err(StubError::Malformed(_))));
    let count = now(ShelfStub::new(&client(Ok(to_bytes(&5_u64))), "top").count());
    assert_eq!(count, Ok(5));
}
