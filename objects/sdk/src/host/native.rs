//! The side of a native engine: the same class, run as a coroutine of the process.
//!
//! An engine runs [`NativeClass::run`] on a coroutine's stack and, around *each* resumption of it,
//! [installs](install) the port of that coroutine: coroutines interleave on one thread, so the port
//! belongs to the run, not to the thread. Inside the body a host call is [`Port::call`], which may
//! suspend the coroutine and return in a later resumption.
//! Invariants: no borrow of the thread's port is held across a call; what ends the body early
//! (`ctx::abort`, `ctx::continue_with`, a panic) ends as a [`Finish`]; an unwinding that is not the
//! body's own, by which an engine drops a suspended coroutine, passes through.

use std::{
    any::Any,
    borrow::Cow,
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook},
    rc::Rc,
    sync::Once,
};

use gesmas_abi::call::{Op, Request};

use crate::class::Finish;

/// A class compiled into the process, for the native engine. `Class::native()` gives one.
#[derive(Clone, Copy, Debug)]
pub struct NativeClass {
    /// Name of the class.
    pub name: &'static str,
    /// Version of its crate.
    pub version: &'static str,
    /// Its interface, the same bytes as in the section of its module.
    pub interface: &'static [u8],
    /// Runs a method of the interface with encoded arguments to its end.
    ///
    /// # Panics
    /// When the interface has no such method; a panic of the body is a [`Finish`].
    pub run: fn(method: &str, arguments: &[u8]) -> Finish,
}

/// Where a native body's host calls go.
pub trait Port {
    /// Makes a host call: the number of the call and the bytes of its request, as a module would
    /// pass them. Gives the bytes of the response to `take`, once. May suspend the coroutine it runs
    /// on before that.
    ///
    /// The calls that end a method (`Return`, `Abort`, `Continue`, `Panic`, `ArgumentsMalformed`)
    /// never come here: [`NativeClass::run`] returns them.
    fn call(&self, op: u32, request: &[u8], take: &mut dyn FnMut(&[u8]));
}

thread_local! {
    static PORT: RefCell<Option<Rc<dyn Port>>> = const { RefCell::new(None) };
    /// Message of the last panic of a body. A panic unwinds to `catch` without suspending, so the
    /// thread's place for it is the body's.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes `port` the one that the bodies on this thread call, and returns the one before.
///
/// An engine calls it right before it resumes a coroutine, and puts the former back right after.
pub fn install(port: Option<Rc<dyn Port>>) -> Option<Rc<dyn Port>> {
    PORT.with_borrow_mut(|installed| core::mem::replace(installed, port))
}

pub(super) fn call<T>(op: Op, request: Cow<'_, [u8]>, decode: impl FnOnce(&[u8]) -> T) -> T {
    let port = PORT.with_borrow(Clone::clone);
    let port = port.expect("a method of a class runs in an engine, which installs its port");
    let (mut decode, mut answer) = (Some(decode), None);
    port.call(op as u32, &request, &mut |response| {
        answer = decode.take().map(|decode| decode(response));
    });
    answer.expect("a port answers each call")
}

/// Unwinds the body with how it ended.
struct Ended(Finish);

pub(super) fn finish(request: &Request<'_>) -> ! {
    let finish = match *request {
        Request::Abort { payload } => Finish::Aborted(payload.into()),
        Request::Continue { method, arguments } => {
            Finish::Continue { method: method.into(), arguments: arguments.into() }
        }
        _ => unreachable!("only abort and continue end a body from within"),
    };
    resume_unwind(Box::new(Ended(finish)))
}

/// Runs a body to its end. For what the macros emit.
///
/// # Panics
/// Passes an unwinding on that is not the body's own.
#[doc(hidden)]
pub fn catch(body: impl FnOnce() -> Finish) -> Finish {
    keep_messages();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(finish) => finish,
        Err(payload) => ended(payload),
    }
}

fn ended(payload: Box<dyn Any + Send>) -> Finish {
    let payload = match payload.downcast::<Ended>() {
        Ok(ended) => return ended.0,
        Err(payload) => payload,
    };
    match PANIC.take() {
        Some(message) => Finish::Panicked(message),
        None => resume_unwind(payload),
    }
}

/// Makes panics of bodies leave their message and place, as a module's hook does, instead of
/// printing them. Panics of anything else go to the hook that was there before.
fn keep_messages() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if PORT.with_borrow(Option::is_some) {
                PANIC.set(Some(super::panic_message(info)));
            } else {
                before(info);
            }
        }));
    });
}
