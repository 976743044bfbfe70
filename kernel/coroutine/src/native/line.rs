//! The line between a native body and its engine: a coroutine that yields requests.
//!
//! Invariants: the pointer to the coroutine's yielder is set exactly while the body's first frame
//! is alive, and is followed only on the coroutine's own stack, which `running` marks: the engine
//! sets it around each resumption and the body has the processor for as long.

#![allow(unsafe_code, reason = "a port is shared with the body, a yielder only lives on its stack")]

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
    rc::Rc,
};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use gesmas_sdk::{
    class::Finish,
    host::{NativeClass, Port, install},
};

/// A request of a body: the number of the call and its bytes.
pub(super) type Request = (u32, Vec<u8>);

/// What suspends a body: it takes a request and gives the response.
type Suspend = Yielder<Vec<u8>, Request>;

/// The body's end of the line.
struct Line {
    yielder: Cell<Option<NonNull<Suspend>>>,
    running: Cell<bool>,
}

impl Port for Line {
    fn call(&self, op: u32, request: &[u8]) -> Vec<u8> {
        assert!(self.running.get(), "a port is called only by the body it belongs to");
        let yielder = self.yielder.get().expect("a running body has a yielder");
        // SAFETY: the pointer is set by the coroutine's first frame and cleared before that frame
        // is left, so the yielder is alive; `running` says that this coroutine has the processor,
        // so that suspending here suspends it and no other.
        unsafe { yielder.as_ref() }.suspend((op, request.to_vec()))
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
    coroutine: Coroutine<Vec<u8>, Request, Finish, DefaultStack>,
    line: Rc<Line>,
}

/// Where a body stopped.
pub(super) enum Stop {
    Asked(Request),
    Finished(Finish),
}

impl Body {
    /// Makes a body; nothing of it runs yet.
    pub(super) fn new(
        stack: DefaultStack,
        class: NativeClass,
        method: String,
        arguments: Vec<u8>,
    ) -> Self {
        let line = Rc::new(Line { yielder: Cell::new(None), running: Cell::new(false) });
        let theirs = Rc::clone(&line);
        let coroutine = Coroutine::with_stack(stack, move |yielder: &Suspend, _| {
            theirs.yielder.set(Some(NonNull::from(yielder)));
            let _open = Open(&theirs);
            (class.run)(&method, &arguments)
        });
        Self { coroutine, line }
    }

    /// Runs the body until its next request or its end. The first response is not read.
    pub(super) fn resume(&mut self, response: Vec<u8>) -> Stop {
        let coroutine = &mut self.coroutine;
        match on_line(&self.line, || coroutine.resume(response)) {
            CoroutineResult::Yield(request) => Stop::Asked(request),
            CoroutineResult::Return(finish) => Stop::Finished(finish),
        }
    }

    /// Unwinds the body if it is suspended, and gives its stack back.
    pub(super) fn into_stack(mut self) -> DefaultStack {
        let coroutine = &mut self.coroutine;
        on_line(&self.line, || coroutine.force_unwind());
        self.coroutine.into_stack()
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
