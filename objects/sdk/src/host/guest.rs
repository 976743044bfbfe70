//! The side of a WebAssembly module.
#![allow(unsafe_code, reason = "imports are declared and called here, and nowhere else")]

use std::{borrow::Cow, panic::PanicHookInfo};

use gesmas_abi::call::{Op, Request, ReturnKind};

use crate::class::Finish;

#[link(wasm_import_module = "gesmas1")]
unsafe extern "C" {
    #[link_name = "call"]
    fn host_call(op: u32, input: *const u8, input_len: u32, out: *mut u8, out_cap: u32) -> u32;
    #[link_name = "fetch"]
    fn host_fetch(out: *mut u8, len: u32);
}

/// Most responses are shorter and need no second call.
const RESPONSE_BUFFER: usize = 256;

/// Copies the bytes that the host keeps.
fn fetch(length: u32) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    // SAFETY: the host writes `length` bytes, which is what the buffer holds.
    unsafe { host_fetch(bytes.as_mut_ptr(), length) };
    bytes
}

/// The request is given back before its response is fetched: of two large ones one is in memory.
pub(super) fn call<T>(op: Op, request: Cow<'_, [u8]>, decode: impl FnOnce(&[u8]) -> T) -> T {
    let mut buffer = [0; RESPONSE_BUFFER];
    // SAFETY: the host reads the request and writes at most `RESPONSE_BUFFER` bytes.
    let length = unsafe {
        host_call(
            op as u32,
            request.as_ptr(),
            request.len() as u32,
            buffer.as_mut_ptr(),
            RESPONSE_BUFFER as u32,
        )
    };
    drop(request);
    match buffer.get(..length as usize) {
        Some(response) => decode(response),
        None => decode(&fetch(length)),
    }
}

pub(super) fn finish(request: &Request<'_>) -> ! {
    let mut encoded = Vec::new();
    request.encode(&mut encoded);
    call(request.op(), Cow::Owned(encoded), |_| ());
    core::arch::wasm32::unreachable()
}

/// What the export of a method does.
pub fn enter(arguments_length: u32, run: fn(Vec<u8>) -> Finish) {
    std::panic::set_hook(Box::new(report));
    let finish = run(fetch(arguments_length));
    let (kind, payload) = match &finish {
        Finish::Returned(payload) => (ReturnKind::Ok, payload.as_slice()),
        Finish::Failed(payload) => (ReturnKind::Error, payload.as_slice()),
        Finish::ArgumentsMalformed(message) => {
            self::finish(&Request::ArgumentsMalformed { message })
        }
        _ => (ReturnKind::Cancelled, [].as_slice()),
    };
    super::tell(&Request::Return { kind, payload });
}

/// Tells the host why and where the module panicked. It does not return, so that the panic machinery
/// never gets to look for a console.
fn report(info: &PanicHookInfo<'_>) {
    let message = super::panic_message(info);
    call(Op::Panic, Cow::Borrowed(message.as_bytes()), |_| ());
}
