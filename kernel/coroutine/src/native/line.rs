//! The line between a native body and its engine: a coroutine that yields requests.
//!
//! Invariants: the pointer to the coroutine's yielder is set exactly while the body's first frame
//! is alive, and is followed only on the coroutine's own stack, which `running` marks: the engine
//! sets it around each resumption and the body has the processor for as long. Neither requests nor
//! responses are copied: a request is borrowed from the stack of the body that waits in it, a
//! response from the engine that waits for the body to stop again.

#![allow(unsafe_code, reason = "a port is shared with the body, a yielder only lives on its stack")]

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
    rc::Rc,
};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use gesmas_machine::MethodName;
use gesmas_sdk::{
    class::Finish,
    host::{NativeClass, Port, install},
};

/// A request of a body: the number of the call and its bytes, which are on its stack.
type Request = (u32, *const [u8]);

/// What suspends a body: it takes a request and gives the bytes of the response.
type Suspend = Yielder<*const [u8], Request>;

/// The body's end of the line.
struct Line {
    yielder: Cell<Option<NonNull<Suspend>>>,
    running: Cell<bool>,
}

impl Port for Line {
    fn call(&self, op: u32, request: &[u8], take: &mut dyn FnMut(&[u8])) {
        assert!(self.running.get(), "a port is called only by the body it belongs to");
        let yielder = self.yielder.get().expect("a running body has a yielder");
        // SAFETY: the pointer is set by the coroutine's first frame and cleared before that frame
        // is left, so the yielder is alive; `running` says that this coroutine has the processor,
        // so that suspending here suspends it and no other.
        let response = unsafe { yielder.as_ref() }.suspend((op, request));
        // SAFETY: whoever resumed the body has borrowed these bytes until it stops again, which it
        // does not do in here: `take` cannot make a call.
        take(unsafe { &*response });
    }
}

/// Clears the line when the body's first frame is left, by return or by unwinding.
struct Open<'a>(&'a Line);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.yielder.set(None);
    }
}

/// A body as a coroutine.
pub(super) struct Body {
    coroutine: Coroutine<*const [u8], Request, Finish, DefaultStack>,
    line: Rc<Line>,
    /// What it waits in, while it is suspended at a call.
    asked: Option<Request>,
}

/// Where a body stopped.
pub(super) enum Stop {
    /// At a call: [`Body::request`].
    Asked,
    Finished(Finish),
}

/// What is left of a body, and makes the next one.
pub(super) struct Remains {
    stack: DefaultStack,
    line: Rc<Line>,
}

impl Remains {
    pub(super) fn new(stack: DefaultStack) -> Self {
        let line = Line { yielder: Cell::new(None), running: Cell::new(false) };
        Self { stack, line: Rc::new(line) }
    }
}

impl Body {
    /// Makes a body; nothing of it runs yet.
    pub(super) fn new(
        Remains { stack, line }: Remains,
        class: NativeClass,
        method: MethodName,
        arguments: Vec<u8>,
    ) -> Self {
        let theirs = Rc::clone(&line);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Suspend, _| {
            theirs.yielder.set(Some(NonNull::from(yielder)));
            let _open = Open(&theirs);
            (class.run)(method.as_str(), &arguments)
        });
        Self { coroutine, line, asked: None }
    }

    /// Runs the body until its next request or its end. The first response is not read.
    pub(super) fn resume(&mut self, response: &[u8]) -> Stop {
        let coroutine = &mut self.coroutine;
        self.asked = None;
        match on_line(&self.line, || coroutine.resume(response)) {
            CoroutineResult::Yield(request) => {
                self.asked = Some(request);
                Stop::Asked
            }
            CoroutineResult::Return(finish) => Stop::Finished(finish),
        }
    }

    /// The call that it waits in: its number and the bytes of its request.
    pub(super) fn request(&self) -> (u32, &[u8]) {
        let (op, request) =
            self.asked.expect("a body is asked for its request while it waits in it");
        // SAFETY: the body has borrowed these bytes for the call that it waits in, and goes on only
        // when it is resumed or unwound, which this borrow of it excludes.
        (op, unsafe { &*request })
    }

    /// Unwinds the body if it is suspended, and gives back what the next one can use.
    pub(super) fn into_remains(mut self) -> Remains {
        let coroutine = &mut self.coroutine;
        if !coroutine.done() {
            on_line(&self.line, || coroutine.force_unwind());
        }
        Remains { stack: self.coroutine.into_stack(), line: self.line }
    }
}

/// Does what gives a body the processor, with its port installed.
fn on_line<T>(line: &Rc<Line>, run: impl FnOnce() -> T) -> T {
    let before = install(Some(Rc::<Line>::clone(line)));
    line.running.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    line.running.set(false);
    install(before);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}
