//! The way to the host: two imports on WebAssembly, a port of the running coroutine elsewhere.
//!
//! Invariants: a call made while the body unwinds does not reach the host and has a harmless
//! answer; a response that does not decode is a broken host and panics.

#[cfg(target_arch = "wasm32")]
mod allocator;
#[cfg(target_arch = "wasm32")]
mod guest;
#[cfg(not(target_arch = "wasm32"))]
mod native;

use std::borrow::Cow;

use gesmas_abi::{Malformed, Reader, call::Request, value::Value};

#[cfg(target_arch = "wasm32")]
use guest as side;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use guest::enter;
#[cfg(not(target_arch = "wasm32"))]
use native as side;
#[cfg(not(target_arch = "wasm32"))]
pub use native::{NativeClass, Port, catch, install};

/// Room for a request that has to be put together, bytes.
const REQUEST_ROOM: usize = 64;

/// Makes a host call and takes its response apart; `ignored` is the answer while unwinding.
#[inline]
pub(crate) fn ask<T>(
    request: &Request<'_>,
    ignored: T,
    decode: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> T {
    if std::thread::panicking() {
        return ignored;
    }
    let encoded = match request.as_bytes() {
        Some(bytes) => Cow::Borrowed(bytes),
        None => {
            // Most are shorter, and would grow to this in steps.
            let mut encoded = Vec::with_capacity(REQUEST_ROOM);
            request.encode(&mut encoded);
            Cow::Owned(encoded)
        }
    };
    side::call(request.op(), encoded, |response| decoded(response, decode))
}

/// Makes a host call whose request ends in a value. The request is written without it, with an empty one
/// in its place, and the value is appended: a large one lies in memory twice at most, and once when
/// this returns.
#[inline]
pub(crate) fn ask_with<V: Value, T>(
    request: &Request<'_>,
    value: V,
    ignored: T,
    decode: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> T {
    if std::thread::panicking() {
        return ignored;
    }
    let key = match request {
        Request::MapInsert { key, .. } => key.len(),
        _ => 0,
    };
    let mut encoded = Vec::with_capacity(REQUEST_ROOM + key + value.encoded_len());
    request.encode(&mut encoded);
    value.encode(&mut encoded);
    drop(value);
    side::call(request.op(), Cow::Owned(encoded), |response| decoded(response, decode))
}

/// Takes a response apart.
#[inline]
fn decoded<T>(response: &[u8], decode: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>) -> T {
    match decode(&mut Reader::new(response)) {
        Ok(answer) => answer,
        Err(_) => panic!("the host's response does not decode"),
    }
}

/// A call that ends in a value, without an answer.
#[inline]
pub(crate) fn tell_with<V: Value>(request: &Request<'_>, value: V) {
    ask_with(request, value, (), |_| Ok(()));
}

/// A call that ends in a value, and answers a value or none.
#[inline]
pub(crate) fn optional_with<V: Value, T: Value>(request: &Request<'_>, value: V) -> Option<T> {
    ask_with(request, value, None, present)
}

/// Takes a value or none.
#[inline]
fn present<T: Value>(reader: &mut Reader<'_>) -> Result<Option<T>, Malformed> {
    if !reader.flag()? {
        return Ok(None);
    }
    // The store holds what a class of the same layout has written.
    let value = T::decode(reader)?;
    reader.end()?;
    Ok(Some(value))
}

/// A call without an answer.
#[inline]
pub(crate) fn tell(request: &Request<'_>) {
    ask(request, (), |_| Ok(()));
}

/// A call that answers a number.
#[inline]
pub(crate) fn number(request: &Request<'_>) -> u64 {
    ask(request, 0, |reader| reader.u64())
}

/// A call that answers yes or no.
#[inline]
pub(crate) fn flag(request: &Request<'_>) -> bool {
    ask(request, false, |reader| reader.flag())
}

/// A call that answers a text.
#[inline]
pub(crate) fn text(request: &Request<'_>) -> String {
    ask(request, String::new(), |reader| reader.rest_text().map(Into::into))
}

/// A call that answers a value or none.
#[inline]
pub(crate) fn optional<T: Value>(request: &Request<'_>) -> Option<T> {
    ask(request, None, present)
}

/// Ends the method by a call that does not return.
pub(crate) fn finish(request: &Request<'_>) -> ! {
    side::finish(request)
}

/// Message and place of a panic, the same on both sides.
fn panic_message(info: &std::panic::PanicHookInfo<'_>) -> String {
    let mut message = String::from(info.payload_as_str().unwrap_or("a value that is not a text"));
    if let Some(place) = info.location() {
        message.push_str(", ");
        message.push_str(place.file());
        message.push(':');
        push_decimal(place.line(), &mut message);
    }
    message
}

/// By hand, since the formatting machinery would be a third of a small module.
fn push_decimal(number: u32, out: &mut String) {
    if number >= 10 {
        push_decimal(number / 10, out);
    }
    out.push(char::from(b'0' + (number % 10) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal() {
        let mut out = String::new();
        [0, 9, 10, 4_294_967_295].into_iter().for_each(|number| push_decimal(number, &mut out));
        assert_eq!(out, "09104294967295");
    }
}
