//! The two imports of a guest, `gesmas1.call` and `gesmas1.fetch`, and its memory limit.
//!
//! Invariants: every pointer and length of a guest is checked against its memory before anything
//! is read, charged or written; a host call is charged before it is made, its response after it;
//! `call` suspends the fiber exactly once, and fuel is exact there: what is left is read before,
//! and replaced after, by what the machine gives. So a body that is rebuilt from its journal goes on
//! with the same fuel as one that was kept.
//! Not here: what a call means (`translate.rs`), and who polls (`fiber.rs`).

use std::{
    future::poll_fn,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
    task::Poll,
};

use gesmas_abi::{IMPORT_CALL, IMPORT_FETCH, IMPORT_MODULE};
use gesmas_machine::{End, HostCall, LimitExceeded, Trap};
use wasmtime::{Caller, Engine, Linker, Memory, ResourceLimiter, Result};

use super::{settings::TABLE_ELEMENTS, traps::Stop};
use crate::{
    charge,
    translate::{Asked, asked},
};

/// What passes between a fiber and the engine, one message at a time.
#[derive(Default)]
pub(super) struct Exchange {
    /// The host call that a suspended body waits for, with the fuel it has left.
    pub(super) asked: Option<(HostCall, u64)>,
    /// The encoded response to it, with the fuel the body goes on with.
    pub(super) answered: Option<(Vec<u8>, u64)>,
    /// Room for the next response: that of the last, emptied.
    pub(super) room: Vec<u8>,
}

/// Room for responses that is kept, bytes: few are longer.
const ROOM_MAX: usize = 1 << 10;

/// An [`Exchange`] that both sides hold. Both are on one thread whenever they touch it; the lock
/// only makes that visible to the compiler.
#[derive(Clone, Default)]
pub(super) struct Channel(Arc<Mutex<Exchange>>);

impl Channel {
    pub(super) fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().expect("nothing panics while it holds the exchange")
    }
}

/// What the host keeps of a running instance.
pub(super) struct Guest {
    channel: Channel,
    memory: Option<Memory>,
    /// What `fetch` copies: the arguments, then each response that did not fit.
    kept: Vec<u8>,
    /// The result, once the body has given it.
    returned: Option<End>,
    memory_limit: u64,
    /// Fuel at the last start or resumption, for the message of a trap.
    fuel: u64,
}

impl Guest {
    pub(super) fn new(channel: Channel, arguments: Vec<u8>, memory_limit: u64, fuel: u64) -> Self {
        Self { channel, memory: None, kept: arguments, returned: None, memory_limit, fuel }
    }

    /// The next body of a renewed instance begins.
    pub(super) fn begin(&mut self, arguments: Vec<u8>, fuel: u64) {
        self.kept = arguments;
        self.returned = None;
        self.fuel = fuel;
    }

    pub(super) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The limit of its memory, bytes.
    pub(super) fn memory_limit(&self) -> u64 {
        self.memory_limit
    }

    pub(super) fn set_memory(&mut self, memory: Memory) {
        self.memory = Some(memory);
    }

    /// What the body returned, if it did.
    pub(super) fn take_result(&mut self) -> Option<End> {
        self.returned.take()
    }

    /// Fuel at the last start or resumption.
    pub(super) fn given_fuel(&self) -> u64 {
        self.fuel
    }
}

impl ResourceLimiter for Guest {
    fn memory_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let declared = maximum.map_or(u64::MAX, |bytes| bytes as u64);
        let limit = self.memory_limit.min(declared);
        if desired as u64 > limit {
            return Err(Stop::trap(Trap::OutOfMemory(limit)));
        }
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        // Growth past four gibibytes is refused without asking `memory_growing` first. Everything
        // else that fails after it agreed is the host's failure, which no guest may see.
        if error.to_string() == "memory growth exceeds memory type's limits" {
            return Err(Stop::trap(Trap::OutOfMemory(self.memory_limit)));
        }
        Err(error)
    }

    fn table_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let limit = TABLE_ELEMENTS.min(maximum.unwrap_or(usize::MAX));
        if desired > limit {
            let limit = LimitExceeded::new("module.table_elements", limit as u64);
            return Err(Stop::trap(Trap::Limit(limit)));
        }
        Ok(true)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        Err(error)
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        1
    }
}

/// The imports.
pub(super) fn linker(engine: &Engine) -> Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap_async(
        IMPORT_MODULE,
        IMPORT_CALL,
        |caller: Caller<'_, Guest>, (op, input, length, output, capacity)| {
            let request = Region { start: input, length };
            Box::new(call(caller, op, request, Region { start: output, length: capacity }))
        },
    )?;
    linker.func_wrap(IMPORT_MODULE, IMPORT_FETCH, fetch)?;
    Ok(linker)
}

/// A piece of a guest's memory, as the guest names it.
#[derive(Clone, Copy)]
struct Region {
    start: u32,
    length: u32,
}

impl Region {
    /// Its place in a memory of `size` bytes.
    fn within(self, size: usize) -> Result<Range<usize>> {
        let end = u64::from(self.start) + u64::from(self.length);
        if end > size as u64 {
            let Self { start, length } = self;
            return Err(Stop::malformed(format!(
                "{length} bytes at {start} are not within its memory of {size} bytes"
            )));
        }
        Ok(self.start as usize..end as usize)
    }
}

/// What is left of fuel, which the caller has to set. When there is not enough, all of it is taken.
fn charge(caller: &mut Caller<'_, Guest>, fuel: u64, amount: u64) -> Result<u64> {
    let Some(left) = fuel.checked_sub(amount) else {
        caller.set_fuel(0)?;
        return Err(wasmtime::Trap::OutOfFuel.into());
    };
    Ok(left)
}

fn memory(caller: &Caller<'_, Guest>) -> Memory {
    caller.data().memory.expect("there is no start function, so calls come after instantiation")
}

/// Fuel is read once and set once: what is charged in between is counted here.
async fn call(
    mut caller: Caller<'_, Guest>,
    op: u32,
    request: Region,
    response: Region,
) -> Result<u32> {
    let size = memory(&caller).data_size(&caller);
    let input = request.within(size)?;
    response.within(size)?;
    let fuel = caller.get_fuel()?;
    let left = charge(&mut caller, fuel, charge::request(input.len()))?;
    let call = match receive(&mut caller, op, input) {
        Ok(Asked::Call(call)) => call,
        last => {
            caller.set_fuel(left)?;
            return end(&mut caller, last?);
        }
    };
    let channel = caller.data().channel.clone();
    channel.lock().asked = Some((call, left));
    let (bytes, fuel) = poll_fn(|_| match channel.lock().answered.take() {
        Some(answer) => Poll::Ready(answer),
        None => Poll::Pending,
    })
    .await;
    caller.data_mut().fuel = fuel;
    let left = charge(&mut caller, fuel, charge::bytes(bytes.len()))?;
    caller.set_fuel(left)?;
    answer(&mut caller, bytes, response)
}

/// Decodes a request.
fn receive(caller: &mut Caller<'_, Guest>, op: u32, input: Range<usize>) -> Result<Asked> {
    let (bytes, guest) = memory(caller).data_and_store_mut(&mut *caller);
    let asked = asked(op, &bytes[input]).map_err(Stop::trap)?;
    if guest.returned.is_some() && !matches!(asked, Asked::Ended(_)) {
        return Err(Stop::malformed("a host call after the result"));
    }
    Ok(asked)
}

/// Takes the result of a body, or ends it.
fn end(caller: &mut Caller<'_, Guest>, asked: Asked) -> Result<u32> {
    match asked {
        Asked::Returned(end) => {
            caller.data_mut().returned = Some(end);
            Ok(0)
        }
        Asked::Ended(end) => Err(Stop(end).into()),
        Asked::Call(call) => panic!("{call:?} does not end a body"),
    }
}

/// Writes a response, or keeps it when it does not fit.
fn answer(caller: &mut Caller<'_, Guest>, mut bytes: Vec<u8>, response: Region) -> Result<u32> {
    let length = u32::try_from(bytes.len()).expect("the machine bounds its answers");
    if length > response.length {
        caller.data_mut().kept = bytes;
        return Ok(length);
    }
    let start = response.start as usize;
    let (memory, guest) = memory(caller).data_and_store_mut(&mut *caller);
    memory[start..start + bytes.len()].copy_from_slice(&bytes);
    if bytes.capacity() <= ROOM_MAX {
        bytes.clear();
        guest.channel.lock().room = bytes;
    }
    Ok(length)
}

/// Copies the first `length` bytes of what was kept, which is then gone.
fn fetch(mut caller: Caller<'_, Guest>, output: u32, length: u32) -> Result<()> {
    let memory = memory(&caller);
    let range = Region { start: output, length }.within(memory.data_size(&caller))?;
    let fuel = caller.get_fuel()?;
    let left = charge(&mut caller, fuel, charge::request(range.len()))?;
    caller.set_fuel(left)?;
    let (bytes, guest) = memory.data_and_store_mut(&mut caller);
    let kept = std::mem::take(&mut guest.kept);
    let Some(kept) = kept.get(..range.len()) else {
        return Err(Stop::malformed(format!(
            "it fetches {length} bytes where {} are kept",
            kept.len()
        )));
    };
    bytes[range].copy_from_slice(kept);
    Ok(())
}
