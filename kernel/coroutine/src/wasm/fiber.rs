//! One activation: a store, an instance and a fiber, as a future that the engine polls by hand.
//!
//! Invariants: a pending poll has left a host call in the channel; instantiating is not metered by
//! wasmtime (its count differs between platforms) but by a charge of our own; dropping the future
//! at any point is sound, since wasmtime unwinds the fiber when its future is dropped, and the
//! guest runs no instruction after that.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use gesmas_machine::{Answer, CodeHash, End, Entry, Trap, Turn};
use wasmtime::Engine;

use super::{
    Compiled,
    host::{Channel, Guest},
    instance::Idle,
    traps,
};
use crate::{charge, translate};

/// A body that runs or is suspended.
pub(super) struct Fiber {
    code: CodeHash,
    channel: Channel,
    body: Pin<Box<dyn Future<Output = Ended> + Send>>,
}

/// How a body ended, the fuel it has left, and its instance if another body can have it.
type Ended = (End, u64, Option<Idle>);

/// Where a fiber stopped.
pub(super) enum Stopped {
    /// At a host call; the fiber is suspended.
    AtCall(Turn),
    /// At its end, with an instance of this code that can be used again.
    AtEnd(Turn, Option<(CodeHash, Idle)>),
}

/// Where a body's instance comes from.
enum Origin {
    New(Engine, Guest),
    Renewed(Idle),
}

impl Fiber {
    /// Makes a body, in a renewed instance if there is one; nothing of it runs yet.
    ///
    /// # Panics
    /// When the code has no such method: the machine takes the name from the interface, which was
    /// checked against the exports.
    pub(super) fn new(
        engine: &Engine,
        code: &Arc<Compiled>,
        entry: Entry<'_>,
        fuel: u64,
        renewed: Option<Idle>,
    ) -> Self {
        let method = code.methods.binary_search_by(|(name, _)| name.cmp(entry.method));
        let method =
            method.unwrap_or_else(|_| panic!("the code does not export method {}", entry.method));
        let length = u32::try_from(entry.arguments.len()).expect("the machine bounds arguments");
        let arguments = entry.arguments.to_vec();
        let (channel, origin) = match renewed {
            Some(mut idle) => {
                let guest = idle.store.data_mut();
                guest.begin(arguments, fuel);
                (guest.channel(), Origin::Renewed(idle))
            }
            None => {
                let channel = Channel::default();
                let guest = Guest::new(channel.clone(), arguments, entry.memory, fuel);
                (channel, Origin::New(engine.clone(), guest))
            }
        };
        let body = Box::pin(run(origin, Arc::clone(code), method, length, fuel));
        Self { code: entry.code, channel, body }
    }

    /// Hands a suspended body the answer it waits for.
    pub(super) fn answer(&mut self, answer: &Answer, fuel: u64) {
        let mut exchange = self.channel.lock();
        assert!(exchange.answered.is_none(), "a body is answered once for each call");
        let mut response = std::mem::take(&mut exchange.room);
        translate::response(answer, &mut response);
        exchange.answered = Some((response, fuel));
    }

    /// Runs the body until its next host call or its end.
    pub(super) fn run(&mut self) -> Stopped {
        match self.body.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready((end, left, idle)) => {
                Stopped::AtEnd(Turn::End(end, left), idle.map(|idle| (self.code, idle)))
            }
            Poll::Pending => {
                let asked = self.channel.lock().asked.take();
                let (call, left) = asked.expect("a body is suspended by host calls alone");
                Stopped::AtCall(Turn::Call(call, left))
            }
        }
    }
}

/// The whole life of a body.
async fn run(
    origin: Origin,
    code: Arc<Compiled>,
    method: usize,
    arguments: u32,
    fuel: u64,
) -> Ended {
    let made = match origin {
        Origin::New(engine, guest) => Idle::new(&engine, guest, &code).await,
        Origin::Renewed(idle) => Ok(idle),
    };
    let mut idle = match made {
        Ok(idle) => idle,
        Err(error) => return (traps::end(error, fuel), fuel, None),
    };
    let Some(fuel) = fuel.checked_sub(charge::ACTIVATION) else {
        return (End::Trapped(Trap::OutOfFuel(fuel)), 0, None);
    };
    idle.store.set_fuel(fuel).expect("fuel is configured");
    let returned = enter(&mut idle, &code, method, arguments).await;
    let left = idle.store.get_fuel().expect("fuel is configured");
    match returned {
        Ok(end) => (end, left, idle.is_renewable(&code).then_some(idle)),
        Err(end) => (end, left, None),
    }
}

/// Calls the method. An error when the body did not come back from it.
async fn enter(
    idle: &mut Idle,
    code: &Compiled,
    method: usize,
    arguments: u32,
) -> Result<End, End> {
    let function = idle.method(code, method);
    match function.call_async(&mut idle.store, arguments).await {
        Ok(()) => Ok(idle.store.data_mut().take_result().unwrap_or_else(|| {
            let what = "the method returned without a result";
            End::Trapped(Trap::HostCallMalformed(what.into()))
        })),
        Err(error) if too_deep(idle, code, &error) => Err(End::Trapped(Trap::StackOverflow)),
        Err(error) => Err(traps::end(error, idle.store.data().given_fuel())),
    }
}

/// Whether a body trapped because its counter of calls was used up (`depth.rs`).
fn too_deep(idle: &mut Idle, code: &Compiled, error: &wasmtime::Error) -> bool {
    let Idle { store, instance, .. } = idle;
    let unreachable = Some(&wasmtime::Trap::UnreachableCodeReached);
    error.downcast_ref::<wasmtime::Trap>() == unreachable
        && instance
            .get_module_export(&mut *store, &code.depth)
            .and_then(wasmtime::Extern::into_global)
            .and_then(|depth| depth.get(&mut *store).i32())
            .is_some_and(|left| left < 0)
}
