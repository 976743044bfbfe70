//! One activation: a store, an instance and a fiber, as a future that the engine polls by hand.
//!
//! Invariants: a pending poll has left a host call in the channel; instantiating is not metered by
//! wasmtime (its count differs between platforms) but by a charge of our own; dropping the future
//! at any point is sound, since wasmtime unwinds the fiber when its future is dropped, and the
//! guest runs no instruction after that.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
};

use gesmas_machine::{Answer, End, Entry, Trap, Turn};
use wasmtime::{Engine, Instance, ModuleExport, Store};

use super::{
    Compiled,
    host::{Channel, Guest},
    traps,
};
use crate::{charge, translate};

/// A body that runs or is suspended.
pub(super) struct Fiber {
    channel: Channel,
    body: Pin<Box<dyn Future<Output = (End, u64)> + Send>>,
}

impl Fiber {
    /// Makes a body; nothing of it runs yet.
    ///
    /// # Panics
    /// When the code has no such method: the machine takes the name from the interface, which was
    /// checked against the exports.
    pub(super) fn new(engine: &Engine, code: &Compiled, entry: Entry<'_>, fuel: u64) -> Self {
        let channel = Channel::default();
        let method = *code
            .methods
            .get(entry.method)
            .unwrap_or_else(|| panic!("the code does not export method {}", entry.method));
        let length = u32::try_from(entry.arguments.len()).expect("the machine bounds arguments");
        let guest = Guest::new(channel.clone(), entry.arguments.to_vec(), entry.memory, fuel);
        let store = Store::new(engine, guest);
        let body = Box::pin(run(store, code.clone(), method, length, fuel));
        Self { channel, body }
    }

    /// Hands a suspended body the answer it waits for.
    pub(super) fn answer(&mut self, answer: &Answer, fuel: u64) {
        let mut exchange = self.channel.lock();
        assert!(exchange.answered.is_none(), "a body is answered once for each call");
        exchange.answered = Some((translate::response(answer), fuel));
    }

    /// Runs the body until its next host call or its end.
    pub(super) fn run(&mut self) -> Turn {
        match self.body.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready((end, left)) => Turn::End(end, left),
            Poll::Pending => {
                let asked = self.channel.lock().asked.take();
                let (call, left) = asked.expect("a body is suspended by host calls alone");
                Turn::Call(call, left)
            }
        }
    }
}

/// The whole life of a body. Its second result is the fuel it has left.
async fn run(
    mut store: Store<Guest>,
    code: Compiled,
    method: ModuleExport,
    arguments: u32,
    fuel: u64,
) -> (End, u64) {
    store.limiter(|guest| guest);
    let unmetered = store.set_fuel(u64::MAX);
    unmetered.expect("fuel is configured");
    let instance = match code.pre.instantiate_async(&mut store).await {
        Ok(instance) => instance,
        Err(error) => return (traps::end(error, fuel), fuel),
    };
    let Some(fuel) = fuel.checked_sub(charge::ACTIVATION) else {
        return (End::Trapped(Trap::OutOfFuel(fuel)), 0);
    };
    store.set_fuel(fuel).expect("fuel is configured");
    let end = enter(&mut store, instance, &code, method, arguments).await;
    let left = store.get_fuel().expect("fuel is configured");
    (end, left)
}

/// Calls the method.
async fn enter(
    store: &mut Store<Guest>,
    instance: Instance,
    code: &Compiled,
    method: ModuleExport,
    arguments: u32,
) -> End {
    let memory = instance
        .get_module_export(&mut *store, &code.memory)
        .and_then(wasmtime::Extern::into_memory)
        .expect("validation demands a memory");
    store.data_mut().set_memory(memory);
    let method = instance
        .get_module_export(&mut *store, &method)
        .and_then(wasmtime::Extern::into_func)
        .and_then(|function| function.typed::<u32, ()>(&*store).ok())
        .expect("validation demands the type of methods");
    match method.call_async(&mut *store, arguments).await {
        Ok(()) => store.data_mut().take_result().unwrap_or_else(|| {
            let what = "the method returned without a result";
            End::Trapped(Trap::HostCallMalformed(what.into()))
        }),
        Err(error) if too_deep(&mut *store, instance, code, &error) => {
            End::Trapped(Trap::StackOverflow)
        }
        Err(error) => traps::end(error, store.data().given_fuel()),
    }
}

/// Whether a body trapped because its counter of calls was used up (`depth.rs`).
fn too_deep(
    store: &mut Store<Guest>,
    instance: Instance,
    code: &Compiled,
    error: &wasmtime::Error,
) -> bool {
    let unreachable = Some(&wasmtime::Trap::UnreachableCodeReached);
    error.downcast_ref::<wasmtime::Trap>() == unreachable
        && instance
            .get_module_export(&mut *store, &code.depth)
            .and_then(wasmtime::Extern::into_global)
            .and_then(|depth| depth.get(&mut *store).i32())
            .is_some_and(|left| left < 0)
}
